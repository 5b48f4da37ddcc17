"""The catalog benchmark: what skillbank costs and withstands between a client and its servers.

Its parts are `relay_bench`, `readiness_bench`, `isolation_bench`, `endurance_bench` and `search_bench`;
each can be measured for itself. Their numbers beside their targets are `catalog_report`.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass, field, replace
from importlib import metadata

from server.bench.catalog_report import (
    CatalogBenchReport,
    findings_of,
    render_catalog_report,
    search_findings,
)
from server.bench.endurance_bench import measure_connects, measure_memory
from server.bench.isolation_bench import measure_isolation
from server.bench.processes import can_look
from server.bench.readiness_bench import measure_readiness
from server.bench.relay_bench import measure_relay
from server.bench.request import BenchRequest, Measured, show_progress
from server.bench.search_bench import SearchOptions, quick_search_options, run_search_bench
from server.progress import Progress, ProgressListener, ignore_progress

__all__ = ["CatalogOptions", "measure", "quick_catalog_options", "run_catalog_bench"]


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """How much is measured."""

    relay_calls: int = 3_000
    starts: int = 5
    isolation_turns: int = 40
    memory_cycles: int = 20_000
    connect_cycles: int = 300
    search: SearchOptions = field(default_factory=SearchOptions)
    quick: bool = False
    listener: ProgressListener = ignore_progress


def quick_catalog_options(listener: ProgressListener = ignore_progress) -> CatalogOptions:
    """Return a size that ends within a minute."""
    return CatalogOptions(
        relay_calls=200,
        starts=2,
        isolation_turns=2,
        memory_cycles=1_000,
        connect_cycles=15,
        search=quick_search_options(),
        quick=True,
        listener=listener,
    )


async def run_catalog_bench(options: CatalogOptions) -> CatalogBenchReport:
    """Return what the catalog costs and withstands, measured now, part after part.

    Raises:
        BenchError: a part could not be measured.
    """
    began = time.perf_counter()

    def say(part: str) -> None:
        options.listener(Progress("bench", part))

    say(f"relay: {options.relay_calls} calls each way")
    relay = await measure_relay(options.relay_calls)
    say(f"readiness: {options.starts} starts")
    readiness = await measure_readiness(options.starts)
    say(f"isolation: {options.isolation_turns} turns")
    isolation = await measure_isolation(options.isolation_turns)
    memory = connects = None
    if can_look():
        say(f"memory: {options.memory_cycles} cycles")
        memory = await measure_memory(options.memory_cycles)
        say(f"connecting: {options.connect_cycles} cycles")
        connects = await measure_connects(options.connect_cycles)
    say(f"search: {options.search.tools} tools")
    search = await run_search_bench(replace(options.search, listener=options.listener))
    return CatalogBenchReport(
        quick=options.quick,
        relay=relay,
        readiness=readiness,
        isolation=isolation,
        memory=memory,
        connects=connects,
        search=search,
        findings=(*findings_of(relay, readiness, isolation, memory, connects), *search_findings(search)),
        not_measured=tuple(_not_measured(relay.fastmcp_ms is not None, "embeddings" in search.ways)),
        machine=_machine(),
        versions=_versions(),
        seconds=time.perf_counter() - began,
    )


def _not_measured(has_fastmcp: bool, has_embeddings: bool) -> list[str]:
    missing: list[str] = []
    if not has_embeddings:
        missing.append("search by meaning, which comes with the embeddings extra")
    if not has_fastmcp:
        missing.append("FastMCP's proxy, which comes with the demo extra")
    if not can_look():
        missing.append("memory and processes left behind, which are read from /proc")
    return missing


def _machine() -> str:
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python"
        f" {platform.python_version()}, load {load} at the end"
    )


def _versions() -> dict[str, str]:
    installed = {"skillbank", "mcp", "fastmcp", "pydantic"}
    return {d.name: d.version for d in metadata.distributions() if d.name in installed}


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for."""
    options = (
        quick_catalog_options(show_progress) if request.quick else CatalogOptions(listener=show_progress)
    )
    report = await run_catalog_bench(options)
    return Measured(report, render_catalog_report(report))

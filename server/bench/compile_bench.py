"""The compile benchmark: accuracy, τ²-bench sessions, selection and the gate, on real tool servers.

Each part is a module with one function (`compile_accuracy`, `compile_tau`, `compile_selection`,
`compile_gate`); this one prepares what they run on and keeps what is finished, so that a run which
was broken off goes on where it stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, cast

from pydantic import JsonValue

from catalog.config import load_config
from server.bank import Bank
from server.bench.bad_candidates import SCRIPTED_SERVERS, scripted_entry
from server.bench.compile_accuracy import measure_family
from server.bench.compile_gate import GatePlan, measure_gate
from server.bench.compile_report import (
    CompileBenchReport,
    FamilyReport,
    GateReport,
    SelectionReport,
    TauReport,
)
from server.bench.compile_selection import measure_selection
from server.bench.compile_table import render_compile_report
from server.bench.compile_tau import measure_tau
from server.bench.errors import BenchError
from server.bench.families import Family, compile_families
from server.bench.kept import Kept
from server.bench.peer import Peer
from server.bench.registry import COMPILE_PARTS
from server.bench.request import BenchRequest, Measured, show_progress
from server.progress import Progress, ProgressListener, ignore_progress
from server.provisioning.demo_files import build_fixtures
from server.provisioning.demo_servers import installed_versions
from server.provisioning.errors import ProvisioningError
from server.provisioning.fetched import (
    FETCHED_SERVERS,
    PEER,
    cache_folder,
    fetch_peer,
    fetch_servers,
    servers_document,
)
from server.provisioning.tau_tasks import DOMAINS
from server.settings import Settings, read_settings

__all__ = ["CompileOptions", "OpenBank", "measure", "quick_compile_options", "run_compile_bench"]

_GATE_SERVERS = ("mathematics", "sqlite", "time", *SCRIPTED_SERVERS)
_QUICK_FAMILIES = ("double_digest", "derived_key")


class OpenBank(Protocol):
    """Opens the bank that is measured (`server.wiring.open_bank`)."""

    def __call__(self, settings: Settings, *, memoise: bool) -> AbstractAsyncContextManager[Bank]: ...


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What is measured, and with how much."""

    parts: tuple[str, ...] = COMPILE_PARTS
    only: tuple[str, ...] | None = None
    """Families by id; None: all of them."""
    distractors: tuple[int, ...] = (10, 100, 1000)
    candidates: int = 100
    """Bad candidates at the gate."""
    tau_pairs: int | None = None
    """Pairs of tasks per domain; None: all there are."""
    seed: int = 20261130
    keep: Path | None = None
    """File of JSON lines that finished families are read from and appended to; None: nothing is kept."""
    fetch: bool = True
    """Whether servers and peers may be fetched from the package index."""
    quick: bool = False
    listener: ProgressListener = field(default=ignore_progress)


def quick_compile_options() -> CompileOptions:
    """Return a size that ends within a minute: the demo's servers alone, nothing is fetched."""
    return CompileOptions(
        only=_QUICK_FAMILIES,
        distractors=(10, 100),
        candidates=4,
        tau_pairs=1,
        fetch=False,
        quick=True,
    )


async def run_compile_bench(options: CompileOptions, open_bank: OpenBank) -> CompileBenchReport:
    """Return what is recovered from traces, and whether it can be trusted.

    Raises:
        DemoServersMissing: the demo's servers are not installed.
        BenchError: servers cannot be fetched, or the world stood in the way of a run.
    """
    started = time.perf_counter()
    notes: list[str] = []
    reports: list[FamilyReport] = []
    selection: SelectionReport | None = None
    gate: GateReport | None = None
    tau: TauReport | None = None
    if set(options.parts) & {"accuracy", "selection", "gate"}:
        async with (
            _prepared(options, notes) as (families, settings, peer),
            open_bank(settings, memoise=True) as bank,
        ):
            reports = await _measured(families, bank, peer, options)
            skills = {report.family: report.skill for report in reports if report.skill is not None}
            if "selection" in options.parts:
                snapshot = await bank.context.snapshot()
                selection = measure_selection(families, skills, snapshot, options.distractors, options.seed)
            if "gate" in options.parts:
                gate = await measure_gate(
                    [*skills.values()],
                    bank,
                    GatePlan(options.candidates, options.seed, options.listener),
                    Kept(options.keep),
                )
    if "tau" in options.parts:
        tau = await _tau(options, open_bank, notes)
    return CompileBenchReport(
        quick=options.quick,
        seed=options.seed,
        versions=_versions(),
        servers=tuple(sorted({server for report in reports for server in report.servers})),
        traces=3 * len(reports),
        families=tuple(reports),
        tau=tau,
        selection=selection,
        gate=gate,
        notes=tuple(notes),
        seconds=time.perf_counter() - started,
    )


async def _tau(options: CompileOptions, open_bank: OpenBank, notes: list[str]) -> TauReport | None:
    if options.fetch:
        fetch_servers(DOMAINS, cache_folder(), options.listener)
    try:
        return await measure_tau(options.tau_pairs, open_bank, Kept(options.keep), options.listener)
    except (BenchError, ProvisioningError) as error:
        if options.fetch:
            raise
        notes.append(f"τ²-bench was left out, since a quick run fetches nothing: {error}")
        return None


@asynccontextmanager
async def _prepared(
    options: CompileOptions, notes: list[str]
) -> AsyncGenerator[tuple[list[Family], Settings, Peer | None]]:
    with TemporaryDirectory(prefix="skillbank-bench-") as made:
        folder = Path(made)
        fixtures = folder / "fixtures"
        fixtures.mkdir()
        build_fixtures(fixtures)
        families = _chosen(compile_families(str(fixtures)), options)
        names = sorted({server for family in families for server in family.servers})
        fetched = [server.name for server in FETCHED_SERVERS if server.name in names]
        if options.fetch:
            fetch_servers(fetched, cache_folder(), options.listener)
        if "gate" in options.parts:
            names = sorted({*names, *_GATE_SERVERS})
        config = _config(folder, names)
        settings = read_settings(config=config, store=folder / "store.db")
        yield families, settings, _peer(options, config, notes)


def _chosen(families: Sequence[Family], options: CompileOptions) -> list[Family]:
    if options.only is None:
        return list(families)
    unknown = sorted(set(options.only) - {family.id for family in families})
    if unknown:
        raise BenchError(f"no family {', '.join(unknown)}")
    return [family for family in families if family.id in options.only]


def _config(folder: Path, names: Sequence[str]) -> Path:
    document = servers_document(names, folder / "state")
    servers = cast("dict[str, JsonValue]", document["mcpServers"])
    own = cast("dict[str, JsonValue]", document["skillbank"])
    effects = cast("dict[str, JsonValue]", own["effects"])
    for name in (name for name in SCRIPTED_SERVERS if name in names):
        scenario = folder / f"{name}.json"
        scenario.write_text(json.dumps(SCRIPTED_SERVERS[name]), encoding="utf-8")
        servers[name] = scripted_entry(scenario)
        effects[name] = {"*": "read"}
    own["allow"] = {"sqlite": ["*"]} if "sqlite" in names else {}
    path = folder / "config.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _peer(options: CompileOptions, config: Path, notes: list[str]) -> Peer | None:
    if not options.fetch:
        notes.append(f"{PEER[0]} was left out: a quick run fetches nothing")
        return None
    try:
        python = fetch_peer(cache_folder(), options.listener)
    except (BenchError, ProvisioningError) as error:
        notes.append(f"{PEER[0]} {PEER[1]} could not be had: {error}")
        return None
    return Peer(python, load_config(config).effects)


async def _measured(
    families: Sequence[Family], bank: Bank, peer: Peer | None, options: CompileOptions
) -> list[FamilyReport]:
    """Measure the families that are not kept from an earlier run."""
    kept = Kept(options.keep)
    reports: list[FamilyReport] = []
    for number, family in enumerate(families, 1):

        async def make(family: Family = family) -> FamilyReport:
            return await measure_family(family, bank, peer)

        report = await kept.or_made("accuracy", family.id, FamilyReport, make)
        told = ", ".join(f"{a.way}: {'right' if a.right else 'not right'}" for a in report.attempts)
        options.listener(Progress("bench", f"{number} of {len(families)}: {family.id}: {told}"))
        reports.append(report)
    return reports


def _versions() -> dict[str, str]:
    fetched = {server.distribution: server.version for server in FETCHED_SERVERS}
    own = {name: metadata.version(name) for name in ("skillbank", "mcp")}
    return {**installed_versions(), **fetched, PEER[0]: PEER[1], **own}


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for."""
    from server.wiring import open_bank

    options = quick_compile_options() if request.quick else CompileOptions()
    parts = request.parts_of(COMPILE_PARTS)
    options = replace(options, parts=parts, keep=request.keep, listener=show_progress)
    report = await run_compile_bench(options, open_bank)
    return Measured(report, render_compile_report(report))

"""What the catalog benchmark found: the measures, and each number beside its target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from server.bench.endurance_bench import ConnectMeasure, MemoryMeasure
from server.bench.isolation_bench import IsolationMeasure
from server.bench.measures import Spread
from server.bench.readiness_bench import ReadinessMeasure
from server.bench.relay_bench import RelayMeasure
from server.bench.search_report import SearchBenchReport

__all__ = ["CatalogBenchReport", "Finding", "findings_of", "render_catalog_report", "search_findings"]


class Finding(BaseModel):
    """One number beside its target."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    value: float
    unit: str
    at_most: float
    """The target: the greatest value that meets it."""

    @property
    def is_met(self) -> bool:
        """Whether the target is met."""
        return self.value <= self.at_most


class CatalogBenchReport(BaseModel):
    """The whole run. Real processes and the real protocol; the servers behind are this package's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bench: Literal["catalog"] = "catalog"
    quick: bool
    relay: RelayMeasure
    readiness: ReadinessMeasure
    isolation: IsolationMeasure
    memory: MemoryMeasure | None
    """None where the kernel does not say."""
    connects: ConnectMeasure | None
    """None where the kernel does not say."""
    search: SearchBenchReport
    findings: tuple[Finding, ...]
    not_measured: tuple[str, ...]
    machine: str
    versions: dict[str, str]
    seconds: float


def findings_of(
    relay: RelayMeasure,
    readiness: ReadinessMeasure,
    isolation: IsolationMeasure,
    memory: MemoryMeasure | None,
    connects: ConnectMeasure | None,
) -> tuple[Finding, ...]:
    """Return every number that has a target."""

    def finding(what: str, value: float, unit: str, at_most: float) -> Finding:
        return Finding(what=what, value=value, unit=unit, at_most=at_most)

    of_dead = f"with {readiness.upstreams} servers, {readiness.dead} of them dead"
    found = [
        finding("relayed call over the bare SDK relay, p50", relay.ratio_median, "times", 1.2),
        finding("relayed call over the bare SDK relay, p95", relay.ratio_p95, "times", 1.2),
    ]
    if (added := relay.added_over_fastmcp) is not None:
        found.append(finding("time added over what FastMCP's proxy adds, p50", added, "times", 0.5))
    found += [
        finding(f"tools/list, skills too, {of_dead}, slowest", readiness.listed_seconds.max, "s", 1.5),
        finding(f"find_tools {of_dead}, slowest", readiness.found_seconds.max, "s", 1.5),
        finding(f"calls on B beside {isolation.stuck} stuck on A, p95", isolation.ratio_p95, "times", 1.2),
    ]
    if memory is not None:
        what = f"growth of memory over {memory.cycles} list and call cycles"
        found.append(finding(what, 100 * memory.growth, "%", 5.0))
    if connects is not None:
        what = f"processes left by {connects.cycles} connect cycles"
        found.append(finding(what, float(max(connects.left, connects.descendants)), "", 0.0))
    return tuple(found)


def search_findings(search: SearchBenchReport) -> tuple[Finding, ...]:
    """Return every number of the search that has a target: of requests for one thing, held out."""
    targets = {"embeddings": ("meaning and words", 10.0), "words": ("words alone", 50.0)}
    found: list[Finding] = []
    for way, (name, at_most) in targets.items():
        if way not in search.ways:
            continue
        missed = 100 * (1 - search.ways[way].one_thing.at_5)
        what = f"wanted tools not in the first five of {search.tools}, {name}"
        found.append(Finding(what=what, value=missed, unit="%", at_most=at_most))
        spread = search.milliseconds[way]["one query"]
        what = f"one query over {search.tools} tools, {name}, p95"
        found.append(Finding(what=what, value=spread.p95, unit="ms", at_most=10.0))
    return tuple(found)


def render_catalog_report(report: CatalogBenchReport) -> str:
    """Return the report as Markdown that reads well on a terminal too."""
    width = max(len(finding.what) for finding in report.findings)
    blocks = [
        [f"| {'what':<{width}} | measured | target | met |", "|---|---:|---:|---|"],
        [_row(finding, width) for finding in report.findings],
        ["", "| milliseconds           | p50 | p95 | max |", "|---|---:|---:|---:|"],
        [_times(name, spread) for name, spread in _spreads(report)],
        ["", *_remarks(report)],
    ]
    return "\n".join(line for block in blocks for line in block) + "\n"


def _row(finding: Finding, width: int) -> str:
    unit = f" {finding.unit}".rstrip()
    met = "yes" if finding.is_met else "no"
    return f"| {finding.what:<{width}} | {finding.value:.2f}{unit} | {finding.at_most:g}{unit} | {met} |"


def _times(name: str, spread: Spread) -> str:
    return f"| {name:<22} | {spread.median:.2f} | {spread.p95:.2f} | {spread.max:.1f} |"


def _spreads(report: CatalogBenchReport) -> Iterable[tuple[str, Spread]]:
    yield "no relay", report.relay.direct_ms
    yield "bare SDK relay", report.relay.bare_ms
    if report.relay.fastmcp_ms is not None:
        yield "FastMCP `create_proxy`", report.relay.fastmcp_ms
    yield "skillbank `call_tool`", report.relay.skillbank_ms
    yield "B alone", report.isolation.alone_ms
    yield f"B beside {report.isolation.stuck} stuck", report.isolation.beside_ms


def _remarks(report: CatalogBenchReport) -> Iterable[str]:
    yield (
        f"- {report.relay.calls} calls each way and {report.isolation.alone_ms.count} on B, taking turns;"
        f" {report.readiness.listed_seconds.count} starts"
        + ("; --quick: a smaller size than the targets are stated for" if report.quick else "")
    )
    if (least := report.relay.bare_added_over_fastmcp) is not None:
        yield f"- the bare SDK relay itself adds {least:.2f} times what FastMCP's proxy adds"
    if (memory := report.memory) is not None:
        yield (
            f"- memory: {memory.settled_mb:.1f} MB after a quarter of the cycles,"
            f" {memory.last_mb:.1f} MB at the end; {memory.slope_kb_per_1000:.1f} kB more per 1,000 cycles"
        )
    if (connects := report.connects) is not None:
        yield (
            f"- connecting: each through `sh -c` with a background child; {connects.abandoned} of"
            f" {connects.cycles} abandoned half-way"
        )
    yield from (f"- not measured here: {what}" for what in report.not_measured)
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    yield f"- {report.machine}; {versions}; nothing is drawn at random; {report.seconds:.0f} s in all"

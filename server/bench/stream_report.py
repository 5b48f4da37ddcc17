"""What the stream benchmark found: the operating curve of suppression, and streams over real servers."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from server.bench.stream_runs import StreamRun, StreamsReport
from server.bench.suppression import CurvePoint, SuppressionReport

__all__ = ["StreamBenchReport", "render_stream_report"]


class StreamBenchReport(BaseModel):
    """Answer of `bench stream`."""

    model_config = ConfigDict(frozen=True)

    bench: Literal["stream"] = "stream"
    quick: bool
    versions: dict[str, str] = Field(default_factory=dict[str, str])
    suppression: SuppressionReport | None = None
    """Simulated. None where it was not asked for."""
    streams: StreamsReport | None = None
    """Over real servers. None where it was not asked for."""
    seconds: float = 0.0


def render_stream_report(report: StreamBenchReport) -> str:
    """Return the tables of the report as Markdown."""
    parts = [_suppression(report.suppression)] if report.suppression else []
    parts += [_streams(report.streams)] if report.streams else []
    return "\n".join(parts)


def _suppression(found: SuppressionReport) -> str:
    head = (
        f"Simulated: {found.points[0].streams} streams of each kind, seed {found.seed}; no tool is called."
        f" Error rate {found.error_rate:g}, {found.withheld:.0%} withheld,"
        f" {found.withheld_under_suspicion:.0%} under suspicion. Audits are thought to pass.\n\n"
        "| skill | right with it | right without | guided uses | restricted, 95 % | after, median |"
        " the paper's rule would suppress |\n|---|---:|---:|---:|---:|---:|---:|\n"
    )
    return head + "".join(_row(point) for point in found.points)


def _row(point: CurvePoint) -> str:
    after = f"{point.median_uses:g}" if point.median_uses is not None else "–"
    return (
        f"| {point.kind} | {point.guided_rate:.2f} | {point.control_rate:.2f} | {point.within} |"
        f" {point.share:.1%} ({point.low:.1%} to {point.high:.1%}) | {after} | {point.paper_share:.0%} |\n"
    )


def _streams(found: StreamsReport) -> str:
    head = (
        f"{found.families} families over {len(found.servers)} real servers ({', '.join(found.servers)}), seed"
        f" {found.seed}, planner: {found.planner}.\n\n"
        "| condition | right | direct hits | right of these | second half | withheld | calls | seconds |"
        " active skills by quarter |\n|---|---:|---:|---:|---:|---:|---:|---:|---|\n"
    )
    rows = "".join(_run(run) for run in found.runs)
    pairs = "".join(
        f"- {pair.one} against {pair.two}: only the first right {pair.only_one}, only the second"
        f" {pair.only_two}, McNemar p = {pair.p:.3g}\n"
        for pair in found.pairs
    )
    frozen, planted = found.frozen, found.planted
    told = (
        f"- frozen bank, {frozen.held_out} held-out instances: {frozen.direct_right} right with the bank"
        f" ({frozen.direct_hits} direct), {frozen.dynamic_right} planned from scratch\n"
        f"- planted harmful skill with tests it passes, {planted.streams} streams: restricted in"
        f" {planted.restricted}, within 14 guided uses in {planted.restricted_within_14}; guided uses"
        f" {', '.join(map(str, planted.guided_uses))}; {planted.answered_right} of {planted.answered} tasks"
        " answered right meanwhile\n"
    )
    missing = "".join(f"- not measured: {what}\n" for what in found.not_measured)
    return f"{head}{rows}\n{pairs}{told}{missing}"


def _run(run: StreamRun) -> str:
    late = f"{run.late_direct}/{run.late_tasks}"
    share = f"{run.direct_right / run.direct:.0%}" if run.direct else "–"
    return (
        f"| {run.condition} | {run.right}/{run.tasks} | {run.direct} | {share} | {late} | {run.withheld} |"
        f" {run.calls} | {run.seconds:.0f} | {', '.join(map(str, run.bank))} |\n"
    )

"""What the stream benchmark found: the operating curve of suppression, and streams over real servers."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

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
    seconds: float = 0.0


def render_stream_report(report: StreamBenchReport) -> str:
    """Return the tables of the report as Markdown."""
    parts = [_suppression(report.suppression)] if report.suppression else []
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

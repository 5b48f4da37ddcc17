"""The report of the drive benchmark: how far a driven model gets by context template, as data and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["ContextRow", "DriveBenchReport", "render_drive_report"]


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ContextRow(_Report):
    """One task, driven under one template in one window."""

    driver: str
    """`scripted policy`, or the model's name."""
    template: str
    window: int
    """Tokens of prompt and answer together."""
    task: str
    steps: int
    """That the task needs, its end included."""
    taken: int
    right: bool
    ended: str
    tokens: int
    """Prompts and answers of the whole drive."""
    largest_prompt: int
    """Tokens, estimated for the scripted policy."""
    seconds: float
    notes: str = ""


class DriveBenchReport(_Report):
    """Answer of `bench drive`."""

    bench: Literal["drive"] = "drive"
    quick: bool
    rows: tuple[ContextRow, ...]
    versions: dict[str, str]
    seconds: float
    notes: tuple[str, ...] = ()


def render_drive_report(report: DriveBenchReport) -> str:
    """Return the tables in Markdown."""
    lines = [
        "| driver | template | window | tasks | right | steps needed | steps taken | tokens per task |"
        " largest prompt | ended by |",
        "|---|---|---:|---:|---:|---|---:|---:|---:|---|",
    ]
    keys = dict.fromkeys((row.driver, row.template, row.window) for row in report.rows)
    for driver, template, window in keys:
        rows = [r for r in report.rows if (r.driver, r.template, r.window) == (driver, template, window)]
        lines.append(_line(driver, template, window, rows))
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    said = [f"- {note}" for note in report.notes]
    return "\n".join([*lines, "", *said, f"- {report.seconds:.0f} s in all; {versions}"]) + "\n"


def _line(driver: str, template: str, window: int, rows: Sequence[ContextRow]) -> str:
    ended = ", ".join(f"{row.ended} at {row.taken} of {row.steps}" for row in rows if not row.right)
    needed = ", ".join(str(row.steps) for row in rows)
    right, count = sum(row.right for row in rows), len(rows)
    taken, tokens = sum(row.taken for row in rows), sum(row.tokens for row in rows) // count
    largest = max(row.largest_prompt for row in rows)
    return (
        f"| {driver} | {template} | {window} | {count} | **{right}** | {needed} | {taken} | {tokens} |"
        f" {largest} | {ended or 'finished'} |"
    )

"""Draws recordings for a person: the list, one conversation's calls, what was saved or forgotten."""

from __future__ import annotations

import json
from datetime import datetime

from rich.console import Console
from rich.text import Text

from server.cli.render import plain, table
from server.cli.render_skills import render_checks, render_skill_moved
from server.reports import ForgottenReport, RecordingReport, RecordingsReport, SavedReport

__all__ = ["render_forgotten", "render_recording", "render_recordings", "render_saved"]


def render_recordings(console: Console, report: RecordingsReport) -> None:
    """Draw the answer of `record list`."""
    if not report.recordings:
        console.print("nothing recorded yet: clients' calls through call_tool are kept", style="dim")
        return
    drawn = table("recording", "calls", "first call", "last call")
    for kept in report.recordings:
        drawn.add_row(
            plain(kept.name, "bold"), str(kept.calls), _moment(kept.started_at), _moment(kept.last_at)
        )
    console.print(drawn)


def render_recording(console: Console, report: RecordingReport) -> None:
    """Draw the answer of `record show`."""
    drawn = table("", "tool", "arguments", "came to", "seconds")
    for step in report.steps:
        came_to = step.detail or step.outcome
        drawn.add_row(
            str(step.number),
            plain(step.tool, "bold"),
            plain(json.dumps(step.arguments, ensure_ascii=False), limit=120),
            plain(came_to, "green" if step.outcome == "succeeded" else "red", limit=80),
            f"{step.seconds:.3f}",
        )
    console.print(drawn)


def render_saved(console: Console, report: SavedReport) -> None:
    """Draw the answer of `skills save`."""
    if report.skill is None:
        console.print(Text.assemble(("not saved: ", "red"), plain(report.reason)), soft_wrap=True)
    else:
        render_skill_moved(console, report.skill)
    if report.verdict is not None:
        render_checks(console, report.verdict.checks)


def render_forgotten(console: Console, report: ForgottenReport) -> None:
    """Draw the answer of `record prune`."""
    if not report.forgotten:
        console.print("nothing to forget", style="dim")
    for name, calls in report.forgotten.items():
        console.print(Text.assemble("forgot ", plain(name, "bold"), f" ({calls} calls)"))


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")

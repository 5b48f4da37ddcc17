"""Draws what waits for a person: what each proposed version changes and what speaks against it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from server.cli.render import heading, plain
from server.cli.render_skills import render_checks
from server.reports import ReviewItem, ReviewReport

__all__ = ["render_review", "render_review_item"]


def render_review(console: Console, report: ReviewReport) -> None:
    """Draw the answer of `review`."""
    if not report.waiting:
        console.print("nothing waits for you", style="dim")
    for item in report.waiting:
        render_review_item(console, item)


def render_review_item(console: Console, item: ReviewItem) -> None:
    """Draw one proposed version: why it waits, its diff, failed checks and tests."""
    over = f", would replace version {item.replaces}" if item.replaces is not None else ""
    heading(console, f"{item.name}@{item.version}{over}")
    console.print(plain(item.reason, "yellow"), soft_wrap=True)
    console.print(plain(item.description), soft_wrap=True)
    for sign, names in (("+", item.inputs_added), ("−", item.inputs_removed)):
        if names and item.replaces is not None:
            console.print(plain(f"{sign} inputs: {', '.join(names)}"))
    for line in item.diff.splitlines():
        console.print(Text(line, _style(line)), soft_wrap=True)
    render_checks(console, item.failed)
    console.print(plain(f"tests: {', '.join(item.tests) or 'none'}", "dim"))


def _style(line: str) -> str:
    return {"+": "green", "-": "red"}.get(line[:1], "dim")

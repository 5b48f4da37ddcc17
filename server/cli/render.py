"""Draws reports for a person: faults, runs, repairs. Skills and servers are drawn beside.

All that comes from a tool server is made plain first: no control characters, no markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import JsonValue
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from catalog.plain_text import plain_text
from server.reports import CandidateRecord, CheckReport, NotRepeated, RepairReport, RunReport
from skills_store.trace import Outcome, Status, Step, Verification
from skills_store.workflow.edits import render_edit
from skills_store.workflow.faults import Fault

__all__ = [
    "heading",
    "mark",
    "plain",
    "render_check",
    "render_difference",
    "render_faults",
    "render_repair",
    "render_run",
    "render_value",
    "table",
]

_LONGEST_VALUE = 4_000
_LONGEST_CELL = 200

_STATUS_STYLE: dict[Status, str] = {
    "verified": "bold green",
    "succeeded": "bold green",
    "unverified": "bold yellow",
    "needs_approval": "bold yellow",
    "failed": "bold red",
    "cancelled": "bold red",
}
_OUTCOME_MARK: dict[Outcome, Text] = {
    "succeeded": Text("✓", "green"),
    "failed": Text("✗", "red"),
    "skipped": Text("-", "dim"),
    "not_reached": Text("·", "dim"),
}


def plain(value: object, style: str = "", limit: int | None = None) -> Text:
    """Return text of a stranger, safe to draw."""
    return Text(plain_text(str(value), limit), style)


def mark(passed: bool) -> Text:
    """Return the mark of a check."""
    return Text("✓", "green") if passed else Text("✗", "red")


def heading(console: Console, title: str) -> None:
    """Draw the title of a section."""
    console.print(f"\n[bold]{escape(title)}[/bold]")


def table(*columns: str) -> Table:
    """Return an empty table of the house's look."""
    drawn = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        drawn.add_column(column, overflow="fold")
    return drawn


def render_value(console: Console, value: JsonValue) -> None:
    """Draw a JSON value."""
    shown = json.dumps(value, indent=2, ensure_ascii=False)
    console.print(plain(shown, limit=_LONGEST_VALUE), soft_wrap=True)


def render_check(console: Console, report: CheckReport) -> None:
    """Draw the answer of `check`."""
    if report.faults:
        render_faults(console, report.faults)
        console.print(f"\n{_counted(len(report.faults), 'fault')}", style="bold red")
    else:
        console.print("no faults", style="bold green")
    for warning in report.warnings:
        console.print(Text.assemble(("note  ", "yellow"), plain(warning)), soft_wrap=True)


def render_faults(console: Console, faults: Iterable[Fault]) -> None:
    """Draw faults, each with kind, place and message."""
    for fault in faults:
        node = f"{fault.node}[{fault.item}]" if fault.item is not None else fault.node or "workflow"
        console.print(
            Text.assemble(
                ("✗ ", "red"),
                (fault.kind, "bold"),
                "  ",
                plain(node, "cyan"),
                "  ",
                plain(fault.pointer, "dim"),
            ),
            soft_wrap=True,
        )
        console.print(Text.assemble("  ", plain(fault.message)), soft_wrap=True)


def render_run(console: Console, report: RunReport, *, trace: bool = False) -> None:
    """Draw the answer of `run`."""
    if trace:
        _render_trace(console, report.trace)
    render_faults(console, report.faults)
    _render_result(console, report.status, report.outputs)
    _render_verifications(console, report.verifications)
    _render_held_back(console, report.not_repeated)
    console.print(f"{_counted(report.calls, 'call')}, {report.seconds:.1f} s", style="dim")


def render_repair(console: Console, report: RepairReport, *, trace: bool = False) -> None:
    """Draw the answer of `repair` and `solve`: before, edits, diff, result, and what it led to."""
    if report.route is not None:
        reasons = "; ".join(report.route_reasons)
        console.print(
            Text.assemble(("route ", "dim"), report.route, "  ", plain(reasons, "dim")), soft_wrap=True
        )
    if report.initial_faults:
        heading(console, "Before")
        render_faults(console, report.initial_faults)
    if report.edits:
        heading(console, "Edits")
        for edit in report.edits:
            console.print(Text.assemble("• ", plain(render_edit(edit))), soft_wrap=True)
    _render_lineage(console, report)
    if report.diff:
        heading(console, "Difference")
        render_difference(console, report.diff)
    if trace:
        heading(console, "Steps")
        _render_trace(console, report.trace)
    heading(console, "Result")
    render_faults(console, report.faults)
    _render_result(console, report.status, report.outputs)
    _render_verifications(console, report.verifications)
    _render_skill(console, report)
    _render_held_back(console, report.not_repeated)
    spent = f", ended by its budget of {report.budget_spent}" if report.budget_spent else ""
    console.print(
        f"{_counted(report.candidates, 'candidate')}, {_counted(report.calls, 'call')}, "
        f"{report.seconds:.1f} s{escape(spent)}",
        style="dim",
    )


def _render_lineage(console: Console, report: RepairReport) -> None:
    """Draw how the search came to what is reported: each candidate on the way, the original first."""
    by_id = {record.id: record for record in report.lineage}
    way: list[CandidateRecord] = []
    at = by_id.get(report.candidate or "")
    while at is not None and at not in way:
        way.append(at)
        at = by_id.get(at.parent or "")
    if len(way) < 2:
        return
    heading(console, "Lineage")
    for number, record in enumerate(reversed(way)):
        edits = "; ".join(record.edits) if record.parent else "the workflow as given"
        state = f"{record.status.replace('_', ' ')}, {_counted(len(record.faults), 'fault')}"
        line = Text.assemble(
            (f"{number} ", "dim"), plain(edits), "  ", (f"{state}, score {record.score:.2f}", "dim")
        )
        console.print(line, soft_wrap=True)


def _render_result(console: Console, status: Status, outputs: dict[str, JsonValue] | None) -> None:
    if outputs is not None:
        render_value(console, outputs)
    console.print(status.replace("_", " "), style=_STATUS_STYLE[status])


def _render_verifications(console: Console, verifications: Iterable[Verification]) -> None:
    for verification in verifications:
        line = Text.assemble(mark(verification.passed), f" {verification.by}  ", plain(verification.detail))
        console.print(line, soft_wrap=True)


def _render_skill(console: Console, report: RepairReport) -> None:
    if report.skill is None:
        if report.skill_reason:
            console.print(Text.assemble(("no skill  ", "dim"), plain(report.skill_reason)), soft_wrap=True)
        return
    reason = report.verdict.reason if report.verdict else ""
    heading(console, "Skill")
    console.print(
        Text.assemble(plain(report.skill, "bold"), f"  {report.skill_state or ''}  ", plain(reason, "dim")),
        soft_wrap=True,
    )
    for check in report.verdict.checks if report.verdict else ():
        console.print(
            Text.assemble(
                "  ",
                mark(check.passed),
                f" {check.gate}: ",
                plain(check.name),
                "  ",
                plain(check.detail, "dim"),
            ),
            soft_wrap=True,
        )


def _render_held_back(console: Console, held_back: tuple[NotRepeated, ...]) -> None:
    if not held_back:
        return
    heading(console, "Not run or not repeated")
    for call in held_back:
        node = f"{call.node}: " if call.node else ""
        console.print(
            Text.assemble(
                "• ", plain(f"{node}{call.tool}", "bold"), f" ({call.effect.value})  ", plain(call.reason)
            ),
            soft_wrap=True,
        )
        console.print(Text.assemble("  to allow it: ", plain(call.allow, "cyan")), soft_wrap=True)


def render_difference(console: Console, diff: str) -> None:
    """Draw a difference of two workflows, coloured on a terminal."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    _, *lines = plain_text(f"-\n{diff}").splitlines()  # which would take the indent of a first line
    for line in lines:
        console.print(Text(line, styles.get(line[:1], "")), soft_wrap=True)


def _render_trace(console: Console, steps: Iterable[Step]) -> None:
    drawn = table("", "step", "calls", "arguments", "answer", "s")
    for step in steps:
        name = step.node if step.item is None else f"{step.node}[{step.item}]"
        answer = step.fault.message if step.fault else _compact(step.output)
        drawn.add_row(
            _OUTCOME_MARK[step.outcome],
            plain(name),
            plain(step.tool or step.skill or ""),
            plain(_compact(dict(step.arguments)), limit=_LONGEST_CELL),
            plain(answer, limit=_LONGEST_CELL),
            "memory" if step.from_memory else f"{step.seconds:.2f}",
        )
    console.print(drawn)


def _compact(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"

"""Draws what rounds of evolving brought, for a person."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from server.cli.render import plain, table
from server.evolving.report import EvolveReport, RoundReport

__all__ = ["render_evolution"]

_TASKS_SHOWN = 20


def render_evolution(console: Console, report: EvolveReport) -> None:
    """Draw the answer of `evolve`."""
    drawn = table(
        "round",
        "tasks made",
        "picked",
        "solved",
        "by a skill",
        "taught",
        "skills",
        "lessons",
        "exam",
        "calls",
    )
    for one in report.rounds:
        drawn.add_row(*_row(one))
    console.print(drawn)
    for one in report.rounds:
        _beside(console, one)
    _tasks(console, report)
    ended = f"; it ended early: {report.stopped}" if report.stopped else ""
    console.print(
        plain(f"{report.calls} of {report.budget_calls} calls, {report.seconds:.0f} s{ended}"), soft_wrap=True
    )
    for kind, path in report.files.items():
        console.print(plain(f"{kind}: {path}"), soft_wrap=True)


def _row(one: RoundReport) -> tuple[str, ...]:
    picked = f"{one.picked_synthetic} made, {one.picked_user} yours"
    return (
        str(one.number),
        str(sum(one.explored.values())),
        picked,
        f"{one.solved}/{one.attempts}",
        str(one.by_skill),
        str(len(one.taught)),
        f"+{len(one.skills)}",
        f"{one.lessons:+d}",
        f"{one.examined_right}/{one.examined}",
        str(one.calls),
    )


def _beside(console: Console, one: RoundReport) -> None:
    if one.skills:
        console.print(plain(f"round {one.number}: new in use: {', '.join(one.skills)}"), soft_wrap=True)
    for name, why in [*one.problems.items(), *one.not_taught.items()]:
        console.print(plain(f"round {one.number}: {name}: {why}"), style="yellow", soft_wrap=True)
    if one.judged:
        console.print(
            f"round {one.number}: a model told of {one.judged} attempts whose answers no check can tell"
        )
    if one.stopped_by_world:
        console.print(
            f"round {one.number}: {one.stopped_by_world} attempts say nothing: the server or a missing"
            " approval stood in the way",
            style="yellow",
        )


def _tasks(console: Console, report: EvolveReport) -> None:
    tried = [task for task in report.tasks if task.attempts]
    for task in tried[:_TASKS_SHOWN]:
        exam = "" if task.examined is None else ", exam passed" if task.examined else ", exam failed"
        console.print(
            Text.assemble("  ", (f"{task.id} {task.right}/{task.attempts}{exam}  ", "dim"), plain(task.task)),
            soft_wrap=True,
        )
    if len(tried) > _TASKS_SHOWN:
        console.print(f"  and {len(tried) - _TASKS_SHOWN} more (--json has all)", style="dim")

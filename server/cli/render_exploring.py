"""Draws an exploration for a person: what would be called, coverage, health, tasks, skills."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from server.cli.render import plain, table
from server.exploration.coverage import Coverage
from server.exploration.health.files import render_health
from server.exploration.health.findings import HealthReport
from server.exploration.report import ExplorationPlan, ExplorationReport
from server.exploration.tasks import ExploredTask

__all__ = ["render_exploration", "render_plan"]

_STYLE = {"error": "red", "warning": "yellow", "note": "dim"}


def render_plan(console: Console, plan: ExplorationPlan) -> None:
    """Draw what an exploration would do."""
    console.print(
        Text.assemble("Exploring ", (plan.server, "bold"), f" would start {plan.command}"), soft_wrap=True
    )
    console.print(
        f"and make up to {plan.budget_calls} calls, {plan.calls_per_second:g} a second at most, in fresh"
        f" processes (reset: {plan.reset}); tools that may be called: {len(plan.tools)}"
    )
    for tool in plan.tools:
        console.print(
            Text.assemble("  ", plain(tool.name), (f"  {tool.effect}, {tool.reason}", "dim")), soft_wrap=True
        )
    for name, reason in plan.withheld.items():
        console.print(Text.assemble("  never ", plain(name), (f"  {reason}", "dim")), soft_wrap=True)
    console.print(f"model: {plan.model or 'none; all of it is deterministic'}", markup=False)
    if plan.learns:
        console.print("making skills of the tasks runs them again on top of that; --no-learn leaves it out")
    if plan.style and not plan.model:
        console.print(plain(f"the style {plan.style!r} needs a model and is not used"), soft_wrap=True)


def render_exploration(console: Console, report: ExplorationReport) -> None:
    """Draw the answer of `explore`."""
    if report.unreachable:
        console.print(plain(f"nothing was called: {report.unreachable}"), soft_wrap=True)
    if report.withheld:
        console.print(plain(f"nothing was called: {report.withheld}"), soft_wrap=True)
    _coverage(console, report.coverage, report.server)
    _health(console, report.health)
    if report.tasks or report.drafts:
        _tasks(console, report)
    if report.skills:
        drawn = table("skill", "state", "task")
        for skill in report.skills:
            drawn.add_row(plain(skill.name), skill.state, skill.task)
        console.print(drawn)
    for skill in report.refused:
        console.print(
            plain(f"not in use: {skill.name} of {skill.task}: {skill.reason}"), style="dim", soft_wrap=True
        )
    ended = f"; it ended early: {report.stopped}" if report.stopped else ""
    console.print(
        f"{report.calls} of {report.budget_calls} calls, {report.seconds:.0f} s{ended}",
        markup=False,
        soft_wrap=True,
    )
    if report.model_problem:
        console.print(plain(f"no model took part: {report.model_problem}"), soft_wrap=True)
    for kind, path in report.files.items():
        console.print(plain(f"{kind}: {path}"), soft_wrap=True)


def _coverage(console: Console, found: Coverage, server: str) -> None:
    drawn = table("covered", "of", "what")
    drawn.add_row(str(found.called), str(found.tools), "tools called")
    drawn.add_row(str(found.succeeded), str(found.tools), "tools that succeeded")
    drawn.add_row(str(found.joined), str(found.pairs), "pairs of tools, one reading the other's answer")
    drawn.add_row(str(found.enum_values_tried), str(found.enum_values), "enumerated values")
    console.print(drawn)
    if found.withheld:
        console.print(
            plain(
                f"{found.withheld} tools were never called: what they do may not be repeated. Say which only"
                f" read (`skillbank effects set {server}/TOOL read`), or that a fresh process restores the"
                f" server (`skillbank effects set {server} --reset process`)"
            ),
            soft_wrap=True,
        )
    if found.errors:
        counted = ", ".join(f"{name} {count}" for name, count in found.errors.items())
        console.print(f"failed calls: {counted}", markup=False)


def _health(console: Console, health: HealthReport) -> None:
    for line in render_health(health).splitlines():
        style = _STYLE.get(line.split("  ", 1)[0]) or ("dim" if line.startswith("      ") else "")
        console.print(Text(line, style), soft_wrap=True)


def _tasks(console: Console, report: ExplorationReport) -> None:
    console.print(Text(f"{len(report.tasks)} tasks of {report.drafts} drafts", "bold"))
    for task in report.tasks:
        _task(console, task)
    for reason, count in report.dropped.items():
        console.print(plain(f"  dropped {count}: {reason}"), style="dim", soft_wrap=True)


def _task(console: Console, task: ExploredTask) -> None:
    console.print(Text.assemble("  ", (f"{task.id} ", "dim"), plain(task.task)), soft_wrap=True)
    checks = "; ".join(task.assertions) or "by a judge only: its answers are volatile"
    console.print(Text.assemble("      ", plain(checks)), style="dim", soft_wrap=True)

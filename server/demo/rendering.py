"""Draws the parts of the demo for a person."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence

from pydantic import JsonValue
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from catalog.effects import Reset
from server.cli.render import heading, mark, plain, render_difference, render_faults, table
from server.demo.report import DemoReport, Skipped, StoryReport
from server.demo.stories import Story
from server.reports import ServerReport
from skills_store.workflow.edits import Edit, apply_edit, render_edit
from skills_store.workflow.faults import Fault
from skills_store.workflow.model import parse_workflow

__all__ = ["render_broken", "render_calls", "render_end", "render_mended", "render_servers"]

_LONGEST_MESSAGE = 400


def render_servers(console: Console, servers: Sequence[ServerReport], skipped: Sequence[Skipped]) -> None:
    """Draw the servers that were started."""
    tools = sum(server.tools for server in servers)
    heading(console, f"{len(servers)} tool servers from PyPI, {tools} tools; no model, no key")
    drawn = table("", "server", "tools", "start, s", "")
    for server in servers:
        is_stateful = server.reset is not Reset.NONE
        drawn.add_row(
            mark(server.status == "ok"),
            plain(server.name, "bold"),
            str(server.tools),
            f"{server.seconds:.1f}",
            Text("stateful: every candidate gets a process of its own" if is_stateful else "", "dim"),
        )
    console.print(drawn)
    for server in servers:
        for problem in server.problems:
            console.print(Text.assemble(plain(server.name, "bold"), ": ", plain(problem)), soft_wrap=True)
    for story in skipped:
        _print(console, ("skipped  ", "yellow"), (story.name, "bold"), f": {story.reason}")


def render_broken(console: Console, story: Story, faults: Sequence[Fault]) -> None:
    """Draw a story's task, the steps of its workflow, and what is wrong with it before it is run."""
    console.print()
    console.print(Rule(plain(story.title, "bold"), align="left", style="dim"))
    _print(console, ("task  ", "dim"), plain(story.task))
    nodes = " → ".join(f"{node.id} ({node.target})" for node in parse_workflow(story.broken).nodes)
    _print(console, ("plan  ", "dim"), plain(nodes))
    heading(console, f"The plan is broken: {len(story.mistakes)} mistakes at once")
    for mistake in story.mistakes:
        _print(console, ("• ", "red"), (mistake.kind, "bold"), f" in {mistake.place}: {mistake.detail}")
    heading(console, "Check, without running anything")
    render_faults(console, faults)


def render_mended(console: Console, report: StoryReport) -> None:
    """Draw the repair of a story and the verdict on its skill."""
    if report.said:
        heading(console, "What the servers answered")
        for fault in report.said:
            message = plain(fault.message, limit=_LONGEST_MESSAGE)
            _print(console, ("✗ ", "red"), (fault.kind, "bold"), "  ", plain(fault.node or "", "cyan"))
            _print(console, "  ", message)
    heading(console, f"Repair: {len(report.edits)} edits")
    for line, reason in _explained(report):
        _print(console, ("• ", "green"), plain(line))
        _print(console, ("  because ", "dim"), plain(reason, "dim"))
    heading(console, "Difference")
    render_difference(console, report.diff)
    heading(console, "Result")
    render_faults(console, report.left)
    _print(console, plain(_json(report.outputs), "cyan"))
    for assertion in report.assertions:
        _print(console, mark(report.status == "verified"), " ", plain(assertion))
    spent = f"{report.candidates} candidates, {report.calls} calls to servers, {report.seconds:.1f} s in all"
    _print(
        console, (report.status, "bold green" if report.status == "verified" else "bold red"), f"  {spent}"
    )
    _render_verdict(console, report)


def _explained(report: StoryReport) -> Iterator[tuple[str, str]]:
    """Yield each edit as a line that shows what stood there before, with its reason."""
    workflow = parse_workflow(report.broken)
    for edit in report.edits:
        yield render_edit(edit, workflow), _reason(edit)
        workflow = apply_edit(workflow, edit)


def _reason(edit: Edit) -> str:
    return edit.because or "it was the cheapest edit that answers the fault"


def _render_verdict(console: Console, report: StoryReport) -> None:
    heading(console, f"Skill {report.skill or report.name}: {report.skill_state or 'none'}")
    _print(console, plain(report.skill_reason, "dim"))
    for check in report.verdict.checks if report.verdict else ():
        _print(console, mark(check.passed), f" {check.gate}: {check.name}  ", plain(check.detail, "dim"))


def render_calls(
    console: Console, command: Sequence[str], tools: Sequence[str], reports: Sequence[StoryReport]
) -> None:
    """Draw what a client of our own server saw and was answered."""
    console.print()
    console.print(Rule(Text("As a client would: over MCP, with other arguments", "bold"), align="left"))
    _print(console, ("$ ", "dim"), plain(shlex.join(command)))
    ours = {report.name for report in reports}
    listed = [Text(tool, "bold green" if tool in ours else "dim") for tool in tools]
    _print(console, ("tools/list  ", "dim"), Text(", ").join(listed))
    for report in reports:
        _render_call(console, report)


def _render_call(console: Console, report: StoryReport) -> None:
    called = report.called
    if called is None:
        return
    console.print()
    _print(
        console, mark(called.right), " ", plain(report.name, "bold"), plain(f"({_json(called.arguments)})")
    )
    if called.result is not None:
        _print(console, "  = ", plain(_json(called.result), "cyan"), (f"  {called.seconds:.1f} s", "dim"))
    for assertion in called.assertions if called.right else ():
        _print(console, "    ", mark(True), " ", plain(assertion, "dim"))
    if called.problem:
        _print(console, ("    not right: ", "red"), plain(called.problem, limit=_LONGEST_MESSAGE))


def render_end(console: Console, report: DemoReport) -> None:
    """Draw what it came to, and how a person goes on."""
    console.print()
    console.print(Rule(Text("Connect your own client", "bold"), align="left"))
    _print(console, plain(f"  {report.connect.command}", "bold"))
    _print(console, ("or in its configuration file:", "dim"))
    _print(console, plain(json.dumps(report.connect.snippet, indent=2)))
    _print(console, plain(report.connect.note, "dim"))
    console.print()
    for problem in report.problems:
        _print(console, ("✗ ", "red"), plain(problem, limit=_LONGEST_MESSAGE))
    right = sum(story.right for story in report.stories)
    summary = f"{right} of {len(report.stories)} stories went right, in {report.seconds:.0f} s"
    _print(console, (summary, "bold green" if report.ok else "bold red"))


def _json(value: JsonValue | dict[str, JsonValue]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _print(console: Console, *parts: str | Text | tuple[str, str]) -> None:
    console.print(Text.assemble(*parts), soft_wrap=True)

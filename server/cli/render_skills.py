"""Draws skills for a person: the list, one skill on one screen, what is to be approved, its tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from server.cli.render import heading, mark, plain, table
from server.reports import (
    DeletedReport,
    NeededTool,
    RunCost,
    ShownSkill,
    SkillReport,
    SkillsReport,
    Standing,
    TestReport,
    UseReport,
)
from skills_store.skill import AdmissionCheck, Skill, SkillState
from skills_store.workflow.graph import dependencies

__all__ = [
    "render_checks",
    "render_deleted",
    "render_proposed_skill",
    "render_skill",
    "render_skill_moved",
    "render_skills",
    "render_tests",
]

_TESTS_SHOWN = 6
_STATE_STYLE: dict[SkillState, str] = {
    "active": "green",
    "proposed": "yellow",
    "context_only": "yellow",
    "stale": "yellow",
    "shadow": "dim",
    "suppressed": "red",
    "rejected": "red",
    "retired": "dim",
}


def render_skills(console: Console, report: SkillsReport) -> None:
    """Draw the answer of `skills list`."""
    if not report.skills:
        console.print("no skills yet: repair or solve something with --save NAME", style="dim")
        return
    drawn = table("name", "version", "state", "inputs", "outputs", "right/used", "what it does")
    for skill in report.skills:
        drawn.add_row(
            plain(skill.name, "bold"),
            str(skill.version),
            Text(skill.state, _STATE_STYLE[skill.state]),
            plain(", ".join(skill.inputs)),
            plain(", ".join(skill.outputs)),
            f"{skill.successes}/{skill.uses}",
            plain(skill.description, limit=120),
        )
    console.print(drawn)


def render_skill_moved(console: Console, report: SkillReport) -> None:
    """Draw a skill after its state or head moved."""
    console.print(
        Text.assemble(
            plain(report.name, "bold"),
            f" version {report.version} is ",
            (report.state, _STATE_STYLE[report.state]),
            ", pinned" if report.pinned == report.version else "",
            plain(f": {report.reason}" if report.reason else ""),
        ),
        soft_wrap=True,
    )


def render_deleted(console: Console, report: DeletedReport) -> None:
    """Draw what was deleted."""
    console.print(
        Text.assemble(
            plain(report.name, "bold"),
            f" is deleted: {_counted(report.versions, 'version')}, {_counted(report.uses, 'use')}",
        ),
        soft_wrap=True,
    )


def render_proposed_skill(console: Console, skill: Skill) -> None:
    """Draw what a person is asked to approve: state and reason, graph, failed checks, tools."""
    _render_title(console, skill)
    _render_graph(console, skill)
    failed = [check for check in skill.verdict.checks if not check.passed] if skill.verdict else []
    heading(console, "Failed checks")
    if not failed:
        console.print("  none", style="dim")
    render_checks(console, failed)
    heading(console, "Tools")
    for pin in skill.pins:
        console.print(Text.assemble("  ", plain(pin.tool), f"  {pin.effect.value}"), soft_wrap=True)


def render_skill(console: Console, skill: ShownSkill) -> None:
    """Draw one skill on one screen: why it is in its state, its evidence, what it needs, cost and saved."""
    _render_title(console, skill)
    _render_moves(console, skill)
    _render_signature(console, skill)
    _render_graph(console, skill)
    _render_evidence(console, skill)
    _render_tests(console, skill)
    _render_needs(console, skill)
    _render_costs(console, skill.standing)


def _render_moves(console: Console, skill: ShownSkill) -> None:
    standing = skill.standing
    for move in standing.moves[1:]:
        by = "the system" if move.by == "system" else "a person"
        said = f"{move.before} → {move.after} by {by}"
        console.print(Text.assemble("  ", said, "  ", plain(move.reason, "dim")), soft_wrap=True)
    use = "in use" if standing.in_use == skill.version else f"in use is version {standing.in_use}"
    pinned = "" if standing.pinned is None else f", pinned to version {standing.pinned}"
    seen = ", clients see it as a tool" if standing.published and standing.in_use == skill.version else ""
    owner = ", written by a person: the system does not change it" if skill.origin == "user" else ""
    said = f", words by {skill.provenance.worded_by}" if skill.provenance.worded_by else ""
    console.print(Text.assemble(f"  {use}{pinned}{seen}{owner}", plain(said)), soft_wrap=True)


def render_tests(console: Console, report: TestReport) -> None:
    """Draw the answer of `skills test`."""
    for test in report.tests:
        line = Text.assemble(mark(test.passed), " ", plain(test.name), "  ", plain(test.detail, "dim"))
        console.print(line, f"{test.seconds:.1f} s", soft_wrap=True)
    passed = sum(test.passed for test in report.tests)
    console.print(
        f"{passed} of {len(report.tests)} passed", style="bold green" if report.passed else "bold red"
    )


def _render_title(console: Console, skill: Skill) -> None:
    console.print(
        Text.assemble(
            plain(skill.name, "bold"),
            f" version {skill.version}  ",
            (skill.state, _STATE_STYLE[skill.state]),
            "  ",
            plain(skill.reason, "dim"),
        ),
        soft_wrap=True,
    )
    for text in (skill.description, skill.guidance.when_to_use):
        if text:
            console.print(plain(text), soft_wrap=True)


def _render_signature(console: Console, skill: Skill) -> None:
    for title, schema in (
        ("Inputs", skill.signature.input_schema),
        ("Outputs", skill.signature.output_schema),
    ):
        heading(console, title)
        required = cast("list[JsonValue]", schema.get("required", []))
        properties = cast("Mapping[str, Mapping[str, JsonValue]]", schema.get("properties", {}))
        for name, declared in properties.items():
            kind = declared.get("type", "any")
            shown = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
            optional = "" if name in required else ", optional"
            about = plain(declared.get("description", ""), "dim", limit=160)
            console.print(
                Text.assemble("  ", plain(name, "cyan"), f" {shown}{optional}  ", about), soft_wrap=True
            )


def _render_graph(console: Console, skill: Skill) -> None:
    heading(console, "Graph")
    needs = dependencies(skill.workflow)
    for node in skill.workflow.nodes:
        after = ", ".join(sorted(needs[node.id]))
        console.print(
            Text.assemble(
                "  ", plain(node.id, "cyan"), "  ", plain(node.target), f"  ← {after}" if after else ""
            ),
            soft_wrap=True,
        )


def _render_evidence(console: Console, skill: Skill) -> None:
    heading(console, "Evidence")
    for verification in skill.provenance.verifications:
        detail = plain(verification.detail, "dim")
        console.print(
            Text.assemble("  ", mark(verification.passed), f" {verification.by}  ", detail), soft_wrap=True
        )
    checks = skill.verdict.checks if skill.verdict else ()
    told = [check for check in checks if check.gate == "function" or not check.passed]
    render_checks(console, told)
    if rest := [check.name for check in checks if check not in told]:
        console.print(Text.assemble("  ", mark(True), f" and {', '.join(rest)}"), soft_wrap=True)


def render_checks(console: Console, checks: Iterable[AdmissionCheck]) -> None:
    """Draw the checks of an admission, passed and failed."""
    for check in checks:
        line = Text.assemble(
            "  ", mark(check.passed), f" {check.gate}: ", plain(check.name), "  ", plain(check.detail, "dim")
        )
        console.print(line, soft_wrap=True)


def _render_tests(console: Console, skill: Skill) -> None:
    heading(console, "Tests")
    for test in skill.tests[:_TESTS_SHOWN]:
        volatile = f", {len(test.volatile)} volatile" if test.volatile else ""
        line = f"{test.name} ({test.kind}, {len(test.recorded)} recorded calls{volatile})"
        console.print(Text.assemble("  ", plain(line)), soft_wrap=True)
    if (more := len(skill.tests) - _TESTS_SHOWN) > 0:
        console.print(f"  and {more} more", style="dim")


def _render_needs(console: Console, skill: ShownSkill) -> None:
    heading(console, "Needs")
    for tool in skill.standing.tools:
        console.print(
            Text.assemble(
                "  ",
                mark(tool.configured and tool.holds is not False),
                " ",
                plain(f"{tool.server}/{tool.tool}"),
                f"  {tool.effect.value}  ",
                (_how_it_is(tool), "dim"),
            ),
            soft_wrap=True,
        )
    for name in skill.standing.skills:
        console.print(Text.assemble("  the skill ", plain(name)), soft_wrap=True)


def _how_it_is(tool: NeededTool) -> str:
    if not tool.configured:
        return "its server is not configured"
    said = {
        True: "as it was when verified",
        False: "changed or gone since",
        None: "its server was never asked",
    }
    return said[tool.holds]


def _render_costs(console: Console, standing: Standing) -> None:
    heading(console, "Cost and use")
    use, learned = standing.use, standing.learned
    known = "runs no longer kept" if learned is None else _told(learned)
    console.print(f"  learned from {known}; judged in {standing.admission_seconds:.1f} s", soft_wrap=True)
    if not use.uses:
        console.print("  not used yet")
        return
    world = f", {use.world_faults} stopped by the world" if use.world_faults else ""
    likely = f" (likely at least {use.likely_at_least:.0%})" if use.uses > use.world_faults else ""
    cost = "" if use.cost is None else f"; {_told(use.cost)}"
    console.print(f"  {use.successes} of {use.uses} uses right{likely}{world}{cost}", soft_wrap=True)
    saved = _counted(use.round_trips_saved, "round trip")
    console.print(f"  saved a client {saved}; {_planning(use)}", soft_wrap=True)


def _planning(use: UseReport) -> str:
    """Return in words what uses saved of planning."""
    if (planning := use.planning) is None:
        return "what they saved of planning is not known: it was learned from no run planned from scratch"
    runs = _counted(planning.runs, "planned run")
    return (
        f"of planning {planning.tokens} tokens and {planning.seconds:.1f} s, by {runs} of its family"
        f" ({planning.tokens_a_run:.0f} tokens and {planning.seconds_a_run:.1f} s each)"
    )


def _told(cost: RunCost) -> str:
    each = f", {cost.median:.2f} s each" if cost.runs > 1 else ""
    runs, calls = _counted(cost.runs, "run"), _counted(cost.calls, "call")
    return f"{runs}: {calls}, {cost.seconds:.1f} s{each}"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"

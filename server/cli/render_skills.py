"""Draws skills for a person: the list, one skill on one screen, what is to be approved, its tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from server.cli.render import heading, mark, plain, table
from server.reports import DeletedReport, SkillReport, SkillsReport, TestReport
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
            plain(report.name, "bold"), f" is deleted: {report.versions} versions, {report.uses} uses"
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


def render_skill(console: Console, skill: Skill) -> None:
    """Draw one skill: state and reason, signature, graph, evidence, tests and pins."""
    _render_title(console, skill)
    _render_signature(console, skill)
    _render_graph(console, skill)
    _render_evidence(console, skill)
    _render_tests(console, skill)
    _render_pins(console, skill)


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
    render_checks(console, skill.verdict.checks if skill.verdict else ())


def render_checks(console: Console, checks: Iterable[AdmissionCheck]) -> None:
    """Draw the checks of an admission, passed and failed."""
    for check in checks:
        line = Text.assemble(
            "  ", mark(check.passed), f" {check.gate}: ", plain(check.name), "  ", plain(check.detail, "dim")
        )
        console.print(line, soft_wrap=True)


def _render_tests(console: Console, skill: Skill) -> None:
    heading(console, "Tests")
    for test in skill.tests:
        volatile = f", {len(test.volatile)} volatile" if test.volatile else ""
        line = f"{test.name} ({test.kind}, {len(test.recorded)} recorded calls{volatile})"
        console.print(Text.assemble("  ", plain(line)), soft_wrap=True)


def _render_pins(console: Console, skill: Skill) -> None:
    heading(console, "Pinned tools")
    for pin in skill.pins:
        digest = pin.contract_hash.removeprefix("sha256:")[:12]
        console.print(Text.assemble("  ", plain(pin.tool), f"  {pin.effect.value}  ", (digest, "dim")))

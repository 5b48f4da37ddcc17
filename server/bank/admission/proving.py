"""Proving a stored skill again: its replay tests in fresh processes, and what follows for a stale one."""

from __future__ import annotations

from catalog.tools import Snapshot, ToolId
from server.bank.context import Context
from server.bank.drift import changed_pins
from server.bank.engines import with_present_engines
from server.bank.publishing import refresh_published
from server.bank.running import servers_of, signatures_of
from server.curation.replaying import Replayer
from server.reports import TestOutcome, TestReport
from skills_store.skill import Skill, SkillState

__all__ = ["prove", "replayer"]

_TESTS_PASS = "imported; its tests pass here, and a person approves it"


def replayer(snapshot: Snapshot, context: Context, skill: Skill) -> Replayer:
    """Return what runs a skill again; servers whose tools all are free run in fresh processes too."""
    effects = context.effects
    costly = {pin.tool.server for pin in skill.pins if not effects.effect(pin.tool).is_free}
    started = {n for n, spec in context.config.servers.items() if spec.transport == "stdio"}
    return Replayer(
        servers=context.connections,
        effects=effects,
        snapshot=snapshot,
        options=context.options(),
        fresh=frozenset({pin.tool.server for pin in skill.pins} - costly) & started,
        signatures=signatures_of(skill.workflow, context),
        labels=context.config.labels,
    )


async def prove(skill: Skill, context: Context) -> TestReport:
    """Run a skill's replay tests again in fresh processes; a stale skill that passes is active again.

    Nothing is run over a tool that changed and was not looked at since: what it does is unknown.
    """
    snapshot = await context.snapshot(servers_of(skill.workflow, context))
    if unseen := sorted({pin.tool for pin in skill.pins} & context.effects.changed):
        return TestReport(name=skill.name, version=skill.version, passed=False, tests=_unseen(unseen))
    if skill.state == "stale":
        skill = with_present_engines(skill, context)
    async with replayer(snapshot, context, skill).sharing() as runner:
        results = [await runner.replay(skill, test) for test in skill.tests]
    outcomes = tuple(
        TestOutcome(name=r.test, passed=r.passed, detail=r.detail, seconds=r.seconds) for r in results
    )
    outcomes = (*outcomes, *_unlike_imported(skill, snapshot, context))
    if (held := _held_by_its_pin(skill, snapshot, context)) is not None:
        outcomes = (*outcomes, held)
    passed = bool(outcomes) and all(outcome.passed for outcome in outcomes)
    if passed and skill.state == "stale":
        skill = _reinstated(skill, snapshot, context)
    if passed and skill.state == "shadow" and skill.provenance.imported_from is not None:
        skill = context.store.move(
            skill.name, skill.version, "proposed", reason=_TESTS_PASS, by="system", at=context.clock()
        )
    return TestReport(name=skill.name, version=skill.version, passed=passed, tests=outcomes)


def _unlike_imported(skill: Skill, snapshot: Snapshot, context: Context) -> tuple[TestOutcome, ...]:
    """Return what keeps an imported skill from being proposed: its tools are others here."""
    if skill.provenance.imported_from is None or skill.state != "shadow":
        return ()
    changed = changed_pins(skill, snapshot, context)
    detail = "its contract is not the one that the skill was verified with"
    return tuple(TestOutcome(name=str(tool), passed=False, detail=detail) for tool in changed)


def _held_by_its_pin(skill: Skill, snapshot: Snapshot, context: Context) -> TestOutcome | None:
    """Return what keeps a stale skill stale: it would need a version that it is not pinned to."""
    pinned = context.store.pinned(skill.name)
    if pinned is None or skill.state != "stale" or not changed_pins(skill, snapshot, context):
        return None
    detail = f"its tools changed, and it is pinned to version {pinned}: `skillbank skills unpin {skill.name}`"
    return TestOutcome(name="pin", passed=False, detail=detail)


def _unseen(tools: list[ToolId]) -> tuple[TestOutcome, ...]:
    return tuple(
        TestOutcome(
            name=str(tool),
            passed=False,
            detail=f"it changed: look at it, then `skillbank effects set {tool} CLASS`",
        )
        for tool in tools
    )


def _reinstated(skill: Skill, snapshot: Snapshot, context: Context) -> Skill:
    """Return the stale skill as it was before, as a new version where a contract it pins has changed."""
    before = _state_before(skill, context)
    reason = "verified again after a change upstream"
    stored = context.store.version(skill.name, skill.version)
    if changed_pins(skill, snapshot, context) or stored is None or stored.content_hash != skill.content_hash:
        active = _pinned_anew(skill, snapshot, context).model_copy(update={"state": before, "reason": reason})
        context.store.add_version(active, expected_head=_head_version(skill, context))
    else:
        active = context.store.move(
            skill.name, skill.version, before, reason=reason, by="system", at=context.clock()
        )
    refresh_published(context)
    return active


def _state_before(skill: Skill, context: Context) -> SkillState:
    """Return the state out of which a version became stale."""
    moves = [m for m in context.store.changes(skill.name) if (m.version, m.after) == (skill.version, "stale")]
    return "context_only" if moves and moves[-1].before == "context_only" else "active"


def _head_version(skill: Skill, context: Context) -> int:
    head = context.store.head(skill.name)
    return head.version if head is not None else skill.version


def _pinned_anew(skill: Skill, snapshot: Snapshot, context: Context) -> Skill:
    tools = {pin.tool: snapshot.get(pin.tool) for pin in skill.pins}
    pins = tuple(
        pin.model_copy(
            update={"contract_hash": tool.contract_hash, "effect": context.effects.effect(tool.id)}
        )
        for pin in skill.pins
        if (tool := tools[pin.tool]) is not None
    )
    latest = context.store.versions(skill.name)[-1].version
    provenance = skill.provenance.model_copy(update={"parent_version": skill.version})
    changes = {"version": latest + 1, "pins": pins, "provenance": provenance, "created_at": context.clock()}
    return skill.model_copy(update=changes)

"""Using skills: calling one, testing it again, moving it, finding it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from catalog.effects import Activity
from catalog.schema import coerce, problems
from catalog.tools import Snapshot, ToolId
from server.bank.context import Context
from server.bank.errors import SkillNotCallable
from server.bank.learning import replayer
from server.bank.publishing import refresh_published
from server.bank.running import execute_checked, run_report, servers_of
from server.reports import RunReport, SkillReport, SkillsReport, TestOutcome, TestReport
from server.verification import Checks
from skills_store.errors import UnknownSkill
from skills_store.retrieval import SkillIndex
from skills_store.skill import Skill, SkillState
from skills_store.utility import Use
from skills_store.workflow.faults import Fault, InvalidArgument, MissingArgument, UnexpectedArgument

__all__ = [
    "call_skill",
    "find_skills",
    "list_skills",
    "mark_stale_if_changed",
    "require_skill",
    "retire_skill",
    "roll_back",
    "skill_report",
    "test_skill",
]

_ON_REQUEST: frozenset[SkillState] = frozenset({"active", "proposed", "context_only", "shadow"})
"""What a person may run by name; a client may only call what is active."""


def require_skill(name: str, version: int | None, context: Context) -> Skill:
    """Return a skill, its head where no version is given.

    Raises:
        UnknownSkill: naming what there is.
    """
    found = context.store.head(name) if version is None else context.store.version(name, version)
    if found is None:
        known = ", ".join(skill.name for skill in context.store.heads()) or "none"
        wanted = name if version is None else f"{name}@{version}"
        raise UnknownSkill(f"there is no skill {wanted}; skills: {known}")
    return found


async def call_skill(
    name: str,
    arguments: Mapping[str, JsonValue],
    version: int | None,
    context: Context,
    *,
    by_person: bool = False,
) -> RunReport:
    """Run a skill and count the use.

    Raises:
        UnknownSkill: no such skill or version.
        SkillNotCallable: it is not active, or an upstream tool has changed under it.
    """
    skill = require_skill(name, version, context)
    _check_callable(skill, by_person=by_person)
    snapshot = await context.snapshot(servers_of(skill.workflow, context))
    _check_pins(skill, snapshot, context)
    coerced, _ = coerce(skill.signature.input_schema, dict(arguments))
    inputs = coerced if isinstance(coerced, dict) else {}
    if faults := input_faults(skill, inputs):
        return RunReport(status="failed", outputs=None, faults=tuple(faults))
    activity = Activity.CLIENT_CALL if skill.state == "active" else Activity.FIRST_RUN
    episode = context.episode(snapshot)
    episode.set_plan(skill.workflow, context.skill_workflow)
    run, verdict = await execute_checked(
        skill.workflow, inputs, Checks(), context, episode, snapshot, activity=activity
    )
    report = run_report(run, verdict, episode)
    _count(skill, report, context)
    return report


def _check_callable(skill: Skill, *, by_person: bool) -> None:
    if skill.state == "active" or (by_person and skill.state in _ON_REQUEST):
        return
    hint = " `skillbank skills run` can run it all the same" if skill.state in _ON_REQUEST else ""
    message = f"{skill.name}@{skill.version} is {skill.state}: {skill.reason}.{hint}"
    raise SkillNotCallable(message)


def _check_pins(skill: Skill, snapshot: Snapshot, context: Context) -> None:
    """Refuse a skill whose upstream tools changed, and mark it stale."""
    reason = mark_stale_if_changed(skill, snapshot, context)
    if reason is not None:
        remedy = f"`skillbank skills test {skill.name}` verifies it anew"
        raise SkillNotCallable(f"{skill.name}@{skill.version} is stale: {reason}. {remedy}")


def mark_stale_if_changed(skill: Skill, snapshot: Snapshot, context: Context) -> str | None:
    """Return what changed under a skill, which is then stale; None when its pins hold."""
    changed = [pin.tool for pin in skill.pins if _differs(snapshot, pin.tool, pin.contract_hash)]
    if not changed:
        return None
    gone = [str(tool) for tool in changed if snapshot.get(tool) is None]
    other = [str(tool) for tool in changed if snapshot.get(tool) is not None]
    said = [f"{', '.join(gone)} is gone"] if gone else []
    said += [f"{', '.join(other)} has another contract than when the skill was verified"] if other else []
    reason = " and ".join(said)
    if skill.state in ("active", "context_only"):
        context.store.move(skill.name, skill.version, "stale", reason=reason, by="system", at=context.clock())
        refresh_published(context)
    return reason


def _differs(snapshot: Snapshot, tool: ToolId, contract_hash: str) -> bool:
    if tool.server not in snapshot.servers:
        return False
    known = snapshot.get(tool)
    return known is None or known.contract_hash != contract_hash


def input_faults(skill: Skill, inputs: Mapping[str, JsonValue]) -> list[Fault]:
    """Return what is wrong with the arguments of a skill call, by its signature."""
    faults: list[Fault] = []
    properties = skill.signature.input_schema.get("properties")
    allowed = tuple(properties) if isinstance(properties, dict) else ()
    for problem in problems(skill.signature.input_schema, dict(inputs)):
        pointer = f"/inputs{problem.pointer}"
        if problem.keyword == "required" and problem.argument:
            faults.append(
                MissingArgument(message=problem.message, pointer=pointer, argument=problem.argument)
            )
        elif problem.keyword == "additionalProperties" and problem.argument:
            faults.append(
                UnexpectedArgument(
                    message=problem.message, pointer=pointer, argument=problem.argument, allowed=allowed
                )
            )
        else:
            faults.append(
                InvalidArgument(
                    message=problem.message,
                    pointer=pointer,
                    argument=problem.argument,
                    expected=problem.expected,
                    found=problem.found,
                )
            )
    return faults


def _count(skill: Skill, report: RunReport, context: Context) -> None:
    succeeded = report.status in ("verified", "succeeded")
    world = not succeeded and bool(report.faults) and all(f.evidence != "workflow" for f in report.faults)
    context.store.record_use(
        Use(skill.name, skill.version, "call", succeeded, world, context.clock(), report.trace_id)
    )


async def test_skill(name: str, context: Context) -> TestReport:
    """Run a skill's replay tests again in fresh processes; a stale skill that passes is active again.

    Raises:
        UnknownSkill: no such skill.
    """
    skill = require_skill(name, None, context)
    snapshot = await context.snapshot(servers_of(skill.workflow, context))
    runner = replayer(snapshot, context, skill)
    results = [await runner.replay(skill, test) for test in skill.tests]
    outcomes = tuple(
        TestOutcome(name=r.test, passed=r.passed, detail=r.detail, seconds=r.seconds) for r in results
    )
    passed = bool(outcomes) and all(outcome.passed for outcome in outcomes)
    if passed and skill.state == "stale":
        skill = _reinstated(skill, snapshot, context)
    return TestReport(name=skill.name, version=skill.version, passed=passed, tests=outcomes)


def _reinstated(skill: Skill, snapshot: Snapshot, context: Context) -> Skill:
    """Return the stale skill as active again, as a new version where a contract it pins has changed."""
    reason = "verified again after a change upstream"
    if not any(_differs(snapshot, pin.tool, pin.contract_hash) for pin in skill.pins):
        active = context.store.move(
            skill.name, skill.version, "active", reason=reason, by="system", at=context.clock()
        )
    else:
        tools = {pin.tool: snapshot.get(pin.tool) for pin in skill.pins}
        pins = tuple(
            pin.model_copy(update={"contract_hash": tool.contract_hash})
            for pin in skill.pins
            if (tool := tools[pin.tool]) is not None
        )
        latest = context.store.versions(skill.name)[-1].version
        provenance = skill.provenance.model_copy(update={"parent_version": skill.version})
        changes = {"version": latest + 1, "state": "active", "reason": reason, "pins": pins}
        active = skill.model_copy(update={**changes, "provenance": provenance, "created_at": context.clock()})
        context.store.add_version(active, expected_head=skill.version)
    refresh_published(context)
    return active


def roll_back(name: str, version: int, context: Context) -> SkillReport:
    """Make an earlier version the head.

    Raises:
        UnknownSkill: no such version.
        VersionConflict: somebody moved the head meanwhile.
    """
    head = require_skill(name, None, context)
    require_skill(name, version, context)
    context.store.set_head(name, version, expected_head=head.version)
    refresh_published(context)
    return skill_report(require_skill(name, None, context), context)


def retire_skill(name: str, reason: str, context: Context) -> SkillReport:
    """Take a skill's head out of use; it stays readable.

    Raises:
        UnknownSkill: no such skill.
        IllegalTransition: it is retired already.
    """
    head = require_skill(name, None, context)
    retired = context.store.move(
        name, head.version, "retired", reason=reason, by="person", at=context.clock()
    )
    refresh_published(context)
    return skill_report(retired, context)


def skill_report(
    skill: Skill, context: Context, score: float | None = None, reasons: Sequence[str] = ()
) -> SkillReport:
    """Return one skill as listings show it."""
    counts = context.store.use_counts(skill.name)
    published = skill.state == "active" and skill.name in context.store.published()
    return SkillReport(
        name=skill.name,
        version=skill.version,
        state=skill.state,
        reason=skill.reason,
        description=skill.description,
        tool_name=skill.name if published else None,
        inputs=_names(skill.signature.input_schema),
        outputs=_names(skill.signature.output_schema),
        uses=counts.uses,
        successes=counts.successes,
        score=score,
        reasons=tuple(reasons),
    )


def _names(schema: Mapping[str, JsonValue]) -> tuple[str, ...]:
    properties = schema.get("properties")
    return tuple(properties) if isinstance(properties, dict) else ()


def list_skills(context: Context) -> SkillsReport:
    """Return every skill's head, ordered by name."""
    return SkillsReport(skills=tuple(skill_report(skill, context) for skill in context.store.heads()))


def find_skills(query: str, limit: int, context: Context) -> SkillsReport:
    """Return the callable skills that fit a query, best first, with reasons."""
    usable = [skill for skill in context.store.heads() if skill.state in ("active", "context_only")]
    hits = SkillIndex(usable).search(query, limit)
    return SkillsReport(skills=tuple(skill_report(h.skill, context, h.score, h.reasons) for h in hits))

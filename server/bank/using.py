"""Using skills: calling one, finding it, listing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from catalog.effects import Activity
from catalog.schema import coerce
from catalog.search import EVERYTHING, Scope
from server.bank.context import Context
from server.bank.drift import mark_stale_if_changed, missing_servers
from server.bank.errors import SkillNotCallable
from server.bank.recalling import recall
from server.bank.running import Planned, connected_faults, execute, run_report, servers_of
from server.reports import RunReport, SkillReport, SkillsReport
from server.telemetry import span
from skills_store.errors import UnknownSkill
from skills_store.skill import Skill, SkillState
from skills_store.utility import Use
from skills_store.workflow.argument_check import Place, check_values
from skills_store.workflow.faults import Fault

__all__ = [
    "call_skill",
    "find_skills",
    "list_skills",
    "require_skill",
    "skill_report",
]

_ON_REQUEST: frozenset[SkillState] = frozenset({"active", "proposed", "context_only", "shadow"})
"""What a person may run by name; a client may only call what is active."""


def require_skill(name: str, version: int | None, context: Context) -> Skill:
    """Return a skill, its head where no version is given.

    Raises:
        UnknownSkill: naming what there is.
    """
    found = context.store.head(name) if version is None else context.store.version(name, version)
    if found is not None:
        return found
    if versions := context.store.versions(name):
        there = ", ".join(str(skill.version) for skill in versions)
        raise UnknownSkill(f"there is no version {version} of {name}; versions: {there}")
    known = ", ".join(skill.name for skill in context.store.heads()) or "none yet"
    raise UnknownSkill(f"there is no skill {name}; skills: {known}")


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
    _check_callable(skill, context, by_person=by_person)
    coerced, _ = coerce(skill.signature.input_schema, dict(arguments))
    inputs = coerced if isinstance(coerced, dict) else {}
    if faults := input_faults(skill, inputs):
        return RunReport(status="failed", outputs=None, faults=tuple(faults))
    snapshot = await context.snapshot(servers_of(skill.workflow, context))
    if reason := mark_stale_if_changed(skill, snapshot, context):
        raise SkillNotCallable(f"{skill.name}@{skill.version} cannot run: {reason}. {_remedy(skill)}")
    if faults := connected_faults(skill.workflow, snapshot, context):
        return RunReport(status="failed", outputs=None, faults=tuple(faults))
    activity = Activity.CLIENT_CALL if skill.state == "active" else Activity.FIRST_RUN
    episode = context.episode(snapshot)
    episode.set_plan(skill.workflow, context.skill_workflow)
    described = {"skillbank.skill.id": skill.name, "skillbank.skill.version": skill.version}
    with span(f"invoke_workflow {skill.name}@{skill.version}", "invoke_workflow", described) as current:
        current.set_attribute("skillbank.skill.state", skill.state)
        planned = Planned(skill.workflow, inputs, activity=activity)
        executed = await execute(planned, episode, snapshot, context)
    report = run_report(executed, episode)
    _count(skill, report, context)
    return report


def _check_callable(skill: Skill, context: Context, *, by_person: bool) -> None:
    named = f"{skill.name}@{skill.version}"
    head = context.store.head(skill.name)
    if head is not None and head.state == "retired":
        raise SkillNotCallable(f"{named} is retired: {head.reason}")
    if skill.state != "active" and not (by_person and skill.state in _ON_REQUEST):
        hint = _remedy(skill) if skill.state == "stale" else ""
        if skill.state in _ON_REQUEST:
            hint = f"`skillbank skills run {skill.name}` runs it all the same"
        raise SkillNotCallable(f"{named} is {skill.state}: {skill.reason}. {hint}".strip())
    if missing := missing_servers(skill, context):
        raise SkillNotCallable(
            f"{named} needs {', '.join(missing)}, which is not configured:"
            f" `skillbank add {missing[0]} -- COMMAND`"
        )


def _remedy(skill: Skill) -> str:
    return f"`skillbank skills test {skill.name}` verifies it anew"


def input_faults(skill: Skill, inputs: Mapping[str, JsonValue]) -> list[Fault]:
    """Return what is wrong with the arguments of a skill call, by its signature."""
    return check_values(dict(inputs), skill.signature.input_schema, Place("/inputs"))


def _count(skill: Skill, report: RunReport, context: Context) -> None:
    succeeded = report.status in ("verified", "succeeded")
    world = not succeeded and bool(report.faults) and all(f.evidence != "workflow" for f in report.faults)
    context.store.record_use(
        Use(skill.name, skill.version, "call", succeeded, world, context.clock(), report.trace_id)
    )


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
        pinned=context.store.pinned(skill.name),
        score=score,
        reasons=tuple(reasons),
    )


def _names(schema: Mapping[str, JsonValue]) -> tuple[str, ...]:
    properties = schema.get("properties")
    return tuple(properties) if isinstance(properties, dict) else ()


def list_skills(context: Context) -> SkillsReport:
    """Return every skill's head, ordered by name."""
    return SkillsReport(skills=tuple(skill_report(skill, context) for skill in context.store.heads()))


async def find_skills(query: str, limit: int, context: Context, scope: Scope = EVERYTHING) -> SkillsReport:
    """Return the active skills, and those kept as guidance, that fit a query, best first.

    Args:
        query: the task in words.
        limit: most hits.
        context: the bank.
        scope: what the asking principal may know of.
    """
    recalled = await recall(query, limit, context, scope)
    return SkillsReport(
        skills=tuple(skill_report(h.skill, context, h.score, h.reasons) for h in recalled.hits),
        method=recalled.method,
        note=recalled.note,
        confusable=recalled.confusable,
    )

"""From a verified run to a stored skill: compile, gather evidence, judge, keep, publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.tools import Snapshot
from server.bank.context import Context
from server.bank.publishing import refresh_published
from server.compilation.compile import VerifiedRun, compile_skill
from server.compilation.errors import NotCompilable
from server.compilation.prose import skill_name
from server.curation.gathering import Candidate, gather_evidence
from server.curation.replaying import Replayer
from server.progress import Progress
from skills_store.admission import judge_admission
from skills_store.skill import AdmissionVerdict, ReplayTest, Skill

__all__ = ["Learned", "learn", "replayer"]


@dataclass(frozen=True, slots=True)
class Learned:
    """What a run taught. `skill` is None when it could not be compiled; `reason` says why."""

    skill: Skill | None
    reason: str
    verdict: AdmissionVerdict | None = None


async def learn(
    run: VerifiedRun,
    snapshot: Snapshot,
    context: Context,
    *,
    name: str | None,
    examples: tuple[Mapping[str, JsonValue], ...] = (),
) -> Learned:
    """Compile a verified run, judge it and keep it, or count it as another proof of what is kept.

    Args:
        run: what was verified.
        snapshot: the upstream tools.
        context: the bank.
        name: name asked for by a person, which is an explicit save; None when nobody asked.
        examples: other inputs known to be valid.
    """
    explicit = name is not None
    if not explicit and context.config.learning == "off":
        return Learned(None, "learning is off")
    context.progress(Progress("compile", "compiling the verified run"))
    try:
        wished = name or _name_for(run, context)
        compiled = compile_skill(
            run, wished, snapshot, context.config.effects, now=context.clock(), explicit=explicit
        )
    except (NotCompilable, ValueError) as error:
        return Learned(None, f"not compilable: {error}")
    twin = context.store.by_content_hash(compiled.skill.content_hash)
    known = context.store.head(twin.name) if twin else None
    if known is not None and known.content_hash == compiled.skill.content_hash:
        return await _proved_again(known, compiled.skill, snapshot, context, explicit=explicit)
    return await _admitted(compiled.skill, snapshot, context, examples)


def _name_for(run: VerifiedRun, context: Context) -> str:
    """Return a free name made of the workflow's own, or of the task where it has none."""
    stem = run.workflow.name if run.workflow.name != "plan" else (run.task or "skill")
    legal = skill_name(stem)
    options = [legal, *(f"{legal[:36]}_{number}" for number in range(2, 1000))]
    return next(option for option in options if context.store.head(option) is None)


async def _admitted(
    skill: Skill, snapshot: Snapshot, context: Context, examples: tuple[Mapping[str, JsonValue], ...]
) -> Learned:
    parent = context.store.head(skill.name)
    if parent is not None:
        skill = _next_version(skill, parent, context)
    context.progress(Progress("admit", f"replaying {skill.name} in fresh processes and on other inputs"))
    gathered = await gather_evidence(
        Candidate(
            skill=skill,
            learning=context.config.learning,
            explicit_save=skill.provenance.explicit_save,
            examples=examples,
        ),
        replayer(snapshot, context, skill),
    )
    verdict = judge_admission(gathered.evidence)
    judged = gathered.skill.model_copy(
        update={"state": verdict.state, "reason": verdict.reason, "verdict": verdict}
    )
    context.store.add_version(judged, expected_head=parent.version if parent else None)
    if parent is not None and parent.state == "active" and judged.state != "active":
        context.store.set_head(judged.name, parent.version, expected_head=judged.version)
    refresh_published(context)
    return Learned(judged, verdict.reason, verdict)


def _next_version(skill: Skill, parent: Skill, context: Context) -> Skill:
    """Return the skill as the next version of its name; it must pass the parent's tests as well."""
    latest = context.store.versions(skill.name)[-1].version
    provenance = skill.provenance.model_copy(update={"parent_version": parent.version})
    inherited = [_inherited(test, parent) for test in parent.tests if _same_inputs(skill, parent)]
    return skill.model_copy(
        update={"version": latest + 1, "provenance": provenance, "tests": (*skill.tests, *inherited)}
    )


def _same_inputs(skill: Skill, parent: Skill) -> bool:
    mine = skill.signature.input_schema.get("properties")
    theirs = parent.signature.input_schema.get("properties")
    return isinstance(mine, dict) and isinstance(theirs, dict) and mine.keys() == theirs.keys()


def _inherited(test: ReplayTest, parent: Skill) -> ReplayTest:
    return test.model_copy(update={"name": f"{test.name} of version {parent.version}"})


async def _proved_again(
    known: Skill, again: Skill, snapshot: Snapshot, context: Context, *, explicit: bool
) -> Learned:
    """Count a second run of a kept workflow; a proposal may become active by it."""
    if known.state != "proposed":
        return Learned(known, f"{known.name} is this workflow already and is {known.state}", known.verdict)
    inputs = [test.inputs for test in known.tests if test.kind == "original"]
    distinct = 1 + (again.tests[0].inputs not in inputs)
    context.progress(Progress("admit", f"{known.name} is proved again"))
    gathered = await gather_evidence(
        Candidate(
            skill=known,
            learning=context.config.learning,
            distinct_verified_traces=distinct,
            explicit_save=explicit,
        ),
        replayer(snapshot, context, known),
    )
    verdict = judge_admission(gathered.evidence)
    if verdict.state == "active":
        known = context.store.move(
            known.name, known.version, "active", reason=verdict.reason, by="system", at=context.clock()
        )
        refresh_published(context)
    return Learned(known, verdict.reason, verdict)


def replayer(snapshot: Snapshot, context: Context, skill: Skill) -> Replayer:
    """Return what runs a skill again; servers whose tools all are free run in fresh processes too."""
    effects = context.config.effects
    costly = {pin.tool.server for pin in skill.pins if not effects.effect(pin.tool).is_free}
    started = {n for n, spec in context.config.servers.items() if spec.transport == "stdio"}
    fresh = frozenset(pin.tool.server for pin in skill.pins) - costly
    return Replayer(context.connections, effects, snapshot, context.options(), fresh & started)

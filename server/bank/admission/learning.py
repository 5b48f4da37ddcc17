"""From a run that came out right to a stored skill: compile, gather evidence, judge, keep, publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from pydantic import JsonValue

from server.bank.admission.families import family_of, find_family, widened_skill
from server.bank.admission.judging import TRACES_READ, Judged, Lesson, judge_candidate, mode_of
from server.bank.admission.proving import prove, replayer
from server.bank.admission.readings import choose_reading, dispute_of, is_undecided, still_frozen
from server.bank.admission.twins import Twin
from server.bank.admission.wording import Reworded, word_skill, words_when_active
from server.bank.context import Context
from server.bank.errors import NotSaved
from server.bank.publishing import refresh_published
from server.bank.running import servers_of
from server.compilation.compile import Compiled, Surroundings, VerifiedRun, compile_skill
from server.compilation.errors import NotCompilable
from server.compilation.holding import hold_inputs
from server.compilation.lifting import declared_inputs
from server.compilation.prose import name_of_task, skill_name
from server.compilation.widening import as_second_run
from server.curation.gathering import Candidate, differing_inputs, gather_evidence
from server.curation.seen import seen_values
from server.progress import Progress
from skills_store.admission import INPUTS_REACH, MINIMUM_TRACES, is_refuted, judge_admission
from skills_store.errors import VersionConflict
from skills_store.skill import AdmissionCheck, AdmissionVerdict, Skill, SkillWords
from skills_store.workflow.model import Workflow

__all__ = [
    "Learned",
    "check_name",
    "holds_secret",
    "keep_version",
    "learn",
    "learn_skill",
]

_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Learned:
    """What a run taught. `skill` is None when nothing was kept; `reason` says why."""

    skill: Skill | None
    reason: str
    verdict: AdmissionVerdict | None = None
    tokens: int = 0
    """Spent on words for it."""


def check_name(wished: str) -> None:
    """Check that a skill can be kept under a name, before anything is run for it.

    Raises:
        NotSaved: nothing legal is left of the name.
    """
    try:
        skill_name(wished)
    except ValueError as error:
        raise NotSaved(str(error)) from error


async def learn(
    run: VerifiedRun,
    context: Context,
    *,
    name: str | None,
    examples: tuple[Mapping[str, JsonValue], ...] = (),
    tokens: int | None = None,
) -> Learned:
    """Compile a run, judge it and keep it, or count it as another proof of what is kept.

    Args:
        run: what came out right; without anybody's check only an explicit save vouches for it.
        context: the bank.
        name: name asked for by a person, which is an explicit save; None when nobody asked.
        examples: other inputs known to be valid.
        tokens: what may be spent on better words for it; None: any number.
    """
    explicit = name is not None
    if not explicit and (silent := _silent(run.workflow, context)):
        return Learned(None, silent)
    if not explicit and not any(said.passed for said in run.verifications):
        return Learned(None, "nothing checked the outputs: give an assertion or a schema, or save it by name")
    context.progress(Progress("compile", "compiling the run into a skill"))
    snapshot, wished = context.known(), name or _free_name(run, context)
    around = Surroundings(snapshot, context.effects, context.store.version, context.clock())
    try:
        readings = compile_skill(run, wished, around, explicit=explicit)
    except NotCompilable as error:
        return Learned(None, f"not compilable: {error}")
    if any(holds_secret(compiled.skill, context) for compiled in readings):
        return Learned(None, "not compilable: it holds a secret, which belongs into a server's environment")
    has_border = explicit and bool(declared_inputs(run.workflow))
    lesson = Lesson(
        readings,
        explicit,
        examples,
        snapshot,
        context,
        has_border=has_border,
        tokens=tokens,
    )
    return await _kept_once(lesson)


async def learn_skill(skill: Skill, context: Context) -> Learned:
    """Judge and keep a skill that a person wrote with its tests, and that no run was compiled into."""
    if holds_secret(skill, context):
        return Learned(None, "not saved: it holds a secret, which belongs into a server's environment")
    lesson = Lesson((Compiled(skill),), True, (), context.known(), context, has_border=True)
    return await _kept_once(lesson)


async def _kept_once(lesson: Lesson) -> Learned:
    """Keep a candidate; one that another process kept meanwhile is proved by it instead."""
    try:
        return await _kept(lesson)
    except VersionConflict as error:
        overtaken = error
    if not _known(lesson):
        return Learned(None, f"not saved: somebody else saved {lesson.skill.name} meanwhile ({overtaken})")
    try:
        return await _kept(lesson)
    except VersionConflict as error:
        return Learned(None, f"not saved: {lesson.skill.name} is changed by others all the time ({error})")


def _known(lesson: Lesson) -> list[Compiled]:
    """Return the readings whose workflow the store has."""
    store = lesson.context.store
    return [c for c in lesson.readings if store.by_content_hash(c.skill.content_hash) is not None]


def holds_secret(skill: Skill, context: Context) -> bool:
    """Return whether a secret stands anywhere in a skill, which then must not be kept."""
    document = cast("JsonValue", skill.model_dump(mode="json"))
    return context.redact(document) != document


def _silent(workflow: Workflow, context: Context) -> str:
    """Return why nothing is learned from a workflow by itself, empty when something may be."""
    if mode_of(workflow, context) != "off":
        return ""
    by_server = context.config.learning_by_server
    named = sorted(s for s in servers_of(workflow, context) if by_server.get(s) == "off")
    return f"learning is off for {', '.join(named)}" if named else "learning is off"


def _free_name(run: VerifiedRun, context: Context) -> str:
    """Return a free name made of the workflow's own, or of the task where it has none."""
    is_planned = run.workflow.name == "plan"
    stem = name_of_task(run.task or "") if is_planned else skill_name(run.workflow.name)
    options = [stem, *(f"{stem[: _LONGEST_NAME - 4]}_{number}" for number in range(2, 1000))]
    return next(option for option in options if context.store.head(option) is None)


async def _kept(lesson: Lesson) -> Learned:
    """Keep a candidate by what is known of its workflow: nothing, a proposal, a skill, a refusal."""
    known = _known(lesson)
    if not known:
        return await _with_its_family(lesson) or await _admitted(lesson, if_new=True)
    return await _decided_by(lesson, known[0]) or await _kept_again(lesson.read_as(known[0]))


async def _kept_again(lesson: Lesson) -> Learned:
    """Keep a candidate whose workflow the store has already."""
    store, skill = lesson.context.store, lesson.skill
    twin = store.by_content_hash(skill.content_hash)
    if twin is None:
        raise LookupError(f"no skill has the workflow of {skill.name}")
    head = store.head(twin.name)
    is_in_use = head is not None and head.content_hash == skill.content_hash
    known = head if head is not None and is_in_use else twin
    if not is_in_use or known.state in ("retired", "rejected", "suppressed"):
        if lesson.explicit:
            return await _admitted(lesson)
        says_why = is_in_use or known.state == "rejected"
        why = f"is {known.state}: {known.reason}" if says_why else "is not the version in use"
        return Learned(known, f"{known.name}@{known.version} has this workflow and {why}")
    if known.state not in ("proposed", "shadow"):
        return await _counted(known, lesson)
    if known.pins != skill.pins and store.pinned(known.name) is None:
        return await _admitted(lesson, name=known.name)
    return await _proved_again(known, lesson)


async def _counted(known: Skill, lesson: Lesson) -> Learned:
    """Count a run of a workflow that is kept: what waits is proved by it, what is in use stays as it is.

    One that was restricted stays so too: that its workflow came out right once more is no evidence
    against the trials that restricted it.
    """
    if known.state == "stale":
        return await _verified_anew(known, lesson.context)
    if known.state not in ("proposed", "shadow"):
        return Learned(known, f"{known.name} is this workflow already and is {known.state}", known.verdict)
    return await _proved_again(known, lesson)


async def _decided_by(lesson: Lesson, kept: Compiled) -> Learned | None:
    """Keep the reading by data flow in place of an undecided one by inputs, where this run decides so.

    None where there was nothing to decide, or this run does not: then the kept reading is proved again.
    """
    context, dispute = lesson.context, dispute_of(lesson.readings)
    known = context.store.by_content_hash(kept.skill.content_hash)
    if dispute is None or kept.is_linked or known is None or known.state != "proposed":
        return None
    is_in_use = context.store.head(known.name) == known
    if not (is_in_use and is_undecided(known) and dispute.is_settled_by(known)):
        return None
    linked = dispute.linked.skill.model_copy(update={"name": known.name})
    family = family_of(linked, known, context)
    if family is None or family.widened.added:
        return None
    skill = widened_skill(family, lesson.snapshot, context.clock())
    both = replace(lesson, readings=(Compiled(skill, dispute.linked.frozen),), traces=2)
    judged = await judge_candidate(both, known.name, context.store.head(known.name))
    return None if is_refuted(judged.verdict) else await _keep(judged, known, lesson, if_new=True)


async def _with_its_family(lesson: Lesson) -> Learned | None:
    """Make one skill of this run and a kept skill of the same calls; None where that takes a guess."""
    if lesson.has_border:
        return None
    found = find_family([compiled.skill for compiled in lesson.readings], lesson.explicit, lesson.context)
    if found is None:
        return None
    if not found.widened.added and found.widened.workflow == found.known.workflow:
        return await _counted(found.known, lesson.read_as(lesson.readings[found.reading]))
    context, known = lesson.context, found.known
    skill = widened_skill(found, lesson.snapshot, context.clock())
    if (there := context.store.by_content_hash(skill.content_hash)) is not None:
        return Learned(there, f"{there.name}@{there.version} has this workflow and is not the version in use")
    frozen = still_frozen(lesson.readings[found.reading], skill)
    wider = replace(lesson, readings=(Compiled(skill, frozen),), traces=2)
    judged = await judge_candidate(wider, known.name, known)
    if judged.verdict.state == "shadow":
        return None
    return await _keep(judged, known, lesson, if_new=True)


async def _admitted(lesson: Lesson, name: str | None = None, *, if_new: bool = False) -> Learned:
    """Judge a candidate and add it as the first or next version of its name."""
    context = lesson.context
    parent = context.store.head(name or lesson.skill.name)
    readings = [lesson.read_as(compiled) for compiled in lesson.readings]
    candidates = [await judge_candidate(reading, name, parent) for reading in readings]
    chosen = choose_reading(lesson.readings, [candidate.verdict for candidate in candidates])
    judged, reading = candidates[chosen.reading], readings[chosen.reading]
    if chosen.undecided:
        judged = judged.undecided(chosen.undecided)
    if judged.twin is not None and not lesson.explicit:
        return await _proves(judged.twin, reading)
    return await _keep(judged, parent, lesson, if_new=if_new)


async def _proves(twin: Twin, lesson: Lesson) -> Learned:
    """Count a run that another workflow gave as a proof of the skill that does the same."""
    known = twin.skill
    if known.state != "proposed":
        return Learned(known, f"{known.name} does the same already and is {known.state}", known.verdict)
    proved = await _proved_again(known, lesson.called_as(twin))
    return replace(proved, reason=f"{known.name} does the same and is proved by it: {proved.reason}")


async def _keep(judged: Judged, parent: Skill | None, lesson: Lesson, *, if_new: bool = False) -> Learned:
    """Keep a judged candidate in the best words there are; says it where a model found none."""
    worded = await word_skill(judged.skill, lesson.context, lesson.tokens)
    kept = keep_version(replace(judged, skill=worded.skill), parent, lesson.context, if_new=if_new)
    reason = f"{kept.reason}; {worded.problem}" if worded.problem else kept.reason
    return replace(kept, reason=reason, tokens=worded.tokens)


def keep_version(judged: Judged, parent: Skill | None, context: Context, *, if_new: bool = False) -> Learned:
    """Keep a judged candidate as the first or next version of its name.

    Raises:
        VersionConflict: somebody else saved the name meanwhile, or with `if_new` the workflow.
    """
    skill, verdict = judged.skill, judged.verdict
    context.store.add_version(skill, expected_head=parent.version if parent else None, if_new=if_new)
    pinned = context.store.pinned(skill.name)
    if pinned is None and parent is not None and parent.state == "active" and skill.state != "active":
        # What is in use stays in use until its successor has earned its place.
        context.store.set_head(skill.name, parent.version, expected_head=skill.version)
    refresh_published(context)
    stays = "" if pinned is None else f"; version {pinned} stays in use, to which it is pinned"
    return Learned(skill, f"{verdict.reason}{stays}", verdict)


async def _verified_anew(known: Skill, context: Context) -> Learned:
    """Test a stale skill whose workflow has just come out right; it is active again if it passes."""
    report = await prove(known, context)
    now = context.store.version(known.name, report.version) or known
    if report.passed:
        return Learned(now, now.reason, now.verdict)
    failed = "; ".join(f"{test.name}: {test.detail}" for test in report.tests if not test.passed)
    return Learned(now, f"{known.name} stays stale: {failed or 'it has no tests'}", now.verdict)


async def _proved_again(known: Skill, lesson: Lesson) -> Learned:
    """Count a second run of a kept workflow; a proposal may become active by it."""
    context, again = lesson.context, lesson.skill
    dispute = dispute_of(lesson.alternatives)
    is_open = dispute is not None and is_undecided(known) and not dispute.is_settled_by(known)
    originals = [test.inputs for test in known.tests if test.kind == "original"]
    is_distinct = again.tests[0].inputs not in originals or again.provenance.task != known.provenance.task
    context.progress(Progress("admit", f"{known.name} is proved again"))
    gathered = await gather_evidence(
        Candidate(
            skill=known.model_copy(update={"state": "proposed"}),
            learning=mode_of(known.workflow, context),
            distinct_verified_traces=1 + is_distinct,
            explicit_save=lesson.explicit,
            frozen_literals=lesson.compiled.frozen,
            examples=(again.tests[0].inputs, *lesson.examples),
            seen=seen_values(known.workflow, context.store.traces(TRACES_READ)),
        ),
        replayer(lesson.snapshot, context, known),
    )
    undecided = dispute.told() if dispute is not None and is_open else ""
    verdict = judge_admission(replace(gathered.evidence, undecided=undecided))
    if (held := await _held(known, lesson, verdict)) is not None:
        return held
    is_rising = verdict.state == "active" and known.state != "active" and _may_move(known, verdict, lesson)
    reworded = await words_when_active(known, context, lesson.tokens) if is_rising else Reworded(None)
    now = _moved(known, verdict, lesson, reworded.words)
    stays = "" if now.state == verdict.state else f"; it stays {now.state}: only a person moves it"
    problem = f"; {reworded.problem}" if reworded.problem else ""
    return Learned(now, f"{verdict.reason}{stays}{problem}", verdict, tokens=reworded.tokens)


async def _held(known: Skill, lesson: Lesson, verdict: AdmissionVerdict) -> Learned | None:
    """Keep a proposal with those inputs as constants that both runs gave one value and none could vary.

    None where something else stands against it, the runs differ in nothing, or a person decides.
    """
    context, again = lesson.context, lesson.skill.tests[0]
    failed = [check for check in verdict.checks if not check.passed]
    first = known.tests[0].inputs if known.tests else {}
    names = _untried(failed[0]) if len(failed) == 1 else frozenset[str]()
    is_open = known.state == "proposed" and known.origin == "system" and not lesson.explicit
    if not names or not is_open or context.store.pinned(known.name) is not None:
        return None
    differ = differing_inputs(first, again.inputs)
    if not differ or differ & names or first.keys() != again.inputs.keys():
        return None
    if len(known.workflow.nodes) != len(lesson.skill.workflow.nodes):
        return None
    ids = {theirs.id: mine.id for mine, theirs in zip(known.workflow, lesson.skill.workflow, strict=True)}
    candidate = hold_inputs(known, names, lesson.snapshot, as_second_run(again, again.inputs, ids))
    if context.store.by_content_hash(candidate.content_hash) is not None:
        return None
    both = replace(lesson, readings=(Compiled(candidate),), traces=MINIMUM_TRACES)
    judged = await judge_candidate(both, known.name, known)
    if judged.verdict.state != "active":
        return None
    return await _keep(judged, known, lesson, if_new=True)


def _untried(check: AdmissionCheck) -> frozenset[str]:
    """Return the inputs of which a check says that no run could be varied in them."""
    said = check.inputs.get("untried") if isinstance(check.inputs, dict) else None
    is_it = check.name == INPUTS_REACH and isinstance(said, list)
    return frozenset(str(name) for name in said) if is_it and isinstance(said, list) else frozenset()


def _may_move(known: Skill, verdict: AdmissionVerdict, lesson: Lesson) -> bool:
    """Return whether a kept skill may take the state it has earned; only a person moves what is theirs."""
    is_held = known.origin == "user" or lesson.context.store.pinned(known.name) is not None
    return not is_held or (lesson.explicit and verdict.state == "active")


def _moved(known: Skill, verdict: AdmissionVerdict, lesson: Lesson, words: SkillWords | None = None) -> Skill:
    """Return the kept skill in the state it has earned now, where it may move."""
    context = lesson.context
    if verdict.state == known.state or not _may_move(known, verdict, lesson):
        return known
    by = "person" if lesson.explicit and verdict.state == "active" else "system"
    if known.state == "shadow":
        reason = "came out right again"
        known = context.store.move(
            known.name, known.version, "proposed", reason=reason, by=by, at=context.clock()
        )
    if verdict.state != known.state:
        known = context.store.move(
            known.name,
            known.version,
            verdict.state,
            reason=verdict.reason,
            by=by,
            at=context.clock(),
            words=words,
        )
    refresh_published(context)
    return known

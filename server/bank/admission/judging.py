"""Judging a candidate: a compiled run on its way into the store, its evidence and its verdict.

Compiling is `server.compilation`, what is kept of it `learning`, the gates `skills_store.admission`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from catalog.config import Learning
from catalog.tools import Snapshot
from server.bank.admission.proving import replayer
from server.bank.admission.twins import Twin, find_twin
from server.bank.context import Context
from server.bank.running import servers_of
from server.compilation.compile import Compiled
from server.compilation.lifting import declared_inputs
from server.curation.gathering import Candidate, gather_evidence
from server.curation.seen import seen_values
from server.planning.literals import mentions
from server.progress import Progress
from skills_store.admission import judge_admission
from skills_store.evidence import Evidence
from skills_store.skill import AdmissionVerdict, ReplayTest, Skill
from skills_store.workflow.model import Workflow

__all__ = ["TRACES_READ", "Judged", "Lesson", "is_said", "judge_candidate", "mode_of"]

TRACES_READ = 200
"""How far back values are looked for that the world was seen to have."""
_OF_VERSION = " of version "


@dataclass(frozen=True, slots=True)
class Lesson:
    """A compiled candidate on its way into the store, in every reading that explains the run."""

    readings: tuple[Compiled, ...]
    explicit: bool
    examples: tuple[Mapping[str, JsonValue], ...]
    snapshot: Snapshot
    context: Context
    traces: int = 1
    """Distinct verified runs that the candidate stands on."""
    has_border: bool = False
    """Whether a person saves a workflow with the inputs it shall have."""
    alternatives: tuple[Compiled, ...] = ()
    """Every reading of the run, where `readings` is one of them alone."""
    tokens: int | None = None
    """What may be spent on better words; None: any number."""

    @property
    def compiled(self) -> Compiled:
        return self.readings[0]

    @property
    def skill(self) -> Skill:
        return self.compiled.skill

    def read_as(self, compiled: Compiled) -> Lesson:
        """Return the lesson with one reading of several alone, and the examples that are for its inputs."""
        if len(self.readings) == 1:
            return self
        names = set(declared_inputs(compiled.skill.workflow))
        examples = tuple(example for example in self.examples if set(example) <= names)
        return replace(self, readings=(compiled,), examples=examples, alternatives=self.readings)

    def called_as(self, twin: Twin) -> Lesson:
        """Return the lesson with its tests and examples under the names that a twin has for the inputs."""
        tests = tuple(twin.called(test) for test in self.skill.tests)
        skill = self.skill.model_copy(update={"tests": tests})
        examples = tuple(
            {twin.names.get(name, name): value for name, value in example.items()}
            for example in self.examples
        )
        return replace(self, readings=(replace(self.compiled, skill=skill),), examples=examples)


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate as it would be kept, with its verdict."""

    skill: Skill
    verdict: AdmissionVerdict
    evidence: Evidence
    twin: Twin | None = None
    """A kept skill of another name that does the same, None when none is known."""

    def undecided(self, why: str) -> Judged:
        """Return the candidate judged again, now that another reading is known to hold as well."""
        evidence = replace(self.evidence, undecided=why)
        verdict = judge_admission(evidence)
        changes = {"state": verdict.state, "reason": verdict.reason, "verdict": verdict}
        return Judged(self.skill.model_copy(update=changes), verdict, evidence, self.twin)


async def judge_candidate(lesson: Lesson, name: str | None, parent: Skill | None) -> Judged:
    """Return one reading as it would be kept, what it earned, and the kept skill that does the same."""
    context, skill = lesson.context, lesson.skill
    if name is not None and name != skill.name:
        workflow = skill.workflow.model_copy(update={"name": name})
        skill = skill.model_copy(update={"name": name, "workflow": workflow})
    if parent is not None:
        skill = _next_version(skill, parent, context)
    context.progress(Progress("admit", f"replaying {skill.name} in fresh processes and on other inputs"))
    gathered = await gather_evidence(
        Candidate(
            skill=skill,
            learning=mode_of(skill.workflow, context),
            distinct_verified_traces=lesson.traces,
            explicit_save=lesson.explicit,
            frozen_literals=lesson.compiled.frozen,
            examples=lesson.examples,
            seen=seen_values(skill.workflow, context.store.traces(TRACES_READ)),
        ),
        replayer(lesson.snapshot, context, skill),
    )
    works = judge_admission(gathered.evidence).state != "shadow"
    twin = await find_twin(gathered.skill, lesson.snapshot, context) if works else None
    unsaid = () if lesson.has_border else _unsaid(skill, lesson.examples)
    evidence = replace(gathered.evidence, equals=twin.skill.name if twin else None, unsaid=unsaid)
    verdict = judge_admission(evidence)
    changes = {"state": verdict.state, "reason": verdict.reason, "verdict": verdict}
    return Judged(gathered.skill.model_copy(update=changes), verdict, evidence, twin)


def _unsaid(skill: Skill, examples: Sequence[Mapping[str, JsonValue]]) -> tuple[str, ...]:
    """Return the inputs that nothing says are any: not named, not in the task, one value in all runs."""
    runs = [test.inputs for test in skill.tests if test.kind in ("original", "held_out")]
    found: list[str] = []
    for name in declared_inputs(skill.workflow):
        values = [given[name] for given in (*runs, *examples) if name in given]
        is_shown = any(value != values[0] for value in values)
        if values and not is_shown and name not in skill.provenance.named:
            found += [] if is_said(values[0], skill.provenance.task or "") else [name]
    return tuple(found)


def is_said(value: JsonValue, task: str) -> bool:
    """Return whether a task says a value; what cannot be said in words counts as said."""
    match value:
        case bool() | None | dict():
            return True
        case list():
            return all(is_said(part, task) for part in value)
        case _:
            return mentions(task, value)


def _next_version(skill: Skill, parent: Skill, context: Context) -> Skill:
    """Return the skill as the next version of its name; it must pass a trusted parent's tests as well."""
    latest = context.store.versions(skill.name)[-1].version
    provenance = skill.provenance.model_copy(update={"parent_version": parent.version})
    own = [test.inputs for test in skill.tests]
    inherited = [
        _inherited(test, parent)
        for test in parent.tests
        if parent.state in ("active", "stale", "context_only")
        and _same_inputs(skill, parent)
        and test.inputs not in own
    ]
    return skill.model_copy(
        update={"version": latest + 1, "provenance": provenance, "tests": (*skill.tests, *inherited)}
    )


def _same_inputs(skill: Skill, parent: Skill) -> bool:
    mine = skill.signature.input_schema.get("properties")
    theirs = parent.signature.input_schema.get("properties")
    return isinstance(mine, dict) and isinstance(theirs, dict) and mine.keys() == theirs.keys()


def _inherited(test: ReplayTest, parent: Skill) -> ReplayTest:
    if _OF_VERSION in test.name:
        return test
    return test.model_copy(update={"name": f"{test.name}{_OF_VERSION}{parent.version}"})


def mode_of(workflow: Workflow, context: Context) -> Learning:
    """Return the learning mode for a workflow: the strictest of its servers."""
    return context.config.learning_of(servers_of(workflow, context))

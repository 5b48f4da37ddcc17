"""Behavioural duplicates: a kept skill with another workflow that does the same as a candidate.

Two skills are taken for one when their borders are the same and each gives on the other's tests what
the other gave. Where inputs are named otherwise, as after a sum that was planned the other way round,
the words of the two tasks say which is which. What follows from it is `learning`.

Paper: FlowEvo (dedup key): entry point and hash of the normalised body.
Differs: beside the hash, behaviour: only of skills whose tools are free, since it takes running them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.canonical import canonical_json
from catalog.tools import JsonSchema, Snapshot
from server.bank.admission.proving import replayer
from server.bank.context import Context
from server.bank.drift import changed_pins, missing_servers
from server.planning.router import example_of
from server.planning.task_reading import read_as
from skills_store.skill import ReplayTest, Skill, SkillState

__all__ = ["Twin", "find_twin"]

_OPEN: frozenset[SkillState] = frozenset({"active", "proposed", "context_only"})
_MOST_SKILLS = 4
_MOST_TESTS = 4
_FEWEST_ANSWERS = 3
"""Different answers on which two must agree; fewer could be chance."""


@dataclass(frozen=True, slots=True)
class Twin:
    """A kept skill that does what a candidate does, and what it calls the candidate's inputs."""

    skill: Skill
    names: Mapping[str, str]
    """By the candidate's names."""

    def called(self, test: ReplayTest) -> ReplayTest:
        """Return a test of the candidate as one of the kept skill."""
        return _renamed(test, self.names)


async def find_twin(candidate: Skill, snapshot: Snapshot, context: Context) -> Twin | None:
    """Return the kept skill of another name that does what a replayed candidate does, None when none does.

    Args:
        candidate: with the tests it earned; none of its tools changes anything.
        snapshot: tools as they are now.
        context: the bank.
    """
    for twin in list(_alike(candidate, snapshot, context))[:_MOST_SKILLS]:
        if await _is_twin(candidate, twin, snapshot, context):
            return twin
    return None


def _alike(candidate: Skill, snapshot: Snapshot, context: Context) -> Iterator[Twin]:
    """Yield kept skills with the same border, other workflows and free tools, those in use first."""
    if not _is_free(candidate, context):
        return
    heads = sorted(context.heads(), key=lambda head: (head.state != "active", head.name))
    for head in heads:
        is_other = head.name != candidate.name and head.content_hash != candidate.content_hash
        names = _names(candidate, head) if is_other and head.state in _OPEN else None
        if names is not None:
            holds = not changed_pins(head, snapshot, context) and not missing_servers(head, context)
            if holds and _is_free(head, context) and _answers(head, candidate) >= _FEWEST_ANSWERS:
                yield Twin(head, names)


def _is_free(skill: Skill, context: Context) -> bool:
    return all(context.effects.effect(pin.tool).is_free for pin in skill.pins)


def _names(candidate: Skill, known: Skill) -> Mapping[str, str] | None:
    """Return what a known skill calls a candidate's inputs, None where their borders differ."""
    mine, theirs = _types(candidate), _types(known)
    outputs = [frozenset(_properties(skill.signature.output_schema)) for skill in (candidate, known)]
    if outputs[0] != outputs[1]:
        return None
    if mine == theirs:
        return {name: name for name in mine}
    names = _said_alike(candidate, known)
    is_border = names.keys() == mine.keys() and set(names.values()) == set(theirs)
    return names if is_border and all(mine[one] == theirs[other] for one, other in names.items()) else None


def _said_alike(candidate: Skill, known: Skill) -> Mapping[str, str]:
    """Return the inputs that stand for the same words of a candidate's task, where no two are told apart."""
    own, task = known.provenance.task, candidate.provenance.task
    reading = read_as(task, own, example_of(known)) if own and task else None
    if reading is None:
        return {}
    said = [(name, canonical_json(value)) for name, value in reading.values.items()]
    given = [(name, canonical_json(value)) for name, value in example_of(candidate).items()]
    names = {name: [other for other, told in said if told == value] for name, value in given}
    return {name: found[0] for name, found in names.items() if len(found) == 1}


def _types(skill: Skill) -> Mapping[str, frozenset[str]]:
    return {name: _type(schema) for name, schema in _properties(skill.signature.input_schema).items()}


def _properties(schema: JsonSchema) -> dict[str, JsonSchema]:
    found = schema.get("properties")
    named = found if isinstance(found, dict) else {}
    return {name: part if isinstance(part, dict) else {} for name, part in named.items()}


def _type(schema: JsonSchema) -> frozenset[str]:
    """Return the types a schema names; an integer is a number."""
    said = schema.get("type")
    types = said if isinstance(said, list) else [said]
    return frozenset("number" if type_ == "integer" else str(type_) for type_ in types)


def _answers(one: Skill, two: Skill) -> int:
    """Return how many different answers the tests of both hold."""
    tests = (*one.tests[:_MOST_TESTS], *two.tests[:_MOST_TESTS])
    return len({canonical_json(test.outputs) for test in tests})


async def _is_twin(candidate: Skill, twin: Twin, snapshot: Snapshot, context: Context) -> bool:
    known = twin.skill
    volatile = {place for skill in (candidate, known) for test in skill.tests for place in test.volatile}
    back = {theirs: mine for mine, theirs in twin.names.items()}
    for skill, other, names in ((known, candidate, twin.names), (candidate, known, back)):
        async with replayer(snapshot, context, skill).sharing() as runner:
            for test in other.tests[:_MOST_TESTS]:
                foreign = _renamed(_without_records(test, frozenset(volatile)), names)
                if not (await runner.replay(skill, foreign)).passed:
                    return False
    return True


def _renamed(test: ReplayTest, names: Mapping[str, str]) -> ReplayTest:
    inputs: dict[str, JsonValue] = {names.get(name, name): value for name, value in test.inputs.items()}
    return test.model_copy(update={"inputs": inputs})


def _without_records(test: ReplayTest, volatile: frozenset[str]) -> ReplayTest:
    """Return another skill's test as one of inputs and outputs alone."""
    return test.model_copy(update={"recorded": (), "volatile": tuple(sorted(volatile))})

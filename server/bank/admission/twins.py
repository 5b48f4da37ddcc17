"""Behavioural duplicates: a kept skill with another workflow that does the same as a candidate.

Two skills are taken for one when their borders are the same and each gives on the other's tests what
the other gave. What follows from it is `learning`.

Paper: FlowEvo (dedup key): entry point and hash of the normalised body.
Differs: beside the hash, behaviour: only of skills whose tools are free, since it takes running them.
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog.canonical import canonical_json
from catalog.tools import JsonSchema, Snapshot
from server.bank.admission.proving import replayer
from server.bank.context import Context
from server.bank.drift import changed_pins, missing_servers
from skills_store.skill import ReplayTest, Skill, SkillState

__all__ = ["find_twin"]

_OPEN: frozenset[SkillState] = frozenset({"active", "proposed", "context_only"})
_MOST_SKILLS = 4
_MOST_TESTS = 4
_FEWEST_ANSWERS = 3
"""Different answers on which two must agree; fewer could be chance."""


async def find_twin(candidate: Skill, snapshot: Snapshot, context: Context) -> Skill | None:
    """Return the kept skill of another name that does what a replayed candidate does, None when none does.

    Args:
        candidate: with the tests it earned; none of its tools changes anything.
        snapshot: tools as they are now.
        context: the bank.
    """
    for known in list(_alike(candidate, snapshot, context))[:_MOST_SKILLS]:
        if await _is_twin(candidate, known, snapshot, context):
            return known
    return None


def _alike(candidate: Skill, snapshot: Snapshot, context: Context) -> Iterator[Skill]:
    """Yield kept skills with the same border, other workflows and free tools, those in use first."""
    if not _is_free(candidate, context):
        return
    heads = sorted(context.heads(), key=lambda head: (head.state != "active", head.name))
    for head in heads:
        is_other = head.name != candidate.name and head.content_hash != candidate.content_hash
        if is_other and head.state in _OPEN and _border(head) == _border(candidate):
            holds = not changed_pins(head, snapshot, context) and not missing_servers(head, context)
            if holds and _is_free(head, context) and _answers(head, candidate) >= _FEWEST_ANSWERS:
                yield head


def _is_free(skill: Skill, context: Context) -> bool:
    return all(context.effects.effect(pin.tool).is_free for pin in skill.pins)


def _border(skill: Skill) -> object:
    """Return what two borders must have in common: inputs with their types, and names of outputs."""
    inputs, outputs = skill.signature.input_schema, skill.signature.output_schema
    types = {name: _type(schema) for name, schema in _properties(inputs).items()}
    return types, frozenset(_properties(outputs))


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


async def _is_twin(candidate: Skill, known: Skill, snapshot: Snapshot, context: Context) -> bool:
    volatile = {place for skill in (candidate, known) for test in skill.tests for place in test.volatile}
    for skill, other in ((known, candidate), (candidate, known)):
        runner = replayer(snapshot, context, skill)
        for test in other.tests[:_MOST_TESTS]:
            foreign = _without_records(test, frozenset(volatile))
            if not (await runner.replay(skill, foreign)).passed:
                return False
    return True


def _without_records(test: ReplayTest, volatile: frozenset[str]) -> ReplayTest:
    """Return another skill's test as one of inputs and outputs alone."""
    return test.model_copy(update={"recorded": (), "volatile": tuple(sorted(volatile))})

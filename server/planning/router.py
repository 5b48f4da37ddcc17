"""Which way a task goes: run a skill directly, or plan from scratch.

Paper: FlowEvo (democase_sql adapter, route; facts §3.8 step 4): the signature of a task is its
text with the literals taken out; a direct run needs a like signature and every input bound.
Differs: only active skills; what a check then refuses falls back to a plan in the same episode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.schema import is_valid
from catalog.similarity import words
from server.planning.literals import TaskLiteral, task_literals
from skills_store.skill import Skill

__all__ = ["Direct", "choose_route", "task_pattern"]

_LIKE = 0.85
_MARGIN = 0.02
_LIFTABLE = frozenset({"quoted", "url", "email", "date", "time", "zone", "path", "number", "symbol", "name"})


@dataclass(frozen=True, slots=True)
class Direct:
    """A skill that is this task's, with its inputs bound. `reasons` say why."""

    skill: Skill
    inputs: dict[str, JsonValue]
    reasons: tuple[str, ...]


def choose_route(task: str, inputs: Mapping[str, JsonValue], skills: Iterable[Skill]) -> Direct | None:
    """Return the skill to run directly, or None to plan: no like task, an unbound input, or a tie."""
    found: list[tuple[float, Direct]] = []
    for skill in skills:
        likeness = _likeness(task, skill.provenance.task or "")
        bound = _bound(task, inputs, skill) if skill.state == "active" and likeness >= _LIKE else None
        if bound is not None:
            said = f"its task is like this one ({likeness:.2f})"
            reasons = (f"skill {skill.name}@{skill.version} is active", said, "every input is bound")
            found.append((likeness, Direct(skill, bound, reasons)))
    found.sort(key=lambda pair: -pair[0])
    if not found or (len(found) > 1 and found[0][0] - found[1][0] < _MARGIN):
        return None
    return found[0][1]


def task_pattern(task: str) -> tuple[str, ...]:
    """Return a task's words with the values it states replaced by their kind."""
    pattern: list[str] = []
    end = 0
    for literal in _values(task):
        pattern.extend((*words(task[end : literal.start]), f"<{literal.kind}>"))
        end = literal.end
    return (*pattern, *words(task[end:]))


def _values(task: str) -> list[TaskLiteral]:
    return [literal for literal in task_literals(task) if literal.kind in _LIFTABLE]


def _likeness(one: str, two: str) -> float:
    """Return the Jaccard similarity of two task patterns, 0 when either is empty."""
    first, second = set(task_pattern(one)), set(task_pattern(two))
    return len(first & second) / len(first | second) if first and second else 0.0


def _bound(task: str, inputs: Mapping[str, JsonValue], skill: Skill) -> dict[str, JsonValue] | None:
    """Return a value for every input: the given ones, else what stands in its place in this task."""
    originals = [test.inputs for test in skill.tests if test.kind == "original"]
    original = originals[0] if originals else {}
    then, now = _values(skill.provenance.task or ""), _values(task)
    bound: dict[str, JsonValue] = {}
    for name, example in original.items():
        if name in inputs:
            bound[name] = inputs[name]
            continue
        value = _in_place(example, then, now)
        if value is None:
            return None
        bound[name] = value
    return bound if is_valid(skill.signature.input_schema, bound) else None


def _in_place(example: JsonValue, then: Sequence[TaskLiteral], now: Sequence[TaskLiteral]) -> JsonValue:
    """Return the value that stands in this task where the example stood in the skill's own."""
    if len(then) != len(now) or [item.kind for item in then] != [item.kind for item in now]:
        return None
    places = [index for index, literal in enumerate(then) if literal.value == example]
    return now[places[0]].value if len(places) == 1 else None

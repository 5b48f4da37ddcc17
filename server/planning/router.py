"""Which way a task goes: run a skill directly, or plan from scratch.

Paper: FlowEvo (democase_sql adapter, route; facts §3.8 step 4): the signature of a task is its
text with the lifted literals taken out; a direct run needs a like signature and every input bound.
Differs: like means word for word, small talk aside, and equal in every value that no input takes,
since a near miss (Jaccard >= 0.85 in the paper) answers another question; what a check then
refuses falls back to a plan in the same episode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pydantic import JsonValue

from catalog.schema import coerce, is_valid
from catalog.similarity import words
from server.planning.literals import TaskLiteralKind, task_literals
from skills_store.skill import Skill

__all__ = ["Direct", "choose_route"]

_LONGEST_PHRASE = 6
_SMALL_TALK = frozenset(
    {"a", "an", "the", "please", "just", "me", "my", "can", "could", "would", "you", "i", "what", "is"}
    | {"are", "compute", "calculate", "determine", "tell", "give", "show", "get", "find"}
)
"""Words that change no task. Prepositions do: from miles to feet is not from feet to miles."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Direct:
    """A skill that is this task's, with its inputs bound. `reasons` say why."""

    skill: Skill
    inputs: dict[str, JsonValue]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A word of a task, or a value it states; `start` and `end` are offsets in its text."""

    kind: TaskLiteralKind
    value: JsonValue
    start: int
    end: int

    def is_same(self, other: _Piece) -> bool:
        """Return whether two tasks say the same here."""
        return self.kind == other.kind and _text(self.value) == _text(other.value)


def choose_route(task: str, inputs: Mapping[str, JsonValue], skills: Iterable[Skill]) -> Direct | None:
    """Return the skill to run directly, or None to plan: no like task, an unbound input, or a tie."""
    found: list[Direct] = []
    for skill in skills:
        bound = _bound(task, inputs, skill) if skill.state == "active" else None
        if bound is not None:
            said = "its task is this one with other values" if bound else "its task is this one"
            reasons = (f"skill {skill.name}@{skill.version} is active", said, "every input is bound")
            found.append(Direct(skill, bound, reasons))
    return found[0] if len(found) == 1 else None


def _pieces(task: str) -> list[_Piece]:
    """Return a task piece by piece, in order: values as the task states them, words as stems."""
    return [*_read(task)]


@lru_cache(maxsize=4_096)
def _read(task: str) -> tuple[_Piece, ...]:
    """Read a task; a bank's own tasks are read again for every task that is routed."""
    stated = [literal for literal in task_literals(task) if literal.kind != "word"]
    pieces = [_Piece(literal.kind, literal.value, literal.start, literal.end) for literal in stated]
    for match in _WORD.finditer(task):
        if any(match.start() < other.end and other.start < match.end() for other in stated):
            continue
        if match[0].lower() not in _SMALL_TALK:
            stem = " ".join(words(match[0])) or match[0].lower()
            pieces.append(_Piece("word", stem, match.start(), match.end()))
    return tuple(sorted(pieces, key=lambda piece: piece.start))


def _bound(task: str, inputs: Mapping[str, JsonValue], skill: Skill) -> dict[str, JsonValue] | None:
    """Return the skill's inputs for a task, None when the task is another or one is not bound."""
    originals = [test.inputs for test in skill.tests if test.kind == "original"]
    own = skill.provenance.task
    if not originals or not own or inputs.keys() - _names(skill):
        return None
    slots = _slots(own, originals[0])
    read = next(_readings(_pieces(own), slots, _pieces(task), task), None) if slots is not None else None
    if read is None or any(_text(inputs[n]) != _text(value) for n, value in read.items() if n in inputs):
        return None
    bound, _ = coerce(skill.signature.input_schema, {**read, **inputs})
    is_complete = isinstance(bound, dict) and is_valid(skill.signature.input_schema, bound)
    return bound if is_complete and isinstance(bound, dict) else None


def _names(skill: Skill) -> set[str]:
    properties = skill.signature.input_schema.get("properties")
    return set(properties) if isinstance(properties, dict) else set()


def _text(value: JsonValue) -> str:
    """Return what a value looks like in a task, whatever its case; 5 and 5.0 look alike."""
    match value:
        case bool() | None:
            return ""
        case int() | float():
            return f"{float(value):.12g}"
        case str() if re.fullmatch(r"-?\d+(\.\d+)?", value.strip()):
            return f"{float(value):.12g}"
        case _:
            return str(value).strip().casefold()


def _slots(task: str, example: Mapping[str, JsonValue]) -> dict[int, tuple[int, str]] | None:
    """Return where a task states the values of its inputs: first piece → (pieces, input).

    None when a place could be that of two inputs.
    """
    pieces = _pieces(task)
    found: dict[int, tuple[int, str]] = {}
    for name, value in example.items():
        wanted = _text(value) if not isinstance(value, list | dict) else ""
        for first in range(len(pieces)) if wanted else ():
            for count in range(1, min(_LONGEST_PHRASE, len(pieces) - first) + 1):
                if _said(task, pieces[first : first + count]) != wanted:
                    continue
                if first in found:
                    return None
                found[first] = (count, name)
    return found


def _said(task: str, pieces: list[_Piece]) -> str:
    """Return the text of consecutive pieces as a value would look, or the value of a single one."""
    if len(pieces) == 1 and pieces[0].kind != "word":
        return _text(pieces[0].value)
    return _text(task[pieces[0].start : pieces[-1].end])


def _readings(
    own: list[_Piece], slots: Mapping[int, tuple[int, str]], new: list[_Piece], task: str
) -> Iterator[dict[str, JsonValue]]:
    """Yield the inputs under which a task is the skill's own with other values in its slots.

    Args:
        own: pieces of the skill's task.
        slots: where it states its inputs.
        new: pieces of the task that is to be read.
        task: its text.
    """
    if not own or not new:
        if not own and not new:
            yield {}
        return
    for taken, width, bound in _first_steps(own, slots, new, task):
        shifted = {at - taken: slot for at, slot in slots.items() if at >= taken}
        for rest in _readings(own[taken:], shifted, new[width:], task):
            if all(_text(rest.get(name, value)) == _text(value) for name, value in bound.items()):
                yield {**bound, **rest}


def _first_steps(
    own: list[_Piece], slots: Mapping[int, tuple[int, str]], new: list[_Piece], task: str
) -> Iterator[tuple[int, int, dict[str, JsonValue]]]:
    """Yield what the first pieces may be read as: pieces of both sides taken, and what that binds."""
    if 0 not in slots:
        if own[0].is_same(new[0]):
            yield 1, 1, {}
        return
    count, name = slots[0]
    if own[0].kind != "word":
        if count == 1 and own[0].kind == new[0].kind:
            yield 1, 1, {name: new[0].value}
        return
    for width in range(1, min(1 if count == 1 else _LONGEST_PHRASE, len(new)) + 1):
        is_stated = width == 1 and new[0].kind != "word"
        yield count, width, {name: new[0].value if is_stated else task[new[0].start : new[width - 1].end]}

"""Reading a task as another one with other values: what it binds, and how like the two are.

Paper: FlowEvo (democase_sql adapter; facts §3.8 step 4): the signature of a task is its text with
the lifted literals replaced by slots. Differs: a slot takes a value of the kind that stood in it, or
tells what stands there instead, so that the value can be looked for; a literal that nothing lifted
is no slot and has to be the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from pydantic import JsonValue

from catalog.similarity import words
from server.planning.literals import TaskLiteralKind, task_literals

__all__ = [
    "Reading",
    "TaskPattern",
    "Token",
    "is_same_family",
    "look",
    "pattern_of",
    "read_as",
    "said_tokens",
    "task_tokens",
]

Token = tuple[str, str]
"""What a word or a value of a task is, and how it looks."""

_LONGEST_PHRASE = 6
_LONGEST_INSTEAD = 3
_MOST_READINGS = 64
_SAME = 0.85
_MOST_KEPT = 16_384
"""Tasks that are kept as they were read: more than a large bank has skills."""
_SMALL_TALK = frozenset(
    {"a", "an", "the", "please", "just", "me", "my", "can", "could", "would", "you", "i", "what", "is"}
    | {"are", "compute", "calculate", "determine", "tell", "give", "show", "get", "find"}
)
"""Words that change no task. Prepositions do: from miles to feet is not from feet to miles."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Reading:
    """A task read as another: the values of its slots, and what a slot holds that is not of its kind."""

    values: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    instead: dict[str, str] = field(default_factory=dict[str, str])

    def agrees(self, other: Reading) -> bool:
        """Return whether no input is read in two ways."""
        return _agree(self.values, other.values) and _agree(self.instead, other.instead)

    def with_(self, other: Reading) -> Reading:
        """Return both readings as one."""
        return Reading({**self.values, **other.values}, {**self.instead, **other.instead})


@dataclass(frozen=True, slots=True)
class _Piece:
    """A word of a task, or a value it states; `start` and `end` are offsets in its text."""

    kind: TaskLiteralKind
    value: JsonValue
    start: int
    end: int

    def is_same(self, other: _Piece) -> bool:
        """Return whether two tasks say the same here."""
        return self.kind == other.kind and look(self.value) == look(other.value)


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a task states an input: how many pieces, which input, how its value looks."""

    width: int
    name: str
    said: str


def read_as(task: str, own: str, example: Mapping[str, JsonValue]) -> Reading | None:
    """Return a task read as another with other values, None when it says something else.

    Args:
        task: what is to be read.
        own: the other task.
        example: inputs by name that the other task was solved with.
    """
    slots = _slots(own, example)
    if slots is None:
        return None
    found = list(islice(_readings(_pieces(own), slots, _pieces(task), task), _MOST_READINGS))
    return min(found, key=lambda reading: len(reading.instead), default=None)


@dataclass(frozen=True, slots=True)
class TaskPattern:
    """What a task says with its values taken out. `slots` are what stood there: kind, and pieces."""

    said: Mapping[Token, int]
    slots: tuple[tuple[TaskLiteralKind, int], ...]

    def likeness(self, task: str) -> float:
        """Return how much a task says the same once values are slots, in [0, 1].

        It is the share of what either says that both say, in any order.
        """
        asked, shared = _counted(task), 0
        free: dict[Token, int] = {}
        for token, count in asked.items():
            both = min(count, self.said.get(token, 0))
            shared += both
            if count > both:
                free[token] = count - both
        filled = 0
        for kind, width in self.slots:
            taken = list(islice((token for token in free if kind in ("word", token[0])), width))
            filled += bool(taken)
            for token in taken:
                if free[token] == 1:
                    del free[token]
                else:
                    free[token] -= 1
        whole = sum(self.said.values()) + len(self.slots) + sum(free.values())
        return (shared + filled) / whole if whole else 1.0


def pattern_of(own: str, example: Mapping[str, JsonValue]) -> TaskPattern:
    """Return what a task says beside its values.

    Args:
        own: the task.
        example: inputs by name that it was solved with.
    """
    slots, pieces = _slots(own, example) or {}, _pieces(own)
    inside = {place for first, slot in slots.items() for place in range(first, first + slot.width)}
    said = Counter(_token(piece) for place, piece in enumerate(pieces) if place not in inside)
    return TaskPattern(said, tuple((pieces[first].kind, slot.width) for first, slot in slots.items()))


@lru_cache(maxsize=64)
def _counted(task: str) -> Mapping[Token, int]:
    return Counter(_token(piece) for piece in _pieces(task))


def said_tokens(own: str, example: Mapping[str, JsonValue]) -> frozenset[Token] | None:
    """Return what a task has to say to be read as another one; None where none can be.

    Args:
        own: the other task.
        example: inputs by name that it was solved with.
    """
    slots = _slots(own, example)
    if slots is None:
        return None
    pieces, said, at = _pieces(own), set[Token](), 0
    while at < len(pieces):
        if at in slots:
            at += slots[at].width
        else:
            said.add(_token(pieces[at]))
            at += 1
    return frozenset(said)


def task_tokens(task: str) -> frozenset[Token]:
    """Return what a task says."""
    return frozenset(_token(piece) for piece in _pieces(task))


def is_same_family(task: str, other: str) -> bool:
    """Return whether two tasks say the same but for the values they state (Jaccard >= 0.85)."""
    one, two = (Counter(_pattern_token(piece) for piece in _pieces(text)) for text in (task, other))
    whole = sum((one | two).values())
    return whole > 0 and sum((one & two).values()) >= _SAME * whole


def _pattern_token(piece: _Piece) -> str:
    return look(piece.value) if piece.kind == "word" else f"<{piece.kind}>"


def look(value: JsonValue) -> str:
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


def _agree(one: Mapping[str, JsonValue], other: Mapping[str, JsonValue]) -> bool:
    return all(look(other[name]) == look(value) for name, value in one.items() if name in other)


def _token(piece: _Piece) -> Token:
    return piece.kind, look(piece.value)


@lru_cache(maxsize=_MOST_KEPT)
def _pieces(task: str) -> tuple[_Piece, ...]:
    """Return a task piece by piece, in order: values as the task states them, words as stems."""
    stated = [literal for literal in task_literals(task) if literal.kind != "word"]
    pieces = [_Piece(literal.kind, literal.value, literal.start, literal.end) for literal in stated]
    for match in _WORD.finditer(task):
        if any(match.start() < other.end and other.start < match.end() for other in stated):
            continue
        if match[0].lower() not in _SMALL_TALK:
            stem = " ".join(words(match[0])) or match[0].lower()
            pieces.append(_Piece("word", stem, match.start(), match.end()))
    return tuple(sorted(pieces, key=lambda piece: piece.start))


def _slots(task: str, example: Mapping[str, JsonValue]) -> Mapping[int, _Slot] | None:
    """Return where a task states the values of its inputs, by the first piece of each.

    None when a place could be that of two inputs.
    """
    looks = ((name, look(value)) for name, value in example.items() if not isinstance(value, list | dict))
    return _places(task, tuple((name, said) for name, said in looks if said))


@lru_cache(maxsize=_MOST_KEPT)
def _places(task: str, wanted: tuple[tuple[str, str], ...]) -> Mapping[int, _Slot] | None:
    pieces = _pieces(task)
    found: dict[int, _Slot] = {}
    for first in range(len(pieces)):
        for count in range(1, min(_LONGEST_PHRASE, len(pieces) - first) + 1):
            said = _said(task, pieces[first : first + count])
            for name in (name for name, value in wanted if value == said):
                if first in found:
                    return None
                found[first] = _Slot(count, name, said)
    return found


def _said(task: str, pieces: Sequence[_Piece]) -> str:
    """Return the text of consecutive pieces as a value would look, or the value of a single one."""
    if len(pieces) == 1 and pieces[0].kind != "word":
        return look(pieces[0].value)
    return look(task[pieces[0].start : pieces[-1].end])


def _readings(
    own: Sequence[_Piece], slots: Mapping[int, _Slot], new: Sequence[_Piece], task: str
) -> Iterator[Reading]:
    """Yield the inputs under which a task is the other with other values in its slots.

    Args:
        own: pieces of the other task.
        slots: where it states its inputs.
        new: pieces of the task that is to be read.
        task: its text.
    """
    if not own or not new:
        if not own and not new:
            yield Reading()
        return
    for taken, width, read in _first_steps(own, slots, new, task):
        shifted = {at - taken: slot for at, slot in slots.items() if at >= taken}
        for rest in _readings(own[taken:], shifted, new[width:], task):
            if read.agrees(rest):
                yield read.with_(rest)


def _first_steps(
    own: Sequence[_Piece], slots: Mapping[int, _Slot], new: Sequence[_Piece], task: str
) -> Iterator[tuple[int, int, Reading]]:
    """Yield what the first pieces may be read as: pieces of both sides taken, and what that binds."""
    slot = slots.get(0)
    if slot is None:
        if own[0].is_same(new[0]):
            yield 1, 1, Reading()
        return
    is_stated = own[0].kind != "word"
    if is_stated and slot.width == 1 and own[0].kind == new[0].kind:
        yield 1, 1, Reading({slot.name: new[0].value})
        return
    longest = _LONGEST_INSTEAD if is_stated else 1 if slot.width == 1 else _LONGEST_PHRASE
    for width in range(1, min(longest, len(new)) + 1):
        text = task[new[0].start : new[width - 1].end]
        value = new[0].value if width == 1 and new[0].kind != "word" else text
        if is_stated or (_has_digit(slot.said) and not _has_digit(text)):
            yield slot.width, width, Reading(instead={slot.name: str(value)})
        else:
            yield slot.width, width, Reading({slot.name: value})


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)

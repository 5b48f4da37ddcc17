"""Reading a task as another one with other values: what it binds, and how like the two are.

Paper: FlowEvo (democase_sql adapter; facts §3.8 step 4): the signature of a task is its text with
the lifted literals replaced by slots. Differs: a slot takes a value of the kind that stood in it, or
tells what stands there instead, so that the value can be looked for; a literal that nothing lifted
is no slot and has to be the same; a slot for a list takes a list of any length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from pydantic import JsonValue

from server.planning.literals import TaskLiteralKind
from server.planning.task_pieces import (
    AND,
    LONGEST_PHRASE,
    Piece,
    Token,
    listed_at,
    look,
    pieces_of,
    said_by,
)

__all__ = [
    "Reading",
    "SlotPattern",
    "TaskPattern",
    "is_same_family",
    "pattern_of",
    "read_as",
    "said_tokens",
    "task_tokens",
]

_LONGEST_INSTEAD = 3
_MOST_READINGS = 64
_SAME = 0.85
_MOST_KEPT = 16_384
"""Tasks whose places are kept: more than a large bank has skills."""


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
class _Slot:
    """Where a task states an input: how many pieces, which input, how its value looks."""

    width: int
    name: str
    said: str
    is_list: bool = False


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
    found = list(islice(_readings(pieces_of(own), slots, pieces_of(task), task), _MOST_READINGS))
    return min(found, key=lambda reading: len(reading.instead), default=None)


@dataclass(frozen=True, slots=True)
class SlotPattern:
    """What stood in a slot: its kind, how many pieces, and whether any number of them may."""

    kind: TaskLiteralKind
    width: int
    is_list: bool = False

    def take(self, free: dict[Token, int]) -> bool:
        """Take what fills the slot out of what a task says; False where nothing does."""
        fitting = [token for token in free if self.kind in ("word", token[0])]
        taken = fitting if self.is_list and self.kind != "word" else fitting[: self.width]
        for token in (*taken, *((AND,) if self.is_list and taken and AND in free else ())):
            if self.is_list or free.get(token) == 1:
                free.pop(token, None)
            else:
                free[token] -= 1
        return bool(taken)


@dataclass(frozen=True, slots=True)
class TaskPattern:
    """What a task says with its values taken out. `slots` are what stood there."""

    said: Mapping[Token, int]
    slots: tuple[SlotPattern, ...]

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
        filled = sum(slot.take(free) for slot in self.slots)
        whole = sum(self.said.values()) + len(self.slots) + sum(free.values())
        return (shared + filled) / whole if whole else 1.0


def pattern_of(own: str, example: Mapping[str, JsonValue]) -> TaskPattern:
    """Return what a task says beside its values.

    Args:
        own: the task.
        example: inputs by name that it was solved with.
    """
    slots, pieces = _slots(own, example) or {}, pieces_of(own)
    inside = {place for first, slot in slots.items() for place in range(first, first + slot.width)}
    said = Counter(piece.token for place, piece in enumerate(pieces) if place not in inside)
    stood = (SlotPattern(pieces[first].kind, slot.width, slot.is_list) for first, slot in slots.items())
    return TaskPattern(said, tuple(stood))


@lru_cache(maxsize=64)
def _counted(task: str) -> Mapping[Token, int]:
    return Counter(piece.token for piece in pieces_of(task))


def said_tokens(own: str, example: Mapping[str, JsonValue]) -> frozenset[Token] | None:
    """Return what a task has to say to be read as another one; None where none can be.

    Args:
        own: the other task.
        example: inputs by name that it was solved with.
    """
    slots = _slots(own, example)
    if slots is None:
        return None
    pieces, said, at = pieces_of(own), set[Token](), 0
    while at < len(pieces):
        if at in slots:
            at += slots[at].width
        else:
            said.add(pieces[at].token)
            at += 1
    return frozenset(said)


def task_tokens(task: str) -> frozenset[Token]:
    """Return what a task says."""
    return frozenset(piece.token for piece in pieces_of(task))


def is_same_family(task: str, other: str) -> bool:
    """Return whether two tasks say the same but for the values they state (Jaccard >= 0.85)."""
    one, two = (Counter(_pattern_token(piece) for piece in pieces_of(text)) for text in (task, other))
    whole = sum((one | two).values())
    return whole > 0 and sum((one & two).values()) >= _SAME * whole


def _pattern_token(piece: Piece) -> str:
    return look(piece.value) if piece.kind == "word" else f"<{piece.kind}>"


def _agree(one: Mapping[str, JsonValue], other: Mapping[str, JsonValue]) -> bool:
    return all(look(other[name]) == look(value) for name, value in one.items() if name in other)


def _slots(task: str, example: Mapping[str, JsonValue]) -> Mapping[int, _Slot] | None:
    """Return where a task states the values of its inputs, by the first piece of each.

    None when a place could be that of two inputs.
    """
    looks = ((name, _is_list(value), look(value)) for name, value in example.items())
    return _places(task, tuple((name, said, is_list) for name, is_list, said in looks if said))


def _is_list(value: JsonValue) -> bool:
    """Return whether a value is a list that a sentence may say; one of records is written as a whole."""
    return isinstance(value, list) and not any(isinstance(part, dict) for part in value)


@lru_cache(maxsize=_MOST_KEPT)
def _places(task: str, wanted: tuple[tuple[str, str, bool], ...]) -> Mapping[int, _Slot] | None:
    pieces = pieces_of(task)
    found: dict[int, _Slot] = {}
    for first in range(len(pieces)):
        for slot in _slots_at(pieces[first:], task, wanted):
            if first in found:
                return None
            found[first] = slot
    lists = [(first, slot) for first, slot in found.items() if slot.is_list]
    if any(first < other < first + slot.width for first, slot in lists for other in found):
        return None
    return found


def _slots_at(
    pieces: Sequence[Piece], task: str, wanted: tuple[tuple[str, str, bool], ...]
) -> Iterator[_Slot]:
    """Yield the inputs whose values pieces begin with."""
    scalars = {look(said_by(task, pieces[:count])): count for count in range(LONGEST_PHRASE, 0, -1)}
    lists: dict[str, int] = {}
    if any(is_list for _, _, is_list in wanted):
        lists = {look(values): width for width, values in listed_at(pieces, task)}
    for name, said, is_list in wanted:
        width = (lists if is_list else scalars).get(said)
        if width is not None:
            yield _Slot(width, name, said, is_list)


def _readings(
    own: Sequence[Piece], slots: Mapping[int, _Slot], new: Sequence[Piece], task: str
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
    own: Sequence[Piece], slots: Mapping[int, _Slot], new: Sequence[Piece], task: str
) -> Iterator[tuple[int, int, Reading]]:
    """Yield what the first pieces may be read as: pieces of both sides taken, and what that binds."""
    slot = slots.get(0)
    if slot is None:
        if own[0].is_same(new[0]):
            yield 1, 1, Reading()
        return
    if slot.is_list:
        for width, values in reversed([*listed_at(new, task)]):
            if own[0].kind in ("word", new[0].kind):
                yield slot.width, width, Reading({slot.name: values})
        return
    is_stated = own[0].kind != "word"
    if is_stated and slot.width == 1 and own[0].kind == new[0].kind:
        yield 1, 1, Reading({slot.name: new[0].value})
        return
    longest = _LONGEST_INSTEAD if is_stated else 1 if slot.width == 1 else LONGEST_PHRASE
    for width in range(1, min(longest, len(new)) + 1):
        text = task[new[0].start : new[width - 1].end]
        value = new[0].value if width == 1 and new[0].kind != "word" else text
        if is_stated or (_has_digit(slot.said) and not _has_digit(text)):
            yield slot.width, width, Reading(instead={slot.name: str(value)})
        else:
            yield slot.width, width, Reading({slot.name: value})


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)

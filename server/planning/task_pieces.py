"""A task piece by piece: the values it states and its other words, and lists of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import JsonValue

from catalog.canonical import canonical_json
from catalog.similarity import words
from server.planning.literals import TaskLiteralKind, is_listing, task_literals

__all__ = ["AND", "LONGEST_PHRASE", "Piece", "Token", "listed_at", "look", "pieces_of", "said_by"]

Token = tuple[str, str]
"""What a word or a value of a task is, and how it looks."""

LONGEST_PHRASE = 6
"""Words that one value may have."""
AND: Token = ("word", "and")
_MOST_KEPT = 16_384
"""Tasks that are kept as they were read: more than a large bank has skills."""
_SMALL_TALK = frozenset(
    {"a", "an", "the", "please", "just", "me", "my", "can", "could", "would", "you", "i", "what", "is"}
    | {"are", "compute", "calculate", "determine", "tell", "give", "show", "get", "find"}
)
"""Words that change no task. Prepositions do: from miles to feet is not from feet to miles."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A word of a task, or a value it states; `start` and `end` are offsets in its text."""

    kind: TaskLiteralKind
    value: JsonValue
    start: int
    end: int

    @property
    def token(self) -> Token:
        return self.kind, look(self.value)

    def is_same(self, other: Piece) -> bool:
        """Return whether two tasks say the same here."""
        return self.token == other.token


@lru_cache(maxsize=_MOST_KEPT)
def pieces_of(task: str) -> tuple[Piece, ...]:
    """Return a task piece by piece, in order: values as the task states them, words as stems."""
    stated = [literal for literal in task_literals(task) if literal.kind != "word"]
    pieces = [Piece(literal.kind, literal.value, literal.start, literal.end) for literal in stated]
    for match in _WORD.finditer(task):
        if any(match.start() < other.end and other.start < match.end() for other in stated):
            continue
        if match[0].lower() not in _SMALL_TALK:
            stem = " ".join(words(match[0])) or match[0].lower()
            pieces.append(Piece("word", stem, match.start(), match.end()))
    return tuple(sorted(pieces, key=lambda piece: piece.start))


def look(value: JsonValue) -> str:
    """Return what a value looks like in a task, whatever its case; 5 and 5.0 look alike."""
    match value:
        case bool() | None:
            return ""
        case int() | float():
            return f"{float(value):.12g}"
        case str() if re.fullmatch(r"-?\d+(\.\d+)?", value.strip()):
            return f"{float(value):.12g}"
        case list() if not any(isinstance(part, dict) for part in value):
            return ", ".join(map(look, value))
        case list() | dict():
            return canonical_json(value).decode()
        case _:
            return str(value).strip().casefold()


def said_by(task: str, pieces: Sequence[Piece]) -> JsonValue:
    """Return the value of a single stated piece, else the text of consecutive ones."""
    if len(pieces) == 1 and pieces[0].kind != "word":
        return pieces[0].value
    return task[pieces[0].start : pieces[-1].end]


def listed_at(pieces: Sequence[Piece], task: str) -> Iterator[tuple[int, list[JsonValue]]]:
    """Yield the lists that pieces may begin with, shortest first: how many pieces, and the items.

    All items are values of one kind, or all are words; commas, "and", or both stand between them.
    """
    values: list[JsonValue] = []
    at = 0
    while at < len(pieces) and pieces[at].token != AND:
        end = at + 1
        yield end, [*values, said_by(task, pieces[at:end])]
        while pieces[0].kind == "word" and end - at < LONGEST_PHRASE and _goes_on(pieces, end, task):
            end += 1
            yield end, [*values, said_by(task, pieces[at:end])]
        values.append(said_by(task, pieces[at:end]))
        at = end + 1 if end < len(pieces) and pieces[end].token == AND else end
        if at >= len(pieces) or pieces[at].kind != pieces[0].kind:
            return
        if not is_listing(task[pieces[end - 1].end : pieces[at].start]):
            return


def _goes_on(pieces: Sequence[Piece], at: int, task: str) -> bool:
    """Return whether a piece is one more word of the item before it."""
    if at >= len(pieces) or pieces[at].kind != "word" or pieces[at].token == AND:
        return False
    return not task[pieces[at - 1].end : pieces[at].start].strip()

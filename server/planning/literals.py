"""What a task says in values: numbers, quoted text, dates, addresses, paths, names, lists, records, words.

Both directions of learning use it: filling arguments from a task (planning, repair) and lifting
literals out of a run into inputs (compilation). Pure text work; no model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from json import JSONDecoder
from typing import Literal, cast

from pydantic import JsonValue

from catalog.canonical import canonical_json
from catalog.similarity import words
from catalog.vocabulary import STOP_WORDS

__all__ = [
    "SpokenList",
    "TaskLiteral",
    "TaskLiteralKind",
    "clauses",
    "is_listing",
    "mentions",
    "spoken_lists",
    "task_literals",
    "wording",
]

_RECORD = re.compile(r"(?<![\w'\"`“$])(?:\{|\[\s*\{)")
_MOST_RECORDS = 50
"""Braces in a task that are looked at."""
_CLAUSES = re.compile(r"\b(?:and then|then|and|after that|afterwards)\b|[;.]\s|, ", re.IGNORECASE)
_MOST_CLAUSES = 6
_LISTING = re.compile(r"\s*(?:[,;]?\s*(?:\band\b|&)|[,;])\s*", re.IGNORECASE)
"""What stands between two items of a list."""

TaskLiteralKind = Literal[
    "json", "quoted", "url", "email", "date", "time", "zone", "path", "number", "name", "symbol", "word"
]

_PATTERNS: tuple[tuple[TaskLiteralKind, re.Pattern[str]], ...] = (
    ("quoted", re.compile(r"'([^'\n]{1,400})'(?!\w)|\"([^\"\n]{1,400})\"|`([^`\n]{1,400})`|“([^”]{1,400})”")),
    ("url", re.compile(r"\bhttps?://[^\s<>\"')\]]+[^\s<>\"')\].,;:!?]")),
    ("email", re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]*\w")),
    ("date", re.compile(r"\b\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?)?\b")),
    ("time", re.compile(r"\b(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?\b")),
    ("zone", re.compile(r"\b(?:[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?|UTC|GMT)\b")),
    ("path", re.compile(r"(?<![\w/])(?:~|\.{1,2})?/[\w./~-]*\w|\b[\w-]+(?:/[\w.-]+)*\.[a-z][a-z0-9]{1,4}\b")),
    (
        "number",
        re.compile(r"(?<![\w.])(?<!\w-)-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w]*\d)"),
    ),
    (
        "symbol",
        re.compile(
            r"\b(?:[A-Z]{1,3}\d+:[A-Z]{1,3}\d+|[A-Z]{2,}(?:-?\d+)?[A-Z0-9]*|[A-Za-z]+\d[\w]*|[a-z]+(?:_[a-z0-9]+)+)\b"
        ),
    ),
    ("name", re.compile(r"(?<=[\w,;] )[A-Z][a-z]+(?: [A-Z][a-z]+)*\b")),
    ("word", re.compile(r"[A-Za-z°%]+")),
)


@dataclass(frozen=True, slots=True)
class TaskLiteral:
    """One value a task mentions. `start` and `end` are offsets of its text in the task."""

    kind: TaskLiteralKind
    value: JsonValue
    text: str
    start: int
    end: int

    def parts(self) -> list[JsonValue]:
        """Return the scalars in it: itself, or those of a record."""
        return list(_scalars(self.value))


def _scalars(value: JsonValue) -> Iterator[JsonValue]:
    match value:
        case dict():
            for part in value.values():
                yield from _scalars(part)
        case list():
            for part in value:
                yield from _scalars(part)
        case _:
            yield value


def task_literals(task: str) -> list[TaskLiteral]:
    """Return the values a task mentions, in order of place; no two overlap.

    A place is read as the first kind that matches in the order of `TaskLiteralKind`; stop words
    are left out of `word`.
    """
    taken = list(_records(task))
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(task):
            if any(match.start() < other.end and other.start < match.end() for other in taken):
                continue
            text = next((group for group in match.groups() if group is not None), match[0])
            if kind == "word" and text.lower() in STOP_WORDS:
                continue
            taken.append(TaskLiteral(kind, _value(kind, text), match[0], match.start(), match.end()))
    return sorted(taken, key=lambda literal: literal.start)


def _records(task: str) -> Iterator[TaskLiteral]:
    """Yield the objects, and the lists of objects, that a task writes as JSON outside of quotes."""
    reader, at = JSONDecoder(), 0
    for match in islice(_RECORD.finditer(task), _MOST_RECORDS):
        if match.start() < at:
            continue
        try:
            value, end = cast("tuple[JsonValue, int]", reader.raw_decode(task, match.start()))
            canonical_json(value)
        except (ValueError, RecursionError):
            continue
        if value:
            at = end
            yield TaskLiteral("json", value, task[match.start() : at], match.start(), at)


def _value(kind: TaskLiteralKind, text: str) -> JsonValue:
    if kind != "number":
        return text
    plain = text.replace(",", "")
    return float(plain) if any(mark in plain for mark in ".eE") else int(plain)


@dataclass(frozen=True, slots=True)
class SpokenList:
    """Two or more values of one kind in a row, as in "3, 5 and 8". Offsets as of a `TaskLiteral`."""

    items: tuple[TaskLiteral, ...]

    @property
    def values(self) -> list[JsonValue]:
        return [item.value for item in self.items]

    @property
    def start(self) -> int:
        return self.items[0].start

    @property
    def end(self) -> int:
        return self.items[-1].end


def spoken_lists(task: str) -> list[SpokenList]:
    """Return the lists of values a task mentions, in order of place; plain words make none."""
    rows: list[list[TaskLiteral]] = []
    for literal in task_literals(task):
        last = rows[-1][-1] if rows else None
        if last and last.kind == literal.kind and is_listing(task[last.end : literal.start]):
            rows[-1].append(literal)
        else:
            rows.append([literal])
    return [SpokenList(tuple(row)) for row in rows if len(row) > 1 and row[0].kind != "word"]


def is_listing(between: str) -> bool:
    """Return whether a text is what stands between two items of a list: a comma, "and", or both."""
    return _LISTING.fullmatch(between) is not None


def clauses(task: str) -> list[str]:
    """Return the first parts of a task that each say something to do; none when it is one sentence.

    The items of a list are no parts.
    """
    lists = spoken_lists(task)
    pieces, at = list[str](), 0
    for cut in _CLAUSES.finditer(task):
        if not any(listed.start < cut.start() < listed.end for listed in lists):
            pieces.append(task[at : cut.start()])
            at = cut.end()
    parts = [part.strip() for part in (*pieces, task[at:]) if len(words(part)) > 1]
    return parts[:_MOST_CLAUSES] if len(parts) > 1 else []


def wording(task: str) -> str:
    """Return a task without the values it states: they say nothing of the tool."""
    values = [x for x in task_literals(task) if x.kind not in ("word", "name", "symbol")]
    for literal in reversed(values):
        task = f"{task[: literal.start]} {task[literal.end :]}"
    return task


def _numbers(literal: TaskLiteral) -> list[JsonValue]:
    return [part for part in literal.parts() if isinstance(part, int | float) and not isinstance(part, bool)]


def mentions(task: str, value: JsonValue) -> bool:
    """Return whether the task says a scalar value, as a whole word or number."""
    match value:
        case bool() | None:
            return False
        case int() | float():
            return any(value in _numbers(literal) for literal in task_literals(task))
        case str() if value.strip():
            return re.search(rf"(?<!\w){re.escape(value.strip())}(?!\w)", task, re.IGNORECASE) is not None
        case _:
            return False

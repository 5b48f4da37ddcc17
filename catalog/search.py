"""Finds tools by words: an SQLite FTS5 index in memory over names, prose, parameters and enums.

The query is a person's text, not query syntax. Scores are ranks folded into (0, 1], comparable
within one answer only.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, cast

from catalog.schema.references import subschemas
from catalog.similarity import words
from catalog.tools import JsonSchema, Tool
from catalog.vocabulary import STOP_WORDS

__all__ = ["Hit", "ToolIndex"]

_COLUMNS: Final[dict[str, float]] = {
    "name": 8.0,
    "title": 4.0,
    "description": 2.0,
    "parameters": 1.5,
    "values": 1.5,
    "server": 3.0,
}
_MAX_TERMS: Final = 24
_MAX_PROSE: Final = 2_000
_HALF: Final = 8.0
"""The rank that scores one half."""
_MARK: Final = "\u0001"
_TERM: Final = re.compile(r"\w+")
_MARKED: Final = re.compile(f"{_MARK}(.*?){_MARK}")


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that a query found."""

    tool: Tool
    score: float
    """In (0, 1]; 1.0 when the query is the tool's name."""
    reasons: tuple[str, ...]
    """Where which words were found, such as `name: convert, unit`."""


class ToolIndex:
    """A search index over a fixed set of tools; the later of two with one id wins."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = sorted({tool.id: tool for tool in tools}.values(), key=lambda tool: tool.id)
        self._named: dict[str, list[int]] = {}
        for row, tool in enumerate(self._tools):
            for name in {tool.id.tool.lower(), str(tool.id).lower()}:
                self._named.setdefault(name, []).append(row)
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        columns = ", ".join(f'"{column}"' for column in _COLUMNS)
        self._database.execute(
            f"CREATE VIRTUAL TABLE tools USING fts5({columns}, tokenize='porter unicode61')"
        )
        marks = ", ".join("?" for _ in range(len(_COLUMNS) + 1))
        rows = ((row, *_indexed(tool)) for row, tool in enumerate(self._tools))
        self._database.executemany(f"INSERT INTO tools(rowid, {columns}) VALUES ({marks})", rows)

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """Return the tools that fit a query best, best first, equal ones ordered by id."""
        exact = self._named.get(query.strip().lower(), [])
        hits = [Hit(self._tools[row], 1.0, ("exact name",)) for row in exact]
        hits += (hit for row, hit in self._matching(query, limit + len(exact)) if row not in exact)
        return hits[:limit]

    def close(self) -> None:
        """Free the index."""
        self._database.close()

    def _matching(self, query: str, limit: int) -> Iterator[tuple[int, Hit]]:
        terms = _terms(query)
        if not terms:
            return
        weights = ", ".join(str(weight) for weight in _COLUMNS.values())
        shown = ", ".join(f"highlight(tools, {n}, '{_MARK}', '{_MARK}')" for n in range(len(_COLUMNS)))
        found = self._database.execute(
            f"WITH best AS (SELECT rowid AS row, bm25(tools, {weights}) AS rank FROM tools "
            "WHERE tools MATCH ?1 ORDER BY rank, row LIMIT ?2) "
            f"SELECT best.row, best.rank, {shown} FROM best JOIN tools ON tools.rowid = best.row "
            "WHERE tools MATCH ?1 ORDER BY best.rank, best.row",
            (" OR ".join(f'"{term}"' for term in terms), limit),
        )
        for row, rank, *texts in cast("Iterable[tuple[int, float, *tuple[str, ...]]]", found):
            score = max(-rank / (-rank + _HALF), 1e-9)
            yield row, Hit(self._tools[row], score, tuple(_reasons(texts)))


def _terms(query: str) -> list[str]:
    """Return the words worth looking for; all of them when every one is a stop word."""
    found = dict.fromkeys(word for token in _TERM.findall(query) for word in _split(token))
    telling = [word for word in found if word not in STOP_WORDS]
    return (telling or list(found))[:_MAX_TERMS]


def _split(token: str) -> tuple[str, ...]:
    """Return a token's words, and the whole of it where splitting parts letters from digits."""
    parts = words(token)
    whole = token.lower()
    return parts if len(parts) <= 1 or "_" in token else (*parts, whole)


def _indexed(tool: Tool) -> tuple[str, ...]:
    named: list[str] = []
    values: list[str] = []
    described: list[str] = []
    for name, schema in _parameters(tool.input_schema):
        named.append(_spread(name))
        described.append(str(schema.get("description") or ""))
        values.extend(_spread(value) for value in _values(schema))
    return (
        _spread(tool.id.tool),
        tool.title or "",
        tool.description[:_MAX_PROSE],
        " ".join(named) + " " + " ".join(described)[:_MAX_PROSE],
        " ".join(values)[:_MAX_PROSE],
        _spread(tool.id.server),
    )


def _spread(identifier: str) -> str:
    return " ".join(dict.fromkeys(word for token in _TERM.findall(identifier) for word in _split(token)))


def _parameters(schema: JsonSchema) -> Iterator[tuple[str, JsonSchema]]:
    properties = schema.get("properties")
    for name, sub in properties.items() if isinstance(properties, dict) else ():
        if isinstance(sub, dict):
            yield name, sub


def _values(schema: JsonSchema) -> Iterator[str]:
    """Yield the strings a parameter allows, those of a union or of its items too."""
    listed = schema.get("enum")
    yield from (value for value in listed if isinstance(value, str)) if isinstance(listed, list) else ()
    for _, sub in subschemas(schema):
        if isinstance(sub, dict) and isinstance(inner := sub.get("enum"), list):
            yield from (value for value in inner if isinstance(value, str))


def _reasons(texts: Iterable[str]) -> Iterator[str]:
    for column, text in zip(_COLUMNS, texts, strict=True):
        if marked := dict.fromkeys(word.lower() for word in _MARKED.findall(text)):
            yield f"{column}: {', '.join(list(marked)[:5])}"

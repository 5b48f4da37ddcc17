"""Finds entries by words: an SQLite FTS5 index in memory over names, prose, parameters and enums.

The query is a person's text, not query syntax. Only entries that changed are written again.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from catalog.search.entries import Entry, split, spread
from catalog.similarity import synonyms
from catalog.vocabulary import STOP_WORDS

__all__ = ["LexicalIndex", "Ranks"]

_COLUMNS: Final[dict[str, float]] = {
    "name": 8.0,
    "title": 4.0,
    "description": 2.0,
    "parameters": 1.5,
    "values": 1.5,
    "server": 3.0,
}
_MAX_TERMS: Final = 24
_SATURATION: Final = 2.2
"""What bm25 tends to for a word that stands often, in units of the word's rarity."""
_COMMONEST: Final = 0.25
"""Share of the entries from which on a word is not looked for, as long as a rarer one is."""
_SMALL: Final = 200
"""Entries up to which every word is looked for: nothing is won by leaving any out."""
_MOST_SYNONYMS: Final = 4
_MARK: Final = "\u0001"
_TERM: Final = re.compile(r"\w+")
_MARKED: Final = re.compile(f"{_MARK}(.*?){_MARK}")


@dataclass(frozen=True, slots=True)
class Ranks:
    """How well entries fit a query by bm25, higher is better; entries without a word are left out."""

    rows: Sequence[int]
    ranks: Sequence[float]
    """One a row."""
    most: float
    """What an entry would get that has every word the index knows, often."""


class LexicalIndex:
    """A word index over entries; rows number them, also across updates."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: dict[int, Entry] = {}
        self._rows: dict[str, int] = {}
        self._named: defaultdict[str, set[int]] = defaultdict(set)
        self._frequencies: dict[str, int] = {}
        self._next = 0
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        columns = ", ".join(f'"{column}"' for column in _COLUMNS)
        self._database.execute(
            f"CREATE VIRTUAL TABLE entries USING fts5({columns}, tokenize='porter unicode61')"
        )
        self.update(entries)

    def update(self, entries: Iterable[Entry]) -> int:
        """Make these the entries of the index; return how many were new, changed or gone.

        The later of two with one key wins.
        """
        wanted = {entry.key: entry for entry in entries}
        was = self._rows.keys() | set[str]()
        gone = [row for key, row in self._rows.items() if wanted.get(key) != self.entries[row]]
        for row in gone:
            self._forget(row)
        new = [wanted[key] for key in sorted(wanted.keys() - self._rows.keys())]
        self._database.executemany("DELETE FROM entries WHERE rowid = ?", ((row,) for row in gone))
        columns = ", ".join(f'"{column}"' for column in _COLUMNS)
        marks = ", ".join("?" for _ in range(len(_COLUMNS) + 1))
        self._database.executemany(
            f"INSERT INTO entries(rowid, {columns}) VALUES ({marks})", (self._added(e) for e in new)
        )
        if gone or new:
            self._frequencies.clear()
        return len(new) + len(was - wanted.keys())

    def named(self, query: str) -> list[int]:
        """Return the rows whose exact name the query is, ordered by key."""
        return sorted(self._named.get(query.strip().lower(), ()), key=lambda row: self.entries[row].key)

    def ranks(self, query: str) -> Ranks:
        """Return how well every entry that has a word of the query fits it."""
        terms = self._known(_terms(query))
        if not terms:
            return Ranks((), (), 0.0)
        weights = ", ".join(str(weight) for weight in _COLUMNS.values())
        found = self._database.execute(
            f"SELECT rowid, bm25(entries, {weights}) FROM entries WHERE entries MATCH ?", (_match(terms),)
        )
        pairs = cast("list[tuple[int, float]]", found.fetchall())
        most = _SATURATION * sum(self._rarity(term) for term in terms)
        return Ranks([row for row, _ in pairs], [-rank for _, rank in pairs], most)

    def reasons(self, query: str, rows: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """Return where which words of the query stand, such as `name: convert, unit`, by row."""
        wanted = list(rows)
        terms = self._known(_terms(query))
        if not terms or not wanted:
            return dict.fromkeys(wanted, ())
        shown = ", ".join(f"highlight(entries, {n}, '{_MARK}', '{_MARK}')" for n in range(len(_COLUMNS)))
        marks = ", ".join("?" for _ in wanted)
        found = self._database.execute(
            f"SELECT rowid, {shown} FROM entries WHERE entries MATCH ? AND rowid IN ({marks})",
            (_match(terms), *wanted),
        )
        told = cast("Iterable[tuple[int, *tuple[str, ...]]]", found)
        return dict.fromkeys(wanted, ()) | {row: tuple(_reasons(texts)) for row, *texts in told}

    def close(self) -> None:
        """Free the index."""
        self._database.close()

    def _forget(self, row: int) -> None:
        entry = self.entries.pop(row)
        del self._rows[entry.key]
        for name in entry.names:
            self._named[name].discard(row)

    def _added(self, entry: Entry) -> tuple[int | str, ...]:
        row, self._next = self._next, self._next + 1
        self.entries[row] = entry
        self._rows[entry.key] = row
        for name in entry.names:
            self._named[name].add(row)
        server = spread(entry.owner) if entry.kind == "tool" else ""
        return (row, entry.name, entry.title, entry.description, entry.parameters, entry.values, server)

    def _known(self, terms: Iterable[str]) -> list[str]:
        """Return the terms some entry has, a strange one's synonyms in its place, the commonest left out."""
        found = dict.fromkeys(known for term in terms for known in self._heard(term))
        most = max(_SMALL, _COMMONEST * len(self.entries))
        telling = [term for term in found if self._frequency(term) <= most]
        return (telling or list(found))[:_MAX_TERMS]

    def _heard(self, term: str) -> Iterator[str]:
        if self._frequency(term):
            yield term
        else:
            like = (other for other in synonyms(term) if self._frequency(other))
            yield from [other for _, other in zip(range(_MOST_SYNONYMS), like, strict=False)]

    def _frequency(self, term: str) -> int:
        """Return how many entries have a word."""
        if term not in self._frequencies:
            counted = self._database.execute(
                "SELECT count(*) FROM entries WHERE entries MATCH ?", (_match([term]),)
            )
            self._frequencies[term] = cast("tuple[int]", counted.fetchone())[0]
        return self._frequencies[term]

    def _rarity(self, term: str) -> float:
        """Return the weight that bm25 gives a word."""
        having = self._frequency(term)
        return max(1e-6, math.log((len(self.entries) - having + 0.5) / (having + 0.5)))


def _match(terms: Iterable[str]) -> str:
    return " OR ".join(f'"{term}"' for term in terms)


def _terms(query: str) -> list[str]:
    """Return the words worth looking for; all of them when every one is a stop word."""
    found = dict.fromkeys(word for token in _TERM.findall(query) for word in split(token))
    telling = [word for word in found if word not in STOP_WORDS]
    return telling or list(found)


def _reasons(texts: Iterable[str]) -> Iterator[str]:
    for column, text in zip(_COLUMNS, texts, strict=True):
        if marked := dict.fromkeys(word.lower() for word in _MARKED.findall(text)):
            yield f"{column}: {', '.join(list(marked)[:5])}"

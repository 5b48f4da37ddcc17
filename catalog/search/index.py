"""Finds tools and skills by words and by meaning together, for one principal.

A query that is an entry's name finds it first. Else the score is how alike query and entry are
by their vectors, plus half the share of the query's rare words the entry has: measured better
than either alone and than fusing their ranks (`docs/benchmarks.md`). Without vectors the words
decide alone; what was used is part of the answer. Nothing here loads a model or waits for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, Final, Literal

from catalog.search.entries import Entry, EntryKind
from catalog.search.goals import sub_goals
from catalog.search.lexical import LexicalIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from catalog.embeddings import Embedder, Vectors

__all__ = ["EVERYTHING", "Found", "FoundEntry", "Scope", "SearchIndex", "SearchMethod"]

SearchMethod = Literal["embeddings", "lexical"]

_WORDS: Final = 0.5
"""What having every word of a query is worth beside meaning exactly the same."""
_POOL: Final = 64
"""Entries by meaning alone whose words are looked at too."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a principal may know of: others' servers and skills are neither found nor counted."""

    servers: frozenset[str] | None = None
    """None: those of every server."""
    skills: frozenset[str] | None = None
    """None: every skill."""

    def allows(self, entry: Entry) -> bool:
        """Return whether an entry may be found."""
        allowed = self.servers if entry.kind == "tool" else self.skills
        return allowed is None or entry.owner in allowed


EVERYTHING: Final = Scope()


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry that a query found."""

    entry: Entry
    score: float
    """In (0, 1]; 1.0 when the query is its name. Comparable within one answer only."""
    goal: str | None
    """The part of a long request that it was found for, None for the whole of it."""
    reasons: tuple[str, ...]
    """Where which words were found, and how near the meaning is."""


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a query, best first; of a long request the best of each part first."""

    hits: tuple[FoundEntry, ...]
    method: SearchMethod
    goals: tuple[str, ...]
    """The parts that were looked for; one when the request was looked for whole."""
    searched: int
    """Entries the principal may find."""


@dataclass(frozen=True, slots=True)
class _Meaning:
    """Vectors of every entry: two rows of the matrix for each."""

    vectors: Vectors
    rows: tuple[int, ...]
    """Lexical rows in the order of the arrays."""
    first: NDArray[np.intp]
    second: NDArray[np.intp]


class SearchIndex:
    """One index over tools and skills.

    Not safe for use by several threads at once; a search changes nothing that is kept.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._words = LexicalIndex(entries)
        self._meaning: _Meaning | None = None
        self._scopes: dict[tuple[EntryKind | None, Scope], frozenset[int]] = {}

    @property
    def texts(self) -> list[str]:
        """The different texts that vectors are needed of, in a fixed order."""
        entries = sorted(self._words.entries.values(), key=lambda entry: entry.key)
        return list(dict.fromkeys(text for entry in entries for text in entry.meanings))

    def update(self, entries: Iterable[Entry]) -> int:
        """Make these the entries; return how many were new, changed or gone. Then vectors are due anew."""
        changed = self._words.update(entries)
        if changed:
            self._meaning = None
            self._scopes.clear()
        return changed

    def understand(self, vectors: Vectors) -> None:
        """Search by meaning from now on.

        Raises:
            KeyError: there is no vector of one of `texts`.
        """
        import numpy as np

        rows = tuple(sorted(self._words.entries))
        pairs = [self._words.entries[row].meanings for row in rows]
        self._meaning = _Meaning(
            vectors,
            rows,
            np.array([vectors.rows[texts[0]] for texts in pairs], dtype=np.intp),
            np.array([vectors.rows[texts[-1]] for texts in pairs], dtype=np.intp),
        )

    @property
    def understands(self) -> bool:
        """Whether vectors of the entries as they are now are there."""
        return self._meaning is not None

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        kind: EntryKind | None = None,
        scope: Scope = EVERYTHING,
        embedder: Embedder | None = None,
    ) -> Found:
        """Return what fits a query best.

        Args:
            query: what is wanted, in words.
            limit: most hits.
            kind: None: tools and skills.
            scope: what the asking principal may know of.
            embedder: the one the vectors come from; None: words alone.
        """
        allowed = self._allowed(kind, scope)
        goals = sub_goals(query)
        asked = goals if len(goals) == 1 else (query, *goals)
        meaning = self._meaning if embedder is not None else None
        near = self._nearness(asked, embedder, meaning)
        exact = [row for row in self._words.named(query) if row in allowed]
        ranked = [self._ranked(text, near[n], allowed, limit) for n, text in enumerate(asked)]
        hits = [FoundEntry(self._words.entries[row], 1.0, None, ("exact name",)) for row in exact]
        for n, row, score in _alternating(ranked, set(exact), limit - len(hits)):
            goal = None if n == 0 else asked[n]
            hits.append(FoundEntry(self._words.entries[row], score, goal, self._reasons(asked[n], row, near[n])))
        method: SearchMethod = "lexical" if meaning is None else "embeddings"
        return Found(tuple(hits[:limit]), method, goals, len(allowed))

    def close(self) -> None:
        """Free the index."""
        self._words.close()

    def _allowed(self, kind: EntryKind | None, scope: Scope) -> frozenset[int]:
        key = (kind, scope)
        if key not in self._scopes:
            entries = self._words.entries.items()
            fitting = (row for row, e in entries if kind in (None, e.kind) and scope.allows(e))
            self._scopes[key] = frozenset(fitting)
        return self._scopes[key]

    def _nearness(
        self, asked: Sequence[str], embedder: Embedder | None, meaning: _Meaning | None
    ) -> list[Mapping[int, float]]:
        """Return for each text how near every entry's meaning is, in [-1, 1]; empty without vectors."""
        if embedder is None or meaning is None:
            return [{} for _ in asked]
        import numpy as np

        alike = embedder.embed(asked) @ meaning.vectors.matrix.T
        nearest = np.maximum(alike[:, meaning.first], alike[:, meaning.second])
        return [dict(zip(meaning.rows, row, strict=True)) for row in nearest.tolist()]

    def _ranked(
        self, text: str, near: Mapping[int, float], allowed: frozenset[int], limit: int
    ) -> list[tuple[int, float]]:
        ranks = self._words.ranks(text)
        share = 1 / ranks.most if ranks.most else 0.0
        scores = {row: _WORDS * min(1.0, rank * share) for row, rank in ranks.by_row.items() if row in allowed}
        whole = 1 + _WORDS if near else _WORDS
        if near:
            scores = {row: near[row] + scores.get(row, 0.0) for row in allowed}
        best = nsmallest(limit, scores, key=lambda row: (-scores[row], self._words.entries[row].key))
        return [(row, min(max(scores[row] / whole, 1e-9), 1.0)) for row in best]

    def _reasons(self, text: str, row: int, near: Mapping[int, float]) -> tuple[str, ...]:
        said = self._words.reasons(text, [row])[row]
        return (f"meaning: {near[row]:.2f}", *said) if row in near else said


def _alternating(
    ranked: Sequence[Sequence[tuple[int, float]]], known: set[int], limit: int
) -> list[tuple[int, int, float]]:
    """Return the best of each list, then the second best of each; nothing twice."""
    seen = set(known)
    found: list[tuple[int, int, float]] = []
    for place in range(max((len(one) for one in ranked), default=0)):
        for n, one in enumerate(ranked):
            if place < len(one) and one[place][0] not in seen and len(found) < limit:
                seen.add(one[place][0])
                found.append((n, *one[place]))
    return found

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
    near: float | None
    """How alike query and entry are in meaning, in [-1, 1]; None when only words were compared."""
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
    """Vectors of every entry: two rows of the matrix for each, in the order of `rows`."""

    vectors: Vectors
    rows: NDArray[np.intp]
    """Lexical rows, ascending."""
    first: NDArray[np.intp]
    second: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The best rows for one text, best first, with score and nearness of meaning."""

    text: str
    rows: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    near: tuple[float, ...] | None = None


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

        rows = sorted(self._words.entries)
        pairs = [self._words.entries[row].meanings for row in rows]
        self._meaning = _Meaning(
            vectors,
            np.array(rows, dtype=np.intp),
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
        exact = [row for row in self._words.named(query) if row in allowed][:limit]
        if embedder is None or self._meaning is None:
            method: SearchMethod = "lexical"
            ranked = [self._by_words(text, allowed, limit) for text in asked]
        else:
            method = "embeddings"
            ranked = self._by_meaning(asked, self._meaning, embedder, allowed, limit)
        hits = [FoundEntry(self._words.entries[row], 1.0, None, None, ("exact name",)) for row in exact]
        hits += self._alternating(ranked, set(exact), limit - len(exact))
        return Found(tuple(hits), method, goals, len(allowed))

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

    def _by_words(self, text: str, allowed: frozenset[int], limit: int) -> _Ranked:
        found = self._words.ranks(text)
        ranks = {row: rank for row, rank in zip(found.rows, found.ranks, strict=True) if row in allowed}
        best = nsmallest(limit, ranks, key=lambda row: (-ranks[row], self._words.entries[row].key))
        return _Ranked(text, tuple(best), tuple(_bounded(ranks[row] / found.most) for row in best))

    def _by_meaning(
        self, asked: Sequence[str], meaning: _Meaning, embedder: Embedder, allowed: frozenset[int], limit: int
    ) -> list[_Ranked]:
        """Return the best rows of each text by the nearness of meaning and by words together."""
        import numpy as np

        # Not the product of matrices: that one wakes threads and waits for them.
        alike = np.einsum("ij,kj->ki", meaning.vectors.matrix, embedder.embed(asked))
        nearest = np.maximum(alike[:, meaning.first], alike[:, meaning.second])
        others = np.array([row not in allowed for row in meaning.rows.tolist()], dtype=np.bool_)
        return [
            self._joined(text, near, meaning, others, limit)
            for text, near in zip(asked, nearest, strict=True)
        ]

    def _joined(
        self, text: str, near: NDArray[np.float32], meaning: _Meaning, others: NDArray[np.bool_], limit: int
    ) -> _Ranked:
        import numpy as np

        found = self._words.ranks(text)
        scores = near.astype(np.float64)
        if found.rows:
            places = np.searchsorted(meaning.rows, np.array(found.rows))
            scores[places] += _WORDS * np.minimum(np.array(found.ranks) / found.most, 1.0)
        scores[others] = -np.inf
        best = np.argsort(-scores, kind="stable")[: min(limit, int((~others).sum()))]
        return _Ranked(
            text,
            tuple(meaning.rows[best].tolist()),
            tuple(_bounded(score / (1 + _WORDS)) for score in scores[best].tolist()),
            tuple(near[best].tolist()),
        )

    def _alternating(self, ranked: Sequence[_Ranked], known: set[int], limit: int) -> list[FoundEntry]:
        """Return the best of each list, then the second best of each; nothing twice."""
        taken: list[tuple[int, int]] = []
        for place in range(max(len(one.rows) for one in ranked)):
            for n, one in enumerate(ranked):
                if len(taken) < limit and place < len(one.rows) and one.rows[place] not in known:
                    known.add(one.rows[place])
                    taken.append((n, place))
        said = [
            self._words.reasons(one.text, (one.rows[p] for m, p in taken if m == n))
            for n, one in enumerate(ranked)
        ]
        return [self._hit(ranked[n], place, n > 0, said[n]) for n, place in taken]

    def _hit(
        self, ranked: _Ranked, place: int, is_part: bool, said: Mapping[int, tuple[str, ...]]
    ) -> FoundEntry:
        row = ranked.rows[place]
        near = None if ranked.near is None else ranked.near[place]
        meant = () if near is None else (f"meaning: {near:.2f}",)
        goal = ranked.text if is_part else None
        return FoundEntry(self._words.entries[row], ranked.scores[place], goal, near, (*meant, *said[row]))


def _bounded(score: float) -> float:
    return min(max(score, 1e-9), 1.0)

"""Finds tools and skills by words and by meaning together, for one principal.

A query that is an entry's name finds it first. Else the score is how alike query and entry are
by their vectors, plus half the share of the query's rare words the entry has: measured better
than either alone and than fusing their ranks (`docs/benchmarks.md`). Without vectors the words
decide alone; what was used is part of the answer. Nothing here loads a model or waits for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING, Final, Literal

from catalog.search.entries import Entry, EntryKind
from catalog.search.goals import sub_goals
from catalog.search.lexical import LexicalIndex
from catalog.search.meaning import Meaning, Ranked, bounded

if TYPE_CHECKING:
    from catalog.embeddings import Embedder, Vectors

__all__ = ["EVERYTHING", "Found", "FoundEntry", "Scope", "SearchIndex", "SearchMethod"]

SearchMethod = Literal["embeddings", "lexical"]


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


class SearchIndex:
    """One index over tools and skills.

    Not safe for use by several threads at once; a search changes nothing that is kept.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._words = LexicalIndex(entries)
        self._meaning: Meaning | None = None
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
        self._meaning = Meaning(self._words.entries, vectors)

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

    def _by_words(self, text: str, allowed: frozenset[int], limit: int) -> Ranked:
        found = self._words.ranks(text)
        ranks = {row: rank for row, rank in zip(found.rows, found.ranks, strict=True) if row in allowed}
        least = min(nlargest(limit, ranks.values()), default=0.0)
        best = sorted(
            (row for row, rank in ranks.items() if rank >= least),
            key=lambda row: (-ranks[row], self._words.entries[row].key),
        )[:limit]
        return Ranked(text, tuple(best), tuple(bounded(ranks[row] / found.most) for row in best))

    def _by_meaning(
        self, asked: Sequence[str], meaning: Meaning, embedder: Embedder, allowed: frozenset[int], limit: int
    ) -> list[Ranked]:
        """Return the best rows of each text by the nearness of meaning and by words together.

        The texts are embedded while their words are looked up: each takes about as long.
        """
        with ThreadPoolExecutor(1) as beside:
            embedded = beside.submit(embedder.embed, asked)
            worded = [self._words.ranks(text) for text in asked]
            vectors = embedded.result()
        return [
            meaning.ranked(text, vector, words, allowed, limit)
            for text, vector, words in zip(asked, vectors, worded, strict=True)
        ]

    def _alternating(self, ranked: Sequence[Ranked], known: set[int], limit: int) -> list[FoundEntry]:
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
        self, ranked: Ranked, place: int, is_part: bool, said: Mapping[int, tuple[str, ...]]
    ) -> FoundEntry:
        row = ranked.rows[place]
        near = None if ranked.near is None else ranked.near[place]
        meant = () if near is None else (f"meaning: {near:.2f}",)
        goal = ranked.text if is_part else None
        return FoundEntry(self._words.entries[row], ranked.scores[place], goal, near, (*meant, *said[row]))

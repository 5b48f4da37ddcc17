"""Ranks entries by nearness of meaning and by words together: numbers only, no model and no text.

An entry has two vectors, the nearer of which counts. Its score is that nearness, plus half the
share of the query's rare words it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from catalog.search.entries import Entry
from catalog.search.lexical import Ranks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from catalog.embeddings import Vectors

__all__ = ["Meaning", "Ranked", "bounded"]

_WORDS: Final = 0.5
"""What having every word of a query is worth beside meaning exactly the same."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best rows for one text, best first, with score and nearness of meaning."""

    text: str
    rows: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    near: tuple[float, ...] | None = None
    """None when only words were compared."""


class Meaning:
    """The vectors of some entries."""

    def __init__(self, entries: Mapping[int, Entry], vectors: Vectors) -> None:
        """Take the vectors of entries, by row.

        Raises:
            KeyError: there is no vector of one of their texts.
        """
        import numpy as np

        rows = sorted(entries)
        pairs = [entries[row].meanings for row in rows]
        self._matrix = vectors.matrix
        self._rows = np.array(rows, dtype=np.intp)
        self._first = np.array([vectors.rows[texts[0]] for texts in pairs], dtype=np.intp)
        self._second = np.array([vectors.rows[texts[-1]] for texts in pairs], dtype=np.intp)
        self._hidden: dict[frozenset[int], NDArray[np.bool_]] = {}

    def ranked(
        self, text: str, vector: NDArray[np.float32], words: Ranks, allowed: frozenset[int], limit: int
    ) -> Ranked:
        """Return the best rows for a text.

        Args:
            text: what is looked for.
            vector: of the text.
            words: how well entries fit its words.
            allowed: the rows that may be found.
            limit: most rows.
        """
        import numpy as np

        near = self._near(vector)
        scores = near.astype(np.float64)
        if words.rows:
            places = np.searchsorted(self._rows, np.array(words.rows))
            scores[places] += _WORDS * np.minimum(np.array(words.ranks) / words.most, 1.0)
        hidden = self._hidden_from(allowed)
        scores[hidden] = -np.inf
        best = _best(scores, min(limit, len(scores) - int(hidden.sum())))
        return Ranked(
            text,
            tuple(self._rows[best].tolist()),
            tuple(bounded(score / (1 + _WORDS)) for score in scores[best].tolist()),
            tuple(near[best].tolist()),
        )

    def _near(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        import numpy as np

        # Row by row: the product of a matrix wakes threads and waits for them.
        alike = np.vecdot(self._matrix, vector)
        return np.maximum(alike[self._first], alike[self._second])

    def _hidden_from(self, allowed: frozenset[int]) -> NDArray[np.bool_]:
        """Return which rows may not be found; kept, since a principal's scope stays the same."""
        import numpy as np

        if allowed not in self._hidden:
            hidden = [row not in allowed for row in self._rows.tolist()]
            self._hidden[allowed] = np.array(hidden, dtype=np.bool_)
        return self._hidden[allowed]


def bounded(score: float) -> float:
    """Return a score inside of (0, 1]."""
    return min(max(score, 1e-9), 1.0)


def _best(scores: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Return the places of the highest scores, best first, of equal ones the first."""
    import numpy as np

    if most <= 0:
        return np.empty(0, dtype=np.intp)
    least = np.partition(scores, len(scores) - most)[len(scores) - most]
    places = np.flatnonzero(scores >= least)
    return places[np.argsort(-scores[places], kind="stable")][:most]

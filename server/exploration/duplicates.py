"""Which drafts are near-duplicates of those kept: alike in words *and* in structure.

Paper: AgentEvolver (filter of synthetic tasks, word-set Jaccard 0.8; facts §4.2, §7). Differs: equal
words over another structure, and an equal structure in other words, are both kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from catalog.similarity import words

__all__ = ["is_near_duplicate"]

_ALIKE = 0.8


def is_near_duplicate(text: str, tools: tuple[str, ...], kept: Iterable[tuple[str, tuple[str, ...]]]) -> bool:
    """Return whether a kept task has the same tools in order and at least four fifths of the words.

    Args:
        text: the task without its values.
        tools: its tools, in order.
        kept: the same of those that are kept.
    """
    own = set(words(text))
    return any(tools == others and _jaccard(own, set(words(other))) >= _ALIKE for other, others in kept)


def _jaccard(one: set[str], two: set[str]) -> float:
    return len(one & two) / len(one | two) if one | two else 1.0

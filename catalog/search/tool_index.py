"""Finds tools by words alone, for planning: the same answer whatever is installed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from catalog.search.entries import tool_entries, tool_key
from catalog.search.lexical import LexicalIndex
from catalog.tools import Tool

__all__ = ["Hit", "ToolIndex"]

_HALF: Final = 8.0
"""The rank that scores one half."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that a query found."""

    tool: Tool
    score: float
    """In (0, 1]; 1.0 when the query is the tool's name. Comparable within one answer only."""
    reasons: tuple[str, ...]
    """Where which words were found, such as `name: convert, unit`."""


class ToolIndex:
    """A search index over a fixed set of tools; the later of two with one id wins."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool_key(t.id.server, t.id.tool): t for t in sorted(tools, key=lambda tool: tool.id)}
        self._words = LexicalIndex(tool_entries(self._tools.values()))

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """Return the tools that fit a query best, best first, equal ones ordered by id."""
        exact = self._words.named(query)
        ranked = self._words.ranks(query)
        ranks = dict(zip(ranked.rows, ranked.ranks, strict=True))
        best = nsmallest(limit, ranks.keys() - set(exact), key=lambda row: (-ranks[row], self._key(row)))
        found = [*exact, *best][:limit]
        reasons = self._words.reasons(query, found)
        scores = dict.fromkeys(exact, 1.0)
        return [
            Hit(
                self._tools[self._key(row)],
                scores.get(row) or max(ranks[row] / (ranks[row] + _HALF), 1e-9),
                ("exact name",) if row in scores else reasons[row],
            )
            for row in found
        ]

    def close(self) -> None:
        """Free the index."""
        self._words.close()

    def _key(self, row: int) -> str:
        return self._words.entries[row].key

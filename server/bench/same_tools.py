"""Which tools of the search benchmark do the same: a request that wants one is served by another.

By rule, so that nobody judges what was found: two tools are the same when their names have the
same words (of a single word only if their descriptions share some), when their descriptions have
the same words, or when half of the names' and three fifths of the descriptions' words agree.
`data/same_tools.json` lists the names that a person read and found to do the same besides.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from catalog.similarity import words
from catalog.tools import Tool, ToolId

__all__ = ["same_sets"]

_REVIEWED: Final = Path(__file__).with_name("data") / "same_tools.json"
_WORD: Final = re.compile(r"\w+")
_NAMES: Final = 0.5
_DESCRIPTIONS: Final = 0.6
_SOME: Final = 0.2

_Words = frozenset[str]


def same_sets(tools: Sequence[Tool]) -> dict[ToolId, int]:
    """Return the number of the set each tool belongs to; sameness carries over."""
    leaders = list(range(len(tools)))
    for one, other in _same_pairs(tools):
        leaders[_leader(leaders, one)] = _leader(leaders, other)
    return {tool.id: _leader(leaders, row) for row, tool in enumerate(tools)}


def _leader(leaders: list[int], row: int) -> int:
    while leaders[row] != row:
        leaders[row] = leaders[leaders[row]]
        row = leaders[row]
    return row


def _same_pairs(tools: Sequence[Tool]) -> Iterable[tuple[int, int]]:
    names = [frozenset(words(tool.id.tool)) for tool in tools]
    told = [_words(tool.description) for tool in tools]
    yield from _reviewed(tools)
    first: dict[_Words, int] = {}
    for row, said in enumerate(told):
        if said:
            yield row, first.setdefault(said, row)
    having: defaultdict[str, list[int]] = defaultdict(list)
    for row, name in enumerate(names):
        likely = {other for word in name for other in having[word]}
        yield from ((row, o) for o in likely if _are_same(names[row], names[o], told[row], told[o]))
        for word in name:
            having[word].append(row)


def _are_same(name: _Words, other: _Words, told: _Words, other_told: _Words) -> bool:
    shared = _shared(told, other_told)
    if name == other:
        return len(name) > 1 or shared >= _SOME
    return _shared(name, other) >= _NAMES and shared >= _DESCRIPTIONS


def _reviewed(tools: Sequence[Tool]) -> Iterable[tuple[int, int]]:
    sets: list[list[str]] = json.loads(_REVIEWED.read_text(encoding="utf-8"))
    number = {name: n for n, names in enumerate(sets) for name in names}
    first: dict[int, int] = {}
    for row, tool in enumerate(tools):
        if tool.id.tool in number:
            yield row, first.setdefault(number[tool.id.tool], row)


def _words(text: str) -> _Words:
    return frozenset(word for token in _WORD.findall(text) for word in words(token))


def _shared(one: _Words, other: _Words) -> float:
    return len(one & other) / max(1, len(one | other))

"""Which share of the wanted tools a search shows, and how long it takes.

A request for one thing is given five hits. A whole task of n sub-goals is given five for each, and
the share is of all the tools it needs. Tools that do the same count as one, wanted or shown.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from catalog.embeddings import Embedder
from catalog.search import SearchIndex, sub_goals
from catalog.tools import ToolId
from server.bench.measures import Spread, spread_of
from server.bench.search_data import PARAPHRASES, WHOLE_TASKS, Request
from server.bench.search_report import Recall, SourceRecall, WayRecall

__all__ = ["MOST_HITS", "Search", "recalled", "searching", "timed"]

MOST_HITS: Final = 50
"""Hits asked for one thing: enough for ten different ones where many do the same."""
_HITS: Final = 10

Search = Callable[[str, int], Awaitable[list[ToolId]]]


def searching(index: SearchIndex, embedder: Embedder | None) -> Search:
    """Return a search that answers with tools, best first."""

    async def search(text: str, limit: int) -> list[ToolId]:
        found = index.search(text, limit, embedder=embedder)
        named = (hit.entry.key.removeprefix("tool:").partition("/") for hit in found.hits)
        return [ToolId(server, tool) for server, _, tool in named]

    return search


def timed(index: SearchIndex, embedder: Embedder | None, requests: Sequence[Request]) -> dict[str, Spread]:
    """Return the milliseconds of searches for ten hits, by whether the request was split."""
    taken: dict[str, list[float]] = {"one query": [], "several sub-goals": []}
    for request in requests:
        started = time.perf_counter()
        found = index.search(request.text, _HITS, embedder=embedder)
        milliseconds = (time.perf_counter() - started) * 1000
        taken["one query" if len(found.goals) == 1 else "several sub-goals"].append(milliseconds)
    return {kind: spread_of(values) for kind, values in taken.items()}


async def recalled(search: Search, requests: Sequence[Request], sets: Mapping[ToolId, int]) -> WayRecall:
    """Return what a search shows of the wanted tools, by source and over all."""
    rows: defaultdict[str, list[Recall]] = defaultdict(list)
    wanted: defaultdict[str, list[int]] = defaultdict(list)
    for request in requests:
        rows[request.source].append(await _shown(search, request, sets))
        wanted[request.source].append(len(request.wanted))
    apart = {PARAPHRASES, *WHOLE_TASKS}
    return WayRecall(
        one_thing=_mean([row for name, of in rows.items() if name not in apart for row in of]),
        whole_tasks=_mean([row for name, of in rows.items() if name in WHOLE_TASKS for row in of]),
        sources={
            name: SourceRecall(requests=len(of), wanted=statistics.fmean(wanted[name]), recall=_mean(of))
            for name, of in sorted(rows.items())
        },
    )


async def _shown(search: Search, request: Request, sets: Mapping[ToolId, int]) -> Recall:
    things = len(sub_goals(request.text)) if request.source in WHOLE_TASKS else 1
    found = [sets[tool] for tool in await search(request.text, MOST_HITS * things)]
    different = list(dict.fromkeys(found))
    wanted = {sets[tool] for tool in request.wanted}

    def share(shown: Sequence[int]) -> float:
        return len(wanted.intersection(shown)) / len(wanted)

    return Recall(
        at_1=share(different[:things]),
        at_5=share(different[: 5 * things]),
        at_10=share(different[: 10 * things]),
        at_5_each_counted=share(found[: 5 * things]),
    )


def _mean(rows: Sequence[Recall]) -> Recall:
    if not rows:
        return Recall()
    fields = {name: statistics.fmean(getattr(row, name) for row in rows) for name in Recall.model_fields}
    return Recall(**fields)

"""How well and how fast tools are found among 5,000: by meaning, by words, and by FastMCP's search.

Requests are texts that others wrote, with the tools that their references call
(`server.bench.search_data`); tools that do the same count as one (`server.bench.same_tools`),
also in a list of hits. Weights were chosen on half of the requests; the other half is reported.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from anyio import to_thread

from catalog.embeddings import Embedder, EmbeddingsUnavailable, make_vectors, open_minilm
from catalog.search import SearchIndex, tool_entries
from catalog.tools import Tool
from server.bench.fastmcp_search import fastmcp_search
from server.bench.measures import Spread, resident_mb
from server.bench.recall import MOST_HITS, recalled, searching, timed
from server.bench.request import BenchRequest, Measured, show_progress
from server.bench.same_tools import same_sets
from server.bench.search_data import Request, load_labelled, load_medcalc
from server.bench.search_report import BuildCost, SearchBenchReport, WayRecall, render_search_report
from server.progress import Progress, ProgressListener, ignore_progress

__all__ = ["SearchOptions", "measure", "quick_search_options", "run_search_bench"]

_SEED: Final = 7
_TIMED: Final = 100
"""Most requests of a source whose searches are timed."""
_CHANGED: Final = 50
"""Tools whose description changes, for the cost of an update."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How much is measured."""

    tools: int = 5_000
    requests: int | None = None
    """Most requests of a source; None: all."""
    fastmcp_requests: int | None = 40
    """Most requests of a source that FastMCP's search is asked; None: all."""
    medcalc: Path | None = None
    """Rows of MedCalc-Bench; None: left out."""
    listener: ProgressListener = ignore_progress


def quick_search_options() -> SearchOptions:
    """Return a size that ends within a minute on two idle cores."""
    return SearchOptions(tools=400, requests=24, fastmcp_requests=10)


async def run_search_bench(options: SearchOptions) -> SearchBenchReport:
    """Return what is found and how fast, measured now; without the `embeddings` extra by words alone.

    Raises:
        TasksRejected: the MedCalc file cannot be used.
    """
    requests, tools = _chosen(options)
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        try:
            bench = await to_thread.run_sync(_built, tools, Path(folder), options)
        except EmbeddingsUnavailable as reason:
            return await _measured(_by_words(tools), str(reason), requests, options)
        return await _measured(bench, "", requests, options)


async def _measured(
    bench: _Bench, note: str, requests: Sequence[Request], options: SearchOptions
) -> SearchBenchReport:
    tools = bench.tools
    sets = same_sets(tools)
    held = [request for request in requests if request.is_held_out]
    ways: dict[str, WayRecall] = {}
    times: dict[str, dict[str, Spread]] = {}
    for name, embedder in bench.ways.items():
        options.listener(Progress("bench", f"searching: {name}"))
        ways[name] = await recalled(searching(bench.index, embedder), held, sets)
        times[name] = timed(bench.index, embedder, _few(held, _TIMED))
    options.listener(Progress("bench", "searching: FastMCP"))
    few = _few(held, options.fastmcp_requests)
    async with fastmcp_search(tools, MOST_HITS) as (search, version):
        if search is not None:
            ways["fastmcp"] = await recalled(search, few, sets)
    tuned = [request for request in requests if not request.is_held_out]
    best, embedder = next(iter(bench.ways.items()))
    tuning = await recalled(searching(bench.index, embedder), tuned, sets)
    beside = {
        name: await recalled(searching(bench.index, way), few, sets) for name, way in bench.ways.items()
    }
    return SearchBenchReport(
        tools=len(tools),
        distinct_tools=len(set(sets.values())),
        requests=len(held),
        quick=options.requests is not None,
        ways=ways,
        tuning_half=tuning.one_thing,
        beside_fastmcp=beside,
        milliseconds=times,
        build=bench.cost,
        best=best,
        note=note,
        left_out=() if options.medcalc else ("MedCalc-Bench: give its rows with --tasks FILE",),
        fastmcp=version,
    )


@dataclass(frozen=True, slots=True)
class _Bench:
    tools: Sequence[Tool]
    index: SearchIndex
    ways: Mapping[str, Embedder | None]
    cost: BuildCost


def _by_words(tools: Sequence[Tool]) -> _Bench:
    started = time.perf_counter()
    index = SearchIndex(tool_entries(tools))
    cost = BuildCost(words_seconds=time.perf_counter() - started, update_words_seconds=_update(index, tools))
    return _Bench(tools, index, {"words": None}, cost)


def _built(tools: Sequence[Tool], folder: Path, options: SearchOptions) -> _Bench:
    """Build the index with vectors, change some tools, and say what each step took."""
    before = resident_mb()
    bench = _by_words(tools)
    words_mb = resident_mb() - before
    started = time.perf_counter()
    embedder = open_minilm()
    loaded = time.perf_counter() - started
    model_mb = resident_mb() - before - words_mb

    def show(done: int, of: int) -> bool:
        options.listener(Progress("bench", f"embedding: {done} of {of} texts"))
        return True

    started = time.perf_counter()
    vectors = make_vectors(folder, embedder, bench.index.texts, show)
    made = time.perf_counter() - started
    started = time.perf_counter()
    bench.index.update(tool_entries(_changed(tools)))
    changed = make_vectors(folder, embedder, bench.index.texts)
    bench.index.understand(changed)
    updated = time.perf_counter() - started
    bench.index.update(tool_entries(tools))
    started = time.perf_counter()
    bench.index.understand(make_vectors(folder, embedder, bench.index.texts))
    cost = bench.cost.model_copy(
        update={
            "vectors_seconds": made,
            "model_seconds": loaded,
            "texts": vectors.embedded,
            "update_seconds": updated,
            "update_texts": changed.embedded,
            "reopen_seconds": time.perf_counter() - started,
            "words_mb": words_mb,
            "model_mb": model_mb,
            "matrix_mb": vectors.matrix.nbytes / 1e6,
        }
    )
    return _Bench(tools, bench.index, {"embeddings": embedder, "words": None}, cost)


def _update(index: SearchIndex, tools: Sequence[Tool]) -> float:
    started = time.perf_counter()
    index.update(tool_entries(_changed(tools)))
    taken = time.perf_counter() - started
    index.update(tool_entries(tools))
    return taken


def _changed(tools: Sequence[Tool]) -> list[Tool]:
    changed = {tool.id for tool in random.Random(_SEED).sample(list(tools), min(_CHANGED, len(tools)))}
    return [
        replace(tool, description=f"{tool.description} (second edition)") if tool.id in changed else tool
        for tool in tools
    ]


def _chosen(options: SearchOptions) -> tuple[list[Request], list[Tool]]:
    """Return the requests that are asked, and the tools: all that these want, then others by seed."""
    labelled = load_labelled()
    asked = [*labelled.requests, *(load_medcalc(options.medcalc) if options.medcalc else ())]
    requests = _few(asked, options.requests)
    wanted = {tool for request in requests for tool in request.wanted}
    others = [tool for tool in labelled.tools if tool.id not in wanted]
    random.Random(_SEED).shuffle(others)
    filled = {tool.id for tool in others[: max(0, options.tools - len(wanted))]} | wanted
    return requests, [tool for tool in labelled.tools if tool.id in filled]


def _few(requests: Iterable[Request], most: int | None) -> list[Request]:
    by_source: defaultdict[str, list[Request]] = defaultdict(list)
    for request in requests:
        by_source[request.source].append(request)
    chosen: list[Request] = []
    for found in by_source.values():
        random.Random(_SEED).shuffle(found)
        chosen += found[:most]
    return chosen


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for."""
    options = quick_search_options() if request.quick else SearchOptions()
    report = await run_search_bench(replace(options, medcalc=request.tasks, listener=show_progress))
    return Measured(report, render_search_report(report))

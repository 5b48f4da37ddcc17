"""The benchmarks there are: what each measures, what it takes, and where its code is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from server.bench.errors import BenchError
from server.bench.request import BenchRequest, Measured

__all__ = [
    "BENCHMARKS",
    "COMPILE_PARTS",
    "DRIVE_PARTS",
    "STREAM_PARTS",
    "Benchmark",
    "benchmark",
    "refuse_untaken",
]

COMPILE_PARTS = ("accuracy", "tau", "selection", "gate")
"""Parts of the compile benchmark; selection and gate stand on the skills of accuracy."""
DRIVE_PARTS = ("context", "environments", "references", "export")
"""Parts of the drive benchmark."""
STREAM_PARTS = ("suppression", "streams", "foreign")
"""Parts of the stream benchmark; foreign fetches packages, so that --quick has it only where it is named."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark. Its module is imported when it is run: each needs much that the others do not."""

    name: str
    module: str
    """Has `measure(request)`."""
    about: str
    """What it measures, as a sentence that goes on after its name."""
    takes: frozenset[str] = frozenset()
    """Options of `BenchRequest` that mean something to it."""
    parts: tuple[str, ...] = ()

    async def measure(self, request: BenchRequest) -> Measured:
        """Measure.

        Raises:
            BackendError: the model cannot be asked.
            BenchError: it cannot be run here, or takes no such option.
        """
        refuse_untaken(self, request)
        run = cast("Callable[[BenchRequest], Awaitable[Measured]]", import_module(self.module).measure)
        return await run(request)


_ALL = (
    Benchmark(
        "repair",
        "server.bench.repair_bench",
        "breaks workflows on the demo's servers, or with --tasks on those of --config where it is given",
        frozenset({"tasks", "config"}),
    ),
    Benchmark(
        "catalog",
        "server.bench.catalog_bench",
        "measures what relaying costs, how soon it starts, and what it leaves behind",
    ),
    Benchmark(
        "search",
        "server.bench.search_bench",
        "needs no server; --tasks adds rows of MedCalc-Bench",
        frozenset({"tasks"}),
    ),
    Benchmark(
        "planning",
        "server.bench.planning_bench",
        "measures a model's plans, asked for in three ways; without --model it replays recorded answers",
        frozenset({"model", "tape"}),
    ),
    Benchmark(
        "compile",
        "server.bench.compile_bench",
        "makes skills of recorded sessions; at full size it fetches more servers from the package index,"
        " into environments in the user's cache folder",
        frozenset({"parts", "keep"}),
        COMPILE_PARTS,
    ),
    Benchmark(
        "evolution",
        "server.bench.evolution_bench",
        "repairs weak plans among ten more servers, fetched likewise, with every part of the search and"
        " without it",
        frozenset({"tasks", "config", "model", "tape", "keep", "mcp_bench"}),
    ),
    Benchmark(
        "explore",
        "server.bench.explore_bench",
        "explores real servers, seven of which were set aside and are fetched likewise,"
        " and solves held-out tasks before and after; with --model a small part is planned by it too",
        frozenset({"keep", "model"}),
    ),
    Benchmark(
        "drive",
        "server.bench.drive_bench",
        "drives long tasks step by step under each context template, by a scripted policy, and by a model"
        " where --model names one; measures the environment service; plays every reference solution of its"
        " environments, whose packages are fetched likewise; and has --python read an export",
        frozenset({"model", "keep", "parts", "python"}),
        DRIVE_PARTS,
    ),
    Benchmark(
        "stream",
        "server.bench.stream_bench",
        "shows what curation does to skills that harm or make no difference, on simulated streams, and what a"
        " bank is worth over streams of recurring tasks on the demo's servers: without a model, with a"
        " simulated one that says so, and with --model; then over BFCL, τ²-bench and TextWorld, fetched"
        " likewise",
        frozenset({"parts", "model", "keep"}),
        STREAM_PARTS,
    ),
    Benchmark(
        "problems",
        "server.bench.problems_bench",
        "asks --model the problems of --tasks: a file of HumanEval, MBPP, GSM8K or MATH as published",
        frozenset({"tasks", "model", "keep"}),
    ),
)
BENCHMARKS = {one.name: one for one in _ALL}


def benchmark(name: str) -> Benchmark:
    """Return a benchmark by its name.

    Raises:
        BenchError: there is none.
    """
    if name not in BENCHMARKS:
        raise BenchError(f"no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]


def refuse_untaken(one: Benchmark, request: BenchRequest) -> None:
    """Refuse options that a benchmark would leave unread.

    Raises:
        BenchError: there is one.
    """
    optional = ("tasks", "model", "tape", "parts", "keep", "mcp_bench", "python")
    for option in optional:
        if getattr(request, option) and option not in one.takes:
            takers = [other.name for other in _ALL if option in other.takes]
            flag = "part" if option == "parts" else option.replace("_", "-")
            raise BenchError(f"{one.name} takes no --{flag}; it is for {', '.join(takers)}")
    request.parts_of(one.parts)

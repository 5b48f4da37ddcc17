"""The explore benchmark: what an exploration covers, finds and is worth, on real servers.

Each server is measured by itself (`explore_measuring`) and kept as soon as it is finished, so that a run
which was broken off goes on where it stopped.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from server.bench.errors import BenchError
from server.bench.explore_measuring import ServerSize, measure_server
from server.bench.explore_report import ExploreBenchReport, ServerExplored, render_explore_report
from server.bench.explore_servers import DEMO_EXPLORED, FETCHED
from server.bench.kept import Kept
from server.bench.models import spec_of
from server.bench.request import BenchRequest, Measured, show_progress
from server.progress import Progress, ProgressListener, ignore_progress
from server.provisioning.errors import ProvisioningError

__all__ = ["ExploreBenchOptions", "measure", "quick_explore_options", "run_explore_bench"]

MeasureServer = Callable[[str, ServerSize], Awaitable[ServerExplored]]
_WITH_MODEL = ("mathematics", "calculator", "hashlib", "sqlite", "algebra", "todo", "tables", "exact")
"""Servers with instances to hold out on which a model is asked too; it takes minutes for each."""
_MODEL_SECONDS = 120.0
_ALL = (*DEMO_EXPLORED, *(server.name for server in FETCHED))


@dataclass(frozen=True, slots=True)
class ExploreBenchOptions:
    """How much is measured."""

    quick: bool = False
    servers: tuple[str, ...] = _ALL
    budget_calls: int = 300
    tasks: int = 4
    seconds: float = 8.0
    """Of each attempt at a held-out instance, before and after alike."""
    credited: int | None = 2
    """Tasks of each server for attribution on and off, None: all."""
    seed: int = 0
    model: str | None = None
    """Who plans the held-out instances once more, None: nobody."""
    keep: Path | None = None
    """File of JSON lines that finished servers are read from and added to; None: nothing is kept."""
    listener: ProgressListener = ignore_progress

    @property
    def size(self) -> ServerSize:
        """How much of each server."""
        return ServerSize(
            self.budget_calls, self.tasks, self.seconds, self.seed, self.credited, listener=self.listener
        )

    @property
    def size_with_model(self) -> ServerSize:
        """How much of each server that a model plans on; it takes seconds an answer.

        Raises:
            BenchError: no such model.
            ValueError: none is named.
        """
        if self.model is None:
            raise ValueError("no model plans")
        return replace(self.size, seconds=_MODEL_SECONDS, credited=0, model=spec_of(self.model))


def quick_explore_options() -> ExploreBenchOptions:
    """Return a size that ends within a minute or so: two servers, two tasks each."""
    return ExploreBenchOptions(
        quick=True,
        servers=("hashlib", "calculator"),
        budget_calls=60,
        tasks=2,
        seconds=3.0,
        credited=1,
    )


async def run_explore_bench(
    options: ExploreBenchOptions, measuring: MeasureServer = measure_server
) -> ExploreBenchReport:
    """Return what was measured; a server that cannot be had is told of and does not end the rest."""
    started = time.perf_counter()
    kept = Kept(options.keep)
    measured = [await _measured(name, options.size, kept, measuring) for name in options.servers]
    asked = () if options.model is None else [name for name in options.servers if name in _WITH_MODEL]
    modelled = [await _measured(name, options.size_with_model, kept, measuring) for name in asked]
    return ExploreBenchReport(
        quick=options.quick,
        budget_calls=options.budget_calls,
        seed=options.seed,
        versions={"python": platform.python_version(), "skillbank": version("skillbank")},
        servers=tuple(measured),
        model=options.model,
        with_model=tuple(modelled),
        seconds=time.perf_counter() - started,
    )


async def _measured(name: str, size: ServerSize, kept: Kept, measuring: MeasureServer) -> ServerExplored:
    async def make() -> ServerExplored:
        size.listener(Progress("bench", f"exploring {name}"))
        begun = time.perf_counter()
        found = await measuring(name, size)
        return found.model_copy(update={"seconds": time.perf_counter() - begun})

    parts = (size.budget_calls, size.tasks, size.seconds, size.credited, size.seed, size.model or "no model")
    key = " ".join(map(str, (name, *parts)))
    try:
        return await kept.or_made("explore", key, ServerExplored, make)
    except (BenchError, ProvisioningError) as error:
        return ServerExplored(server=name, problem=str(error))


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for."""
    options = quick_explore_options() if request.quick else ExploreBenchOptions()
    options = replace(options, keep=request.keep, model=request.model, listener=show_progress)
    report = await run_explore_bench(options)
    return Measured(report, render_explore_report(report))

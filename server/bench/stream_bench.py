"""The stream benchmark: what a bank is worth while tasks come in, and what curation does to a bad skill.

`suppression` is simulated and says so; `streams` runs on real servers, planned without a model, by a
simulated one that says so, and by a real one where it is given; `foreign` is over worlds of others.
"""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from server.backends.backend import Wire
from server.bench.forks import open_forks
from server.bench.kept import Kept
from server.bench.models import spec_of
from server.bench.registry import STREAM_PARTS
from server.bench.request import BenchRequest, Measured, show_progress
from server.bench.stream_foreign import ForeignSize, measure_foreign
from server.bench.stream_foreign_report import render_foreign
from server.bench.stream_report import StreamBenchReport
from server.bench.stream_runs import StreamSize, measure_streams
from server.bench.stream_table import render_stream_report
from server.bench.stream_world import Stage
from server.bench.suppression import SuppressionOptions, measure_suppression
from server.progress import ProgressListener, ignore_progress
from server.wiring import open_bank

__all__ = ["StreamOptions", "measure", "quick_stream_options", "run_stream_bench"]


@dataclass(frozen=True)
class StreamOptions:
    """How much is measured."""

    quick: bool = False
    parts: tuple[str, ...] = STREAM_PARTS
    streams: StreamSize = field(default_factory=StreamSize)
    suppression: SuppressionOptions = field(default_factory=SuppressionOptions)
    foreign: ForeignSize = field(default_factory=ForeignSize)
    listener: ProgressListener = ignore_progress
    model: Wire | None = None
    """A real model that plans a part of the stream, None: none does."""
    keep: Path | None = None
    """File that finished pieces are read from and added to, None: nothing is kept."""


def quick_stream_options() -> StreamOptions:
    """Return a size that ends within a minute on a machine that is not busy."""
    return StreamOptions(
        quick=True,
        streams=StreamSize(
            length=10,
            families=2,
            planted=1,
            frozen=("without a model",),
            changed=0,
            hard=0,
            conditions=("none", "+ curation"),
            simulated=("none", "+ curation"),
        ),
        suppression=SuppressionOptions(streams=20),
        foreign=ForeignSize(families=1, each=2),
    )


async def run_stream_bench(options: StreamOptions) -> StreamBenchReport:
    """Return what was measured."""
    started = time.perf_counter()
    curve = None
    if "suppression" in options.parts:
        simulated = replace(options.suppression, listener=options.listener)
        curve = measure_suppression(simulated, time.perf_counter)
    streams = None
    if "streams" in options.parts:
        async with open_forks() as forks:
            stage = Stage(options.listener, forks)
            streams = await measure_streams(options.streams, stage, options.model, options.keep)
    foreign = None
    if "foreign" in options.parts:
        foreign = await measure_foreign(options.foreign, Kept(options.keep), options.listener)
    return StreamBenchReport(
        quick=options.quick,
        versions={"python": platform.python_version(), "skillbank": version("skillbank")},
        suppression=curve,
        streams=streams,
        foreign=foreign,
        seconds=time.perf_counter() - started,
    )


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for."""
    options = quick_stream_options() if request.quick else StreamOptions()
    parts = request.parts_of(STREAM_PARTS)
    if request.quick and not request.parts:
        parts = tuple(part for part in parts if part != "foreign")
    options = replace(options, parts=parts, keep=request.keep, listener=show_progress)
    if request.model is None:
        return _measured(await run_stream_bench(options))
    async with open_bank(request.configured) as bank:
        model = await bank.context.models.open(spec_of(request.model))
        return _measured(await run_stream_bench(replace(options, model=model)))


def _measured(report: StreamBenchReport) -> Measured:
    tables: dict[str, str] = {}
    if report.suppression or report.streams:
        tables["stream"] = render_stream_report(report)
    if report.foreign:
        tables["stream-foreign"] = render_foreign(report.foreign)
    return Measured(report, "\n".join(tables.values()), tables)

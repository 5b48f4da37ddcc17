"""One benchmark from its name to what is printed: the command `skillbank bench`.

What is measured is `repair_bench`, `catalog_bench`, `search_bench`, `planning_bench`, `compile_bench`,
`stream_bench`, `evolution_bench` and `problems_bench` of this package; they are imported when they are
wanted, since the command line imports it for its errors.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from server.bench.errors import BenchError
from server.progress import Progress
from server.settings import Settings, read_settings

if TYPE_CHECKING:
    from catalog.config import ModelSpec
    from server.backends.backend import Backend
    from server.bench.catalog_report import CatalogBenchReport
    from server.bench.compile_report import CompileBenchReport
    from server.bench.evolution_bench import EvolutionOptions
    from server.bench.evolution_report import EvolutionReport
    from server.bench.planning_report import PlanningBenchReport
    from server.bench.planning_tape import Tape
    from server.bench.problems_bench import ProblemsReport
    from server.bench.repair_report import RepairBenchReport
    from server.bench.search_report import SearchBenchReport
    from server.bench.stream_report import StreamBenchReport

__all__ = ["BENCHMARKS", "COMPILE_PARTS", "STREAM_PARTS", "run_bench", "write_table"]

BENCHMARKS = ("repair", "catalog", "search", "planning", "compile", "stream", "evolution", "problems")
COMPILE_PARTS = ("accuracy", "tau", "selection", "gate")
"""Parts of the compile benchmark; selection and gate stand on the skills of accuracy."""
STREAM_PARTS = ("suppression", "streams")
"""Parts of the stream benchmark."""


async def run_bench(
    name: str,
    *,
    quick: bool = False,
    as_json: bool = False,
    tasks: Path | None = None,
    config: Path | None = None,
    write: Path | None = None,
    model: str | None = None,
    tape: Path | None = None,
    settings: Settings | None = None,
    parts: tuple[str, ...] = (),
    keep: Path | None = None,
    mcp_bench: Path | None = None,
) -> int:
    """Measure, print the numbers, and return the exit code.

    Args:
        name: one of `BENCHMARKS`.
        quick: a size that ends within a minute.
        as_json: print the report as JSON instead of a table.
        tasks: a file of others' cases, for `repair` and `evolution`; rows of MedCalc-Bench, for `search`;
            problems, for `problems`.
        config: the servers those cases call; None: the demo's servers.
        write: a Markdown file whose table of this benchmark is replaced.
        model: for `planning` and `evolution`, who plans: a model as configurations name it, or
            `recorded:FILE`; None: what was recorded with the benchmark. For `stream`, a model that
            plans a part of it too.
        tape: for `planning` and `evolution`, where answers are kept, and found when it is run again.
        settings: where models are configured; None: those of this process.
        parts: of `compile` or `stream`, those that are measured; empty: all of them.
        keep: for `compile` and `evolution`, a file that finished pieces are read from and added to.
        mcp_bench: for `evolution`, a checkout of MCP-Bench's public repository.

    Raises:
        BackendError: the model cannot be asked.
        BenchError: no such benchmark, or it cannot be run here.
    """
    match name:
        case "repair":
            report = await _repair(quick, tasks, config)
        case "catalog":
            report = await _catalog(quick)
        case "planning":
            report = await _planning(quick, model, tape, settings or read_settings())
        case "search":
            report = await _search(quick, tasks)
        case "compile":
            report = await _compile(quick, _known(parts, COMPILE_PARTS), keep)
        case "stream":
            report = await _stream(quick, _known(parts, STREAM_PARTS), model, settings or read_settings())
        case "evolution":
            brought = _EvolutionRequest(quick, tasks, config, keep, mcp_bench)
            report = await _evolution(brought, model, tape, settings or read_settings())
        case "problems":
            report = await _problems(tasks, model, settings or read_settings())
        case _:
            raise BenchError(f"no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
    table = _rendered(report)
    if write is not None:
        write_table(write, name, table)
    sys.stdout.write(report.model_dump_json(indent=2) + "\n" if as_json else table)
    return 0


async def _repair(quick: bool, tasks: Path | None, config: Path | None) -> RepairBenchReport:
    from server.bench.repair_bench import RepairOptions, quick_options, run_repair_bench
    from server.bench.tasks import load_tasks
    from server.wiring import open_bank

    options = quick_options() if quick else RepairOptions()
    brought = None if tasks is None else tuple(load_tasks(tasks))
    options = replace(options, tasks=brought, config=config, listener=_show)
    return await run_repair_bench(options, open_bank)


async def _catalog(quick: bool) -> CatalogBenchReport:
    from server.bench.catalog_bench import CatalogOptions, quick_catalog_options, run_catalog_bench

    options = quick_catalog_options(_show) if quick else CatalogOptions(listener=_show)
    return await run_catalog_bench(options)


async def _planning(
    quick: bool, model: str | None, tape: Path | None, settings: Settings
) -> PlanningBenchReport:
    from catalog.config import parse_model
    from server.bench.planning_bench import PlanningOptions, recorded_tape, run_planning_bench
    from server.bench.planning_tape import read_tape
    from server.wiring import open_bank

    if model is None or model.startswith("recorded:"):
        kept = recorded_tape() if model is None else read_tape(Path(model.removeprefix("recorded:")))
        return await run_planning_bench(PlanningOptions(kept, quick=quick, listener=_show), open_bank)
    try:
        spec = parse_model(model)
    except ValueError as error:
        raise BenchError(f"{error}, or recorded:FILE") from error
    async with open_bank(settings) as bank:
        live = await bank.context.models.open(spec)
        options = PlanningOptions(await _tape(tape, live), live, quick, _show)
        return await run_planning_bench(options, open_bank)


async def _tape(path: Path | None, live: Backend) -> Tape:
    """Return the tape a model's answers are kept on, as it stands when it was begun before."""
    from server.bench.planning_bench import new_tape
    from server.bench.planning_tape import About, Tape, read_tape

    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    recorded = time.strftime("%Y-%m-%d")
    about = About(
        model=live.name,
        machine=machine,
        recorded=recorded,
        context_tokens=live.context_tokens,
        samples=live.samples,
    )
    if path is None:
        return Tape(about)
    if not path.exists():
        return new_tape(path, about)
    kept = read_tape(path, extend=True)
    if kept.about.model != live.name:
        raise BenchError(f"{path} holds answers of {kept.about.model}, not of {live.name}: name another file")
    return kept


async def _search(quick: bool, tasks: Path | None) -> SearchBenchReport:
    from server.bench.search_bench import SearchOptions, quick_search_options, run_search_bench

    options = quick_search_options() if quick else SearchOptions()
    return await run_search_bench(replace(options, medcalc=tasks, listener=_show))


async def _compile(quick: bool, parts: tuple[str, ...], keep: Path | None) -> CompileBenchReport:
    from server.bench.compile_bench import CompileOptions, quick_compile_options, run_compile_bench
    from server.wiring import open_bank

    options = quick_compile_options() if quick else CompileOptions()
    options = replace(options, parts=parts or COMPILE_PARTS, keep=keep, listener=_show)
    return await run_compile_bench(options, open_bank)


async def _stream(
    quick: bool, parts: tuple[str, ...], model: str | None, settings: Settings
) -> StreamBenchReport:
    from server.bench.stream_bench import StreamOptions, quick_stream_options, run_stream_bench
    from server.wiring import open_bank

    options = quick_stream_options() if quick else StreamOptions()
    options = replace(options, parts=parts or STREAM_PARTS, listener=_show)
    if model is None:
        return await run_stream_bench(options)
    async with open_bank(settings) as bank:
        return await run_stream_bench(replace(options, model=await bank.context.models.open(_spec(model))))


async def _problems(tasks: Path | None, model: str | None, settings: Settings) -> ProblemsReport:
    from server.bench.problems import load_problems
    from server.bench.problems_bench import ProblemsOptions, run_problems_bench
    from server.wiring import open_bank

    if tasks is None or model is None:
        raise BenchError(
            "problems are yours and a model's: give a file with --tasks and a model with --model"
        )
    problems = load_problems(tasks)
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        apart = replace(settings, store_path=Path(folder) / "store.db")
        async with open_bank(apart) as bank:
            wire = await bank.context.models.open(_spec(model))
            return await run_problems_bench(ProblemsOptions(problems, wire, _show), bank)


def _spec(model: str) -> ModelSpec:
    from catalog.config import parse_model

    try:
        return parse_model(model)
    except ValueError as error:
        raise BenchError(str(error)) from error


def _known(parts: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    if strange := [part for part in parts if part not in known]:
        raise BenchError(f"no part {strange[0]!r} here; there are {', '.join(known)}")
    return parts


@dataclass(frozen=True, slots=True)
class _EvolutionRequest:
    quick: bool
    tasks: Path | None
    config: Path | None
    keep: Path | None
    mcp_bench: Path | None

    def options(self, tape: Tape, live: Backend | None = None) -> EvolutionOptions:
        from server.bench.evolution_bench import EvolutionOptions, quick_evolution_options
        from server.bench.tasks import load_tasks

        usual = quick_evolution_options(tape) if self.quick else EvolutionOptions(tape)
        return replace(
            usual,
            live=live,
            tasks=None if self.tasks is None else tuple(load_tasks(self.tasks)),
            config=self.config,
            keep=self.keep,
            mcp_bench=self.mcp_bench,
            listener=_show,
        )


async def _evolution(
    request: _EvolutionRequest, model: str | None, tape: Path | None, settings: Settings
) -> EvolutionReport:
    from catalog.config import parse_model
    from server.bench.evolution_bench import recorded_tapes, run_evolution_bench
    from server.bench.planning_tape import read_tape
    from server.wiring import open_bank

    if model is None or model.startswith("recorded:"):
        kept = recorded_tapes() if model is None else read_tape(Path(model.removeprefix("recorded:")))
        return await run_evolution_bench(request.options(kept), open_bank)
    try:
        spec = parse_model(model)
    except ValueError as error:
        raise BenchError(f"{error}, or recorded:FILE") from error
    async with open_bank(settings) as bank:
        live = await bank.context.models.open(spec)
        return await run_evolution_bench(request.options(await _tape(tape, live), live), open_bank)


def _show(progress: Progress) -> None:
    if progress.stage == "bench":
        print(progress.message, file=sys.stderr)


def _rendered(
    report: RepairBenchReport
    | CatalogBenchReport
    | SearchBenchReport
    | PlanningBenchReport
    | CompileBenchReport
    | StreamBenchReport
    | EvolutionReport
    | ProblemsReport,
) -> str:
    from server.bench.catalog_report import render_catalog_report
    from server.bench.compile_table import render_compile_report
    from server.bench.evolution_table import render_evolution_report
    from server.bench.planning_report import render_planning_report
    from server.bench.problems_bench import render_problems_report
    from server.bench.repair_report import render_repair_report
    from server.bench.search_report import render_search_report
    from server.bench.stream_table import render_stream_report

    match report.bench:
        case "repair":
            return render_repair_report(report)
        case "catalog":
            return render_catalog_report(report)
        case "planning":
            return render_planning_report(report)
        case "search":
            return render_search_report(report)
        case "compile":
            return render_compile_report(report)
        case "stream":
            return render_stream_report(report)
        case "evolution":
            return render_evolution_report(report)
        case "problems":
            return render_problems_report(report)


def write_table(path: Path, name: str, table: str) -> None:
    """Replace the table between a benchmark's marks in a Markdown file.

    Raises:
        BenchError: the file cannot be read or has no such marks.
    """
    begin, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise BenchError(f"{path}: no marks {begin} and {end} to write between")
    path.write_text(f"{head}{begin}\n{table}{end}{tail}", encoding="utf-8")

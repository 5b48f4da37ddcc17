"""One benchmark from its name to what is printed: the command `skillbank bench`.

What is measured is `server.bench.repair_bench` and `server.bench.catalog_bench`; they are imported
when they are wanted, since the command line imports this package for its errors.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from server.bench.errors import BenchError
from server.progress import Progress

if TYPE_CHECKING:
    from server.bench.catalog_report import CatalogBenchReport
    from server.bench.repair_report import RepairBenchReport

__all__ = ["BENCHMARKS", "run_bench", "write_table"]

BENCHMARKS = ("repair", "catalog")


async def run_bench(
    name: str,
    *,
    quick: bool = False,
    as_json: bool = False,
    tasks: Path | None = None,
    config: Path | None = None,
    write: Path | None = None,
) -> int:
    """Measure, print the numbers, and return the exit code.

    Args:
        name: one of `BENCHMARKS`.
        quick: a size that ends within a minute.
        as_json: print the report as JSON instead of a table.
        tasks: a file of others' cases, for `repair`.
        config: the servers those cases call; None: the demo's servers.
        write: a Markdown file whose table of this benchmark is replaced.

    Raises:
        BenchError: no such benchmark, or it cannot be run here.
    """
    match name:
        case "repair":
            report = await _repair(quick, tasks, config)
        case "catalog":
            report = await _catalog(quick)
        case _:
            raise BenchError(f"no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
    table = _rendered(report)
    if write is not None:
        write_table(write, name, table)
    sys.stdout.write(report.model_dump_json(indent=2) + "\n" if as_json else table)
    return 0


async def _repair(quick: bool, tasks: Path | None, config: Path | None) -> RepairBenchReport:
    from dataclasses import replace

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


def _show(progress: Progress) -> None:
    if progress.stage == "bench":
        print(progress.message, file=sys.stderr)


def _rendered(report: RepairBenchReport | CatalogBenchReport) -> str:
    from server.bench.catalog_report import render_catalog_report
    from server.bench.repair_report import render_repair_report

    match report.bench:
        case "repair":
            return render_repair_report(report)
        case "catalog":
            return render_catalog_report(report)


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

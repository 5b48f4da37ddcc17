"""One benchmark from its name to what is printed: the command `skillbank bench`.

What is measured is `repair_bench`, `relay_bench` and `compile_bench` of this package; they are
imported when they are wanted, since the command line imports this package for its errors.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from server.bench.errors import BenchError
from server.progress import Progress

if TYPE_CHECKING:
    from server.bench.compile_report import CompileBenchReport
    from server.bench.relay_bench import RelayBenchReport
    from server.bench.repair_report import RepairBenchReport

__all__ = ["BENCHMARKS", "COMPILE_PARTS", "render_relay_report", "run_bench", "write_table"]

BENCHMARKS = ("repair", "relay", "compile")
COMPILE_PARTS = ("accuracy", "tau", "selection", "gate")
"""Parts of the compile benchmark; selection and gate stand on the skills of accuracy."""


async def run_bench(
    name: str,
    *,
    quick: bool = False,
    as_json: bool = False,
    tasks: Path | None = None,
    config: Path | None = None,
    write: Path | None = None,
    parts: tuple[str, ...] = (),
    keep: Path | None = None,
) -> int:
    """Measure, print the numbers, and return the exit code.

    Args:
        name: one of `BENCHMARKS`.
        quick: a size that ends within a minute.
        as_json: print the report as JSON instead of a table.
        tasks: a file of others' cases, for `repair`.
        config: the servers those cases call; None: the demo's servers.
        write: a Markdown file whose table of this benchmark is replaced.
        parts: of `compile`, those that are measured; empty: all of them.
        keep: for `compile`, a file that finished pieces are read from and added to.

    Raises:
        BenchError: no such benchmark, or it cannot be run here.
    """
    match name:
        case "repair":
            report = await _repair(quick, tasks, config)
        case "relay":
            report = await _relay(quick)
        case "compile":
            report = await _compile(quick, parts, keep)
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


async def _relay(quick: bool) -> RelayBenchReport:
    from server.bench.relay_bench import RelayOptions, run_relay_bench

    return await run_relay_bench(RelayOptions(calls=200) if quick else RelayOptions())


async def _compile(quick: bool, parts: tuple[str, ...], keep: Path | None) -> CompileBenchReport:
    from dataclasses import replace

    from server.bench.compile_bench import CompileOptions, quick_compile_options, run_compile_bench
    from server.wiring import open_bank

    options = quick_compile_options() if quick else CompileOptions()
    options = replace(options, parts=parts or COMPILE_PARTS, keep=keep, listener=_show)
    return await run_compile_bench(options, open_bank)


def _show(progress: Progress) -> None:
    if progress.stage == "bench":
        print(progress.message, file=sys.stderr)


def _rendered(report: RepairBenchReport | RelayBenchReport | CompileBenchReport) -> str:
    from server.bench.compile_table import render_compile_report
    from server.bench.repair_report import render_repair_report

    match report.bench:
        case "repair":
            return render_repair_report(report)
        case "relay":
            return render_relay_report(report)
        case "compile":
            return render_compile_report(report)


def render_relay_report(report: RelayBenchReport) -> str:
    """Return the report as Markdown that reads well on a terminal too."""
    ways = {
        "no relay": report.direct_ms,
        "bare SDK relay": report.bare_ms,
        "skillbank `call_tool`": report.skillbank_ms,
    }
    rows = [
        f"| {name:<21} | {way.median:.2f} | {way.p95:.2f} | {way.max:.1f} |" for name, way in ways.items()
    ]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    lines = [
        "| one call, ms          | p50 | p95 | max |",
        "|---|---:|---:|---:|",
        *rows,
        "",
        f"- {report.calls} calls each way, interleaved; upstream: {report.upstream}; {versions}",
        f"- skillbank over the bare relay: {report.ratio_median:.2f} times at p50,"
        f" {report.ratio_p95:.2f} times at p95",
    ]
    return "\n".join(lines) + "\n"


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

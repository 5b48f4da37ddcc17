"""One benchmark from its name to what is printed: the command `skillbank bench`."""

from __future__ import annotations

import sys
from pathlib import Path

from server.bench.errors import BenchError
from server.bench.registry import benchmark
from server.bench.request import BenchRequest

__all__ = ["run_bench", "write_table"]


async def run_bench(request: BenchRequest) -> int:
    """Measure, print the numbers, and return the exit code.

    Raises:
        BackendError: the model cannot be asked.
        BenchError: no such benchmark, it takes no such option, or it cannot be run here.
    """
    measured = await benchmark(request.name).measure(request)
    if request.write is not None:
        for mark, table in (measured.written or {request.name: measured.table}).items():
            write_table(request.write, mark, table)
    shown = measured.report.model_dump_json(indent=2) + "\n" if request.as_json else measured.table
    sys.stdout.write(shown)
    return 0


def write_table(path: Path, name: str, table: str) -> None:
    """Replace the table between the marks of a name in a Markdown file.

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

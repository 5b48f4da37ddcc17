"""The command that measures: one benchmark by its name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from server.bench.registry import BENCHMARKS
from server.bench.request import BenchRequest
from server.cli.options import EXISTING, session_command
from server.cli.session import Session

__all__ = ["bench"]


def _list_of(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"


def _takers(option: str) -> str:
    return f"For {', '.join(one.name for one in BENCHMARKS.values() if option in one.takes)}: "


_BENCH_HELP = f"""Measure the bank and print the numbers.

NAME is {_list_of(BENCHMARKS)}.

{" ".join(f"{one.name} {one.about}." for one in BENCHMARKS.values())}

\b
Examples:
  skillbank bench repair --quick
  skillbank bench catalog --quick
  skillbank bench repair --tasks mine.json --config mine-servers.json --json
  skillbank bench planning --model local:qwen2.5-coder-1.5b --tape plans.jsonl
  skillbank bench compile --part accuracy --keep finished.jsonl
  skillbank bench stream --part suppression
  skillbank bench evolution --keep finished.jsonl --mcp-bench mcp-bench
"""


@click.command(help=_BENCH_HELP)
@click.argument("name", default="repair")
@click.option("--quick", is_flag=True, help="A smaller size that ends within a minute; says so.")
@click.option("--tasks", type=EXISTING, metavar="FILE", help="Your own cases, in the published format.")
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Replace this benchmark's table in a Markdown file.",
)
@click.option(
    "--model",
    metavar="MODEL",
    help=_takers("model") + "whose plans, or recorded:FILE. Default: those recorded with them.",
)
@click.option(
    "--tape",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=_takers("tape") + "keep the model's answers there, and go on from it when run again.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice([part for one in BENCHMARKS.values() for part in one.parts]),
    help=_takers("parts") + "only this part. Can be given several times. Default: all.",
)
@click.option(
    "--keep",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=_takers("keep") + "go on from what this file has, and add what is finished to it.",
)
@click.option(
    "--mcp-bench",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help=_takers("mcp_bench")
    + "a checkout of MCP-Bench's repository; its tasks that need no network run too.",
)
@click.option(
    "--python",
    type=EXISTING,
    metavar="FILE",
    help=_takers("python") + "the Python that has skillbank[train]. Default: this one.",
)
@session_command
def bench(
    session: Session,
    *,
    name: str,
    quick: bool,
    tasks: Path | None,
    write: Path | None,
    model: str | None,
    tape: Path | None,
    parts: tuple[str, ...],
    keep: Path | None,
    mcp_bench: Path | None,
    python: Path | None,
) -> int:
    settings = session.settings
    request = BenchRequest(
        name=name,
        quick=quick,
        as_json=session.as_json,
        tasks=tasks,
        config=settings.config_path if tasks is not None and settings.config_is_named else None,
        write=write,
        model=model,
        tape=tape,
        settings=settings,
        parts=parts,
        keep=keep,
        mcp_bench=mcp_bench,
        python=python,
    )
    return session.run(lambda: session.wiring.run_bench(request))

"""The drive benchmark: context templates, the environment service, reference solutions, and training data.

Its parts are modules of their own (`drive_context`, `drive_environments`, `drive_references`,
`drive_export`); this one chooses among them and puts their reports together.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

from server.backends.backend import Wire
from server.bench.drive_context import Contexts, OpenBank, measure_contexts, measure_model, open_drives
from server.bench.drive_environments import measure_environments
from server.bench.drive_export import measure_export
from server.bench.drive_references import measure_references
from server.bench.drive_report import DriveBenchReport, render_drive_report
from server.bench.kept import Kept
from server.bench.models import answers_of
from server.bench.planning_tape import About, Tape
from server.bench.registry import DRIVE_PARTS
from server.bench.request import BenchRequest, Measured, show_progress
from server.context.policy import TEMPLATES
from server.progress import ProgressListener, ignore_progress
from server.provisioning.demo_servers import installed_versions

__all__ = ["DriveBenchOptions", "measure", "quick_drive_options", "run_drive_bench"]

_WHOLE = Contexts(lengths=(8, 12, 20, 30), windows=(4_096, 8_192), templates=TEMPLATES)


@dataclass(frozen=True, slots=True)
class DriveBenchOptions:
    """What is measured, and with how much."""

    contexts: Contexts = _WHOLE
    parts: tuple[str, ...] = DRIVE_PARTS
    live: Wire | None = None
    """A model that is driven through short tasks too; None: none is."""
    keep: Path | None = None
    """File of finished rows of the model and of references, None: nothing is kept."""
    python: Path | None = None
    """The interpreter that has the trainer's packages; None: this one."""
    quick: bool = False
    listener: ProgressListener = field(default=ignore_progress)


def quick_drive_options() -> DriveBenchOptions:
    """Return a size that ends within a minute: the shortest task and the longest, the small window.

    References are left out, since packages would be fetched for them, and no trainer takes a step.
    """
    contexts = Contexts(lengths=(8, 30), windows=(4_096,), templates=TEMPLATES)
    parts = tuple(part for part in DRIVE_PARTS if part != "references")
    return DriveBenchOptions(contexts, parts, quick=True)


async def run_drive_bench(options: DriveBenchOptions, open_bank: OpenBank) -> DriveBenchReport:
    """Return what the wanted parts found.

    Raises:
        BenchError: a part cannot be run here.
        DemoServersMissing: the demo's servers are not installed.
        TrainingError: a file of the export cannot be read by its trainer.
    """
    started = time.perf_counter()
    wanted, kept = frozenset(options.parts), Kept(options.keep)
    report = DriveBenchReport(quick=options.quick, versions=_versions(), seconds=0.0)
    if wanted & {"context", "export"}:
        report = await _driven(report, wanted, kept, options, open_bank)
    if "environments" in wanted:
        measured = await measure_environments(options.quick, options.listener)
        report = report.model_copy(update={"environments": measured})
    if "references" in wanted:
        references = await measure_references(options.quick, kept, options.listener)
        report = report.model_copy(update={"references": references})
    return report.model_copy(update={"seconds": time.perf_counter() - started, "notes": _notes(options)})


async def _driven(
    report: DriveBenchReport,
    wanted: frozenset[str],
    kept: Kept,
    options: DriveBenchOptions,
    open_bank: OpenBank,
) -> DriveBenchReport:
    found: dict[str, object] = {}
    async with open_drives(open_bank) as drives:
        if "context" in wanted:
            rows = await measure_contexts(drives, options.contexts, options.listener)
            if options.live is not None:
                rows += await measure_model(drives, options.live, options.contexts, kept, options.listener)
            found["rows"] = rows
        if "export" in wanted:
            found["export"] = await measure_export(drives, options.python, options.quick, options.listener)
    return report.model_copy(update=found)


def _versions() -> dict[str, str]:
    own = {name: metadata.version(name) for name in ("skillbank", "mcp")}
    return {**{n: v for n, v in installed_versions().items() if "git" in n or "hash" in n}, **own}


def _notes(options: DriveBenchOptions) -> tuple[str, ...]:
    left_out = [part for part in DRIVE_PARTS if part not in options.parts]
    contexts = (
        "the policy is scripted, no model: it takes each step from what the messages show, and its tokens are"
        " estimated at three bytes each; what is measured is the context",
        "a prompt that cannot hold what must stay ends a drive by `context`",
        *(() if options.live is not None else ("no model was driven: `--model` names one",)),
    )
    return (
        *(contexts if "context" in options.parts else ()),
        *((f"left out: {', '.join(left_out)}",) if left_out else ()),
    )


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for."""
    from server.wiring import open_bank

    def nothing() -> Tape:
        return Tape(About(model="none"))

    async with answers_of(request, nothing) as (_, live):
        options = quick_drive_options() if request.quick else DriveBenchOptions()
        options = replace(options, live=live, keep=request.keep, python=request.python)
        parts = request.parts_of(DRIVE_PARTS) if request.parts else options.parts
        report = await run_drive_bench(replace(options, parts=parts, listener=show_progress), open_bank)
    return Measured(report, render_drive_report(report))

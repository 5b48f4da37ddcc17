"""The repair benchmark: broken workflows on real tool servers, repaired with no model.

A repair is given the task's words, the inputs, the broken workflow and a verdict; never the
reference, the held-out inputs, or what was damaged. The literals of the assertions go to the
verifier alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeVar, cast

from pydantic import JsonValue

from catalog.config import load_config
from catalog.connections import open_connections
from catalog.effects import Reset
from catalog.tools import Snapshot
from server.bench.cases import Case, CasePlan, Drawn, Repairer, draw_cases, given_cases, holds
from server.bench.repair_report import (
    CaseReport,
    MemoryMeasure,
    RepairBenchReport,
    render_repair_report,
    tallies_of,
)
from server.bench.request import BenchRequest, Measured, show_progress
from server.bench.tasks import reference_tasks
from server.progress import Progress, ProgressListener, ignore_progress
from server.provisioning.demo_files import build_fixtures
from server.provisioning.demo_servers import demo_document, installed_versions
from server.provisioning.task_file import BenchTask, load_tasks, place_fixtures
from server.reports import RepairReport
from server.requests import Budget, RepairRequest
from server.settings import Settings, read_settings
from server.verification import Checks
from skills_store.workflow.edits import render_edit

__all__ = ["OpenBank", "RepairOptions", "demo_config", "measure", "quick_options", "run_repair_bench"]


_BUDGET = Budget(seconds=60.0, calls=600, candidates=1500)


class OpenBank(Protocol):
    """Opens the bank that is measured (`server.wiring.open_bank`)."""

    def __call__(self, settings: Settings, *, memoise: bool) -> AbstractAsyncContextManager[Repairer]: ...


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """What is repaired, and with how much."""

    plan: CasePlan = field(default_factory=CasePlan)
    tasks: tuple[BenchTask, ...] | None = None
    """Others' cases; None: the reference tasks."""
    config: Path | None = None
    """Configuration of the servers that others' cases call; None: the demo's servers."""
    budget: Budget = _BUDGET
    """Of one repair. Local servers answer in milliseconds, so calls are allowed generously."""
    memory_cases: int = 10
    """Cases repaired once more without memoised answers; 0 leaves that out."""
    leave_out: frozenset[str] = frozenset()
    """Servers whose tasks are left out."""
    quick: bool = False
    listener: ProgressListener = field(default=ignore_progress)


def quick_options() -> RepairOptions:
    """Return a size that ends within a minute.

    sqlite is left out: every candidate of its tasks starts a process of its own.
    """
    return RepairOptions(
        plan=CasePlan(singles=12, doubles=4, triples=4),
        budget=Budget(seconds=6.0, calls=100),
        memory_cases=4,
        leave_out=frozenset({"sqlite"}),
        quick=True,
    )


async def run_repair_bench(options: RepairOptions, open_bank: OpenBank) -> RepairBenchReport:
    """Return how many broken workflows are repaired, and at what cost.

    Raises:
        DemoServersMissing: the servers of the reference tasks are not installed.
        BenchError: the world stood in the way of a run.
    """
    started = time.perf_counter()
    async with _prepared(options) as (tasks, settings, snapshot):
        async with open_bank(settings, memoise=True) as bank:
            drawn = await _drawn(tasks, snapshot, bank, options)
            reports = [
                await _repaired(bank, case, options, f"{number} of {len(drawn.cases)}")
                for number, case in enumerate(drawn.cases, 1)
            ]
        repaired = list(zip(drawn.cases, reports, strict=True))
        memory = await _measured_memory(repaired, settings, options, open_bank)
    return RepairBenchReport.model_validate(
        {
            "quick": options.quick,
            "seed": options.plan.seed,
            "tasks": len(tasks),
            "servers": sorted({server for task in tasks for server in task.servers}),
            "versions": {**installed_versions(), **{n: metadata.version(n) for n in ("skillbank", "mcp")}},
            "still_passing": drawn.still_passing,
            "unplaced": drawn.unplaced,
            "memory": memory,
            "seconds": time.perf_counter() - started,
            "cases": reports,
            **tallies_of(reports),
        }
    )


@asynccontextmanager
async def _prepared(options: RepairOptions) -> AsyncGenerator[tuple[list[BenchTask], Settings, Snapshot]]:
    chosen = reference_tasks() if options.tasks is None else list(options.tasks)
    kept = [task for task in chosen if not options.leave_out & set(task.servers)]
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        fixtures = Path(folder) / "fixtures"
        fixtures.mkdir()
        if options.config is None:
            build_fixtures(fixtures)
        tasks = [place_fixtures(task, fixtures) for task in kept]
        settings = _settings(Path(folder), tasks, options)
        async with open_connections(load_config(settings.config_path)) as connections:
            snapshot = await connections.snapshot()
        yield tasks, settings, snapshot


def _settings(folder: Path, tasks: Sequence[BenchTask], options: RepairOptions) -> Settings:
    config = options.config or demo_config(folder, tasks)
    return read_settings(config=config, store=folder / "store.db")


def demo_config(folder: Path, tasks: Sequence[BenchTask]) -> Path:
    """Write a configuration of the demo's servers that the tasks call, and return where.

    Learning is off: a skill made of one case must not answer the next.

    Raises:
        DemoServersMissing: naming every server that is not installed.
    """
    document = demo_document(sorted({server for task in tasks for server in task.servers}))
    document["skillbank"] = {**cast("dict[str, JsonValue]", document["skillbank"]), "learning": "off"}
    path = folder / "config.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


async def _drawn(
    tasks: Sequence[BenchTask], snapshot: Snapshot, bank: Repairer, options: RepairOptions
) -> Drawn:
    options.listener(Progress("bench", "drawing cases, each run once to see that it fails"))
    given = await given_cases(tasks, bank)
    if given.cases or given.still_passing:
        return given
    return await draw_cases(tasks, snapshot, bank, options.plan)


async def _repaired(bank: Repairer, case: Case, options: RepairOptions, place: str) -> CaseReport:
    task = case.task
    request = RepairRequest(
        task=task.task, inputs=task.inputs, checks=Checks(task.assertions), budget=options.budget
    )
    started = time.perf_counter()
    report, crashed = RepairReport(status="failed", outputs=None, workflow=case.broken), None
    try:
        report = await bank.repair(case.broken, request)
    except Exception as error:  # a defect of ours is a result of the benchmark, shown in its table
        crashed = "; ".join(_messages(error))
    seconds = time.perf_counter() - started
    outcome = f"crashed: {crashed}" if crashed else report.status
    options.listener(Progress("bench", f"{place}: {task.id}, {', '.join(case.kinds)}: {outcome}"))
    return CaseReport(
        task=task.id,
        kinds=tuple(str(kind) for kind in case.kinds),
        details=case.details,
        lost=case.lost,
        seed=case.seed,
        status=report.status,
        crashed=crashed,
        right_on_held_out=await _right_on_held_out(bank, task, report),
        calls=report.calls,
        candidates=report.candidates,
        seconds=seconds,
        edits=tuple(render_edit(edit) for edit in report.edits),
        broken=case.broken,
        repaired=report.workflow,
    )


def _messages(error: Exception) -> list[str]:
    if isinstance(error, ExceptionGroup):
        inner = cast("ExceptionGroup[Exception]", error).exceptions
        return [message for part in inner for message in _messages(part)]
    return [f"{type(error).__name__}: {error}"]


async def _right_on_held_out(bank: Repairer, task: BenchTask, report: RepairReport) -> bool | None:
    if report.status != "verified" or not task.held_out:
        return None
    for held in task.held_out:
        if not await holds(bank, report.workflow, held.inputs, Checks(held.assertions)):
            return False
    return True


async def _measured_memory(
    repaired: Sequence[tuple[Case, CaseReport]],
    settings: Settings,
    options: RepairOptions,
    open_bank: OpenBank,
) -> MemoryMeasure | None:
    """Repair some cases again without memoised answers, and compare with the run that had them.

    What runs in a process of its own is never memoised: such cases would only blur the difference.
    """
    effects = load_config(settings.config_path).effects
    free = [
        (case, report)
        for case, report in repaired
        if report.crashed is None
        and all(effects.reset_mode(server) is Reset.NONE for server in case.task.servers)
    ]
    chosen = _spread_over(free, options.memory_cases)
    if not chosen:
        return None
    async with open_bank(settings, memoise=False) as bank:
        await _connect([case for case, _ in repaired], bank)
        again = [await _repaired(bank, case, options, "without memory") for case, _ in chosen]
    before = [report for _, report in chosen]
    return MemoryMeasure(
        cases=len(chosen),
        with_memory=_candidates_per_second(before),
        without_memory=_candidates_per_second(again),
        calls_with=sum(report.calls for report in before),
        calls_without=sum(report.calls for report in again),
    )


async def _connect(cases: Sequence[Case], bank: Repairer) -> None:
    """Have every server of the cases started before anything is measured."""
    started = set[str]()
    for case in cases:
        if not started.issuperset(case.task.servers):
            await bank.run(case.broken, case.task.inputs, Checks(case.task.assertions))
            started.update(case.task.servers)


def _candidates_per_second(reports: Sequence[CaseReport]) -> float:
    return sum(report.candidates for report in reports) / sum(report.seconds for report in reports)


_Item = TypeVar("_Item")


def _spread_over(items: Sequence[_Item], count: int) -> list[_Item]:
    """Return items at even distances, the last included."""
    if count <= 0 or not items:
        return []
    step = max(1, len(items) // count)
    return list(items[::-1][::step][:count])


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for."""
    from server.wiring import open_bank

    options = quick_options() if request.quick else RepairOptions()
    brought = None if request.tasks is None else tuple(load_tasks(request.tasks))
    options = replace(options, tasks=brought, config=request.config, listener=show_progress)
    report = await run_repair_bench(options, open_bank)
    return Measured(report, render_repair_report(report))

"""The planning benchmark: a model's plans for tasks on real tool servers, in several ways of asking.

A planner is given the task's words, its inputs, the tools, and the names of the outputs; never the
reference or what the checks compare with. Completions are kept on a tape (`planning_tape`), so that a
run resumes and is repeated without the model; the plans are run anew each time.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import metadata, resources
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from catalog.config import load_config
from catalog.connections import open_connections
from catalog.effects import EffectTable
from catalog.search import ToolIndex
from catalog.tools import Snapshot
from server.backends.backend import Backend
from server.bench.cases import Repairer, holds
from server.bench.errors import BenchError
from server.bench.models import answers_of
from server.bench.planning_report import PlanningBenchReport, PlanReport, render_planning_report, ways_of
from server.bench.planning_tape import NotRecorded, Tape, read_tape
from server.bench.planning_ways import CONDITIONS, Condition
from server.bench.repair_bench import OpenBank, demo_config
from server.bench.request import BenchRequest, Measured, show_progress
from server.bench.tasks import planning_tasks
from server.planning.catalog_view import WHOLE_CATALOG_TOKENS
from server.planning.conversation import MeteredBackend
from server.planning.model_planner import ModelPlanner
from server.planning.plan_reading import PlanReading
from server.planning.sequence import in_sequence
from server.planning.view import World
from server.planning.wanted import wanted_outputs
from server.progress import Progress, ProgressListener, ignore_progress
from server.provisioning.demo_files import FIXTURES, build_fixtures
from server.provisioning.demo_servers import installed_versions
from server.provisioning.task_file import BenchTask, place_fixtures
from server.requests import Budget, RepairRequest
from server.settings import read_settings
from server.verification import Checks
from skills_store.workflow.check import check_workflow
from skills_store.workflow.model import Workflow

__all__ = ["PlanningOptions", "measure", "recorded_tape", "run_planning_bench"]

_RECORDED = "planning_qwen15.jsonl.gz"
_REPAIR = Budget(seconds=10.0, calls=300, candidates=150)
_QUICK_REPAIR = Budget(seconds=4.0, calls=100, candidates=200)
_QUICK_TASKS = 8
_ANSWER_SECONDS = 600.0
_ARGUMENT_FAULTS = frozenset({"missing_argument", "unexpected_argument", "invalid_argument"})


@dataclass(frozen=True, slots=True)
class PlanningOptions:
    """Whose plans are measured, and how many."""

    tape: Tape
    live: Backend | None = None
    """Asked for what is not on the tape; None: only what is there is measured."""
    quick: bool = False
    listener: ProgressListener = field(default=ignore_progress)


@dataclass(frozen=True, slots=True)
class _Stage:
    """What a plan is measured on."""

    bank: Repairer
    snapshot: Snapshot
    effects: EffectTable
    fixtures: Path
    options: PlanningOptions


def recorded_tape() -> Tape:
    """Return the completions that come with the benchmark.

    Raises:
        BenchError: there are none in this installation.
    """
    with resources.as_file(resources.files("server.bench").joinpath("data", _RECORDED)) as path:
        if not path.exists():
            raise BenchError(
                "no completions were recorded: give a model with --model, or a tape recorded:FILE"
            )
        return read_tape(path)


async def run_planning_bench(options: PlanningOptions, open_bank: OpenBank) -> PlanningBenchReport:
    """Return what becomes of a model's plans, way by way.

    Raises:
        DemoServersMissing: the servers of the tasks are not installed.
        BackendError: the model cannot be asked.
        BenchError: there is nothing to measure.
    """
    started = time.perf_counter()
    plans: list[PlanReport] = []
    async with _staged(options, open_bank) as (tasks, stage):
        for condition, task in product(CONDITIONS, tasks):
            try:
                plans.append(await _measured(task, condition, stage))
            except NotRecorded:
                continue  # a tape may hold a part of all plans; how many is in the table
    if not plans:
        raise BenchError("the tape holds no answer to any of the tasks: give a model with --model")
    main, more = _compared(plans)
    return PlanningBenchReport(
        quick=options.quick,
        recorded=options.live is None,
        about=options.tape.about,
        tasks=len({plan.task for plan in main}),
        changed_prompts=len(options.tape.changed),
        whole_up_to=WHOLE_CATALOG_TOKENS,
        versions={**installed_versions(), **{n: metadata.version(n) for n in ("skillbank", "mcp")}},
        seconds=time.perf_counter() - started,
        ways=ways_of(main),
        whole_against_retrieved=ways_of(more),
        plans=tuple(plans),
    )


def _compared(plans: Sequence[PlanReport]) -> tuple[list[PlanReport], list[PlanReport]]:
    """Return the plans of tasks asked in every way, and those of tasks asked with all tools and with some."""
    usual, retrieved = CONDITIONS[0].name, CONDITIONS[-1].name
    asked = {name: {p.task for p in plans if p.condition == name} for name in {p.condition for p in plans}}
    ways = [tasks for name, tasks in asked.items() if name != retrieved]
    in_every = set[str].intersection(*ways) if ways else set[str]()
    both = asked.get(retrieved, set()) & {p.task for p in plans if p.condition == usual and p.is_whole}
    main = [plan for plan in plans if plan.condition != retrieved and plan.task in in_every]
    more = [plan for plan in plans if plan.condition in (usual, retrieved) and plan.task in both]
    return main, more


@asynccontextmanager
async def _staged(
    options: PlanningOptions, open_bank: OpenBank
) -> AsyncGenerator[tuple[list[BenchTask], _Stage]]:
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        fixtures = Path(folder) / "fixtures"
        fixtures.mkdir()
        build_fixtures(fixtures)
        # Tasks on the same servers follow one another, so that the model's prompt cache holds.
        tasks = sorted(
            (place_fixtures(t, fixtures) for t in planning_tasks()), key=lambda t: sorted(t.servers)
        )
        tasks = [task for task in tasks if _is_quick(task)][:_QUICK_TASKS] if options.quick else tasks
        config = demo_config(Path(folder), tasks)
        loaded = load_config(config)
        async with open_connections(loaded) as connections:
            snapshot = await connections.snapshot()
        async with open_bank(
            read_settings(config=config, store=Path(folder) / "store.db"), memoise=True
        ) as bank:
            yield tasks, _Stage(bank, snapshot, loaded.effects, fixtures, options)


def _is_quick(task: BenchTask) -> bool:
    return not {"sqlite", "excel", "git"} & set(task.servers)


async def _measured(task: BenchTask, condition: Condition, stage: _Stage) -> PlanReport:
    """Return what becomes of one plan: read, checked, run as it is, and repaired."""
    known = Snapshot.of(*(tool for tool in stage.snapshot if tool.id.server in task.servers))
    world = World(task.task, task.inputs, known, stage.effects, ToolIndex(known))
    hidden = {FIXTURES: str(stage.fixtures)}
    taped = stage.options.tape.at(condition.name, task.id, stage.options.live, hidden)
    model = MeteredBackend(taped)
    planner = ModelPlanner(
        model,
        world,
        wanted_outputs(Checks(task.assertions)),
        way=condition.way,
        whole_up_to=condition.whole_up_to,
    )
    [reading] = await planner.propose(deadline_seconds=_ANSWER_SECONDS)
    view = await planner.view()
    report = PlanReport(
        task=task.id,
        condition=condition.name,
        parseable=reading.workflow is not None,
        is_whole=view.is_whole,
        view_tokens=view.tokens,
        input_tokens=model.usage.input_tokens,
        cached_tokens=model.usage.cached_tokens,
        output_tokens=model.usage.output_tokens,
        seconds=sum(turn.completion.seconds for turn in model.turns),
        faults=tuple(fault.message for fault in reading.faults),
    )
    report = report.model_copy(update=await _run(task, reading, world, stage))
    stage.options.listener(Progress("bench", f"{condition.name}: {task.id}: {_outcome(report)}"))
    return report


async def _run(task: BenchTask, reading: PlanReading, world: World, stage: _Stage) -> dict[str, object]:
    if reading.workflow is None:
        return {}
    plan = in_sequence(reading.workflow, world)
    static = check_workflow(plan, world.snapshot)
    kinds = {fault.kind for fault in static}
    checks = Checks(task.assertions)
    ran = await stage.bank.run(plan.to_json(), task.inputs, checks)
    is_complete = ran.outputs is not None and all(value is not None for value in ran.outputs.values())
    repaired, best = ran.status == "verified", plan
    if not repaired:
        budget = _QUICK_REPAIR if stage.options.quick else _REPAIR
        request = RepairRequest(task=task.task, inputs=task.inputs, checks=checks, budget=budget)
        report = await stage.bank.repair(plan.to_json(), request)
        repaired, best = report.status == "verified", Workflow.model_validate(report.workflow)
    return {
        "existing_tools": "unknown_tool" not in kinds,
        "schema_valid": not kinds & (_ARGUMENT_FAULTS | {"unknown_tool"}),
        "executed": is_complete,
        "right": ran.status == "verified",
        "repaired": repaired,
        "right_on_held_out": await _held_out(task, best, stage) if repaired and task.held_out else None,
        "faults": tuple(fault.message for fault in (*reading.faults, *(static or ran.faults))),
    }


async def _held_out(task: BenchTask, workflow: Workflow, stage: _Stage) -> bool:
    for held in task.held_out:
        if not await holds(stage.bank, workflow.to_json(), held.inputs, Checks(held.assertions)):
            return False
    return True


def _outcome(report: PlanReport) -> str:
    if not report.parseable:
        return "not readable"
    return "right" if report.right else "right after repair" if report.repaired else "not right"


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for."""
    from server.wiring import open_bank

    async with answers_of(request, recorded_tape) as (tape, live):
        options = PlanningOptions(tape, live, request.quick, show_progress)
        report = await run_planning_bench(options, open_bank)
    return Measured(report, render_planning_report(report))

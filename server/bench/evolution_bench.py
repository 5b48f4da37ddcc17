"""The evolution benchmark: weak plans on real servers, among ten others, repaired condition by condition.

What is measured with whom: plans (`evolution_plans`) of tasks (`tasks.evolution_tasks`) under conditions
(`evolution_conditions`, `evolution_react`); every piece is kept as soon as it is finished, so that a run
which was broken off goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import metadata, resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeVar

from catalog.config import load_config
from catalog.tools import Snapshot
from server.backends.backend import Backend
from server.bank import Bank
from server.bench.damage import MEASURED
from server.bench.errors import BenchError
from server.bench.evolution_conditions import CONDITIONS, Condition, measure_plan
from server.bench.evolution_editor import EditorTape
from server.bench.evolution_mix import STRENGTHS, faults_against, measured_mix
from server.bench.evolution_plans import (
    WAYS,
    Place,
    WeakPlan,
    plans_without_model,
    recorded_plan,
    simulated_plan,
)
from server.bench.evolution_react import REACT, run_react
from server.bench.evolution_report import EvolutionReport, McpBenchRow, Mix, PlanOutcome, groups_of
from server.bench.evolution_table import render_evolution_report
from server.bench.evolution_world import (
    DISTRACTORS,
    WORLD_SERVERS,
    Part,
    catalog_of,
    distractors,
    fetch_world,
    part_of,
    world_config,
)
from server.bench.kept import Kept
from server.bench.models import answers_of
from server.bench.planning_tape import NotRecorded, Tape, read_tape
from server.bench.request import BenchRequest, Measured, show_progress
from server.bench.tasks import evolution_tasks
from server.progress import Progress, ProgressListener, ignore_progress
from server.provisioning.demo_files import FIXTURES, build_fixtures
from server.provisioning.demo_servers import installed_versions
from server.provisioning.fetched import FETCHED_SERVERS
from server.provisioning.task_file import BenchTask, load_tasks, place_fixtures
from server.requests import Budget
from server.settings import Settings, read_settings
from skills_store.workflow.model import parse_workflow

__all__ = [
    "EvolutionOptions",
    "OpenBank",
    "measure",
    "quick_evolution_options",
    "recorded_tapes",
    "run_evolution_bench",
]

_RECORDED = ("planning_qwen15.jsonl.gz", "evolution_qwen15.jsonl.gz")
_Item = TypeVar("_Item")
_EDITING = "edits"
_OF_OTHERS = ("zero-shot", "deterministic ladder", "ladder, then population")


class OpenBank(Protocol):
    """Opens the bank whose servers are called (`server.wiring.open_bank`)."""

    def __call__(self, settings: Settings, *, memoise: bool) -> AbstractAsyncContextManager[Bank]: ...


@dataclass(frozen=True, slots=True)
class EvolutionOptions:
    """What is measured, and with how much."""

    tape: Tape
    """Answers of the model: plans, edits and ReAct."""
    live: Backend | None = None
    """Asked for what is not on the tape; None: only what is there is measured."""
    tasks: tuple[BenchTask, ...] | None = None
    """Others' cases; None: the benchmark's own. Those with `broken` are repaired as they are."""
    config: Path | None = None
    """Configuration of the servers that others' cases call; None: the benchmark's servers."""
    mcp_bench: Path | None = None
    """A checkout of MCP-Bench's public repository; None: that part is left out."""
    budget: Budget = field(default_factory=lambda: Budget(seconds=20.0, calls=300, candidates=300))
    """Of one search. Local servers answer in milliseconds, so calls are allowed generously."""
    seed: int = 20261130
    part_plans: int = 16
    """Recorded plans on which the ablations and the model's conditions run."""
    simulated_tasks: int = 10
    """Tasks whose references the simulator damages, at each strength."""
    unmodelled_tasks: int | None = 10
    """Tasks that are planned without a model too, of those that a model planned; None: all of them."""
    recorded_tasks: int | None = None
    """Tasks whose recorded plans are repaired, None: all that are on the tape; also those that a model
    is asked for."""
    on_all: frozenset[str] = frozenset({*_OF_OTHERS, "retry only"})
    """Conditions that every recorded plan is put under; the others are for the part."""
    ablations: bool = True
    keep: Path | None = None
    """File of JSON lines that finished pieces are read from and added to; None: nothing is kept."""
    fetch: bool = True
    """Whether servers may be fetched from the package index."""
    quick: bool = False
    listener: ProgressListener = field(default=ignore_progress)


def quick_evolution_options(tape: Tape) -> EvolutionOptions:
    """Return a size that ends within a minute; only servers that are there already take part."""
    return EvolutionOptions(
        tape=tape,
        budget=Budget(seconds=1.5, calls=100, candidates=60),
        part_plans=0,
        simulated_tasks=1,
        unmodelled_tasks=1,
        recorded_tasks=3,
        ablations=False,
        fetch=False,
        quick=True,
    )


def recorded_tapes() -> Tape:
    """Return the answers that come with the benchmarks, on one tape.

    Raises:
        BenchError: there are none in this installation.
    """
    folder = resources.files("server.bench").joinpath("data")
    tapes: list[Tape] = []
    for name in _RECORDED:
        with resources.as_file(folder.joinpath(name)) as path:
            if path.exists():
                tapes.append(read_tape(path))
    if not tapes:
        raise BenchError("no plans were recorded: give a model with --model, or a tape recorded:FILE")
    whole = tapes[0]
    for tape in tapes[1:]:
        whole.answers.update(tape.answers)
        whole.counts.update(tape.counts)
    return whole


@dataclass(frozen=True)
class _Stage:
    """What everything is measured on."""

    bank: Bank
    places: tuple[Place, ...]
    options: EvolutionOptions
    kept: Kept
    others: int
    """Other servers in each catalog, at least."""
    asked: int
    """Tasks there are, those included whose servers are not here."""


@dataclass
class _Found:
    """What is told beside the rows."""

    started: float
    notes: list[str] = field(default_factory=list[str])
    mix: Mix | None = None


async def run_evolution_bench(options: EvolutionOptions, open_bank: OpenBank) -> EvolutionReport:
    """Return what becomes of weak plans.

    Raises:
        DemoServersMissing: the demo's servers are not installed.
        BackendError: the model cannot be asked.
        BenchError: servers cannot be fetched, there is nothing to measure, or the world stood in the way.
    """
    found = _Found(time.perf_counter())
    async with _staged(options, open_bank) as stage:
        recorded = await _recorded(stage)
        found.mix = _mix(recorded)
        others = [*_without_model(recorded, options.unmodelled_tasks), *_simulated(stage, found)]
        if left_out := stage.asked - len(stage.places):
            found.notes.append(f"{left_out} tasks were left out, whose servers are not fetched yet")
        outcomes = await _measured([*_brought(stage), *recorded], others, stage, found.notes)
    if not outcomes:
        raise BenchError("the tape holds no plan of any of the tasks: give a model with --model")
    mcp_bench = await _mcp_bench(options, open_bank, found.notes)
    return _report(stage, recorded, outcomes, mcp_bench, found)


async def _mcp_bench(
    options: EvolutionOptions, open_bank: OpenBank, notes: list[str]
) -> tuple[McpBenchRow, ...]:
    if options.mcp_bench is None:
        notes.append("MCP-Bench was left out: `--mcp-bench PATH` names a checkout of its repository")
        return ()
    from server.bench.evolution_mcpbench import McpBenchOptions, measure_mcp_bench

    wanted = McpBenchOptions(
        folder=options.mcp_bench,
        tape=options.tape,
        live=options.live,
        budget=options.budget,
        seed=options.seed,
        kept=Kept(options.keep),
        listener=options.listener,
    )
    return await measure_mcp_bench(wanted, open_bank, notes)


@asynccontextmanager
async def _staged(options: EvolutionOptions, open_bank: OpenBank) -> AsyncGenerator[_Stage]:
    with TemporaryDirectory(prefix="skillbank-bench-") as made:
        folder = Path(made)
        fixtures = folder / "fixtures"
        fixtures.mkdir()
        if options.config is None:
            build_fixtures(fixtures)
        config = options.config or _world(options, folder)
        loaded = load_config(config)
        chosen = evolution_tasks() if options.tasks is None else list(options.tasks)
        tasks = [place_fixtures(task, fixtures) for task in chosen]
        async with open_bank(read_settings(config=config, store=folder / "store.db"), memoise=True) as bank:
            options.listener(Progress("bench", f"starting {len(loaded.servers)} servers"))
            snapshot = await bank.context.snapshot()
            places = [
                _place(task, snapshot, options, bank, fixtures)
                for task in tasks
                if options.fetch or snapshot.servers.issuperset(task.servers)
            ]
            servers = [len(place.catalog.servers - set(place.task.servers)) for place in places]
            yield _Stage(
                bank, tuple(places), options, Kept(options.keep), min(servers, default=0), len(tasks)
            )


def _world(options: EvolutionOptions, folder: Path) -> Path:
    if options.fetch:
        fetch_world(options.listener)
    return world_config(folder, WORLD_SERVERS)


def _place(
    task: BenchTask, snapshot: Snapshot, options: EvolutionOptions, bank: Bank, fixtures: Path
) -> Place:
    """Return a task in its catalog.

    Raises:
        BenchError: one of its servers has no tools here.
    """
    if missing := sorted(set(task.servers) - snapshot.servers):
        raise BenchError(
            f"{task.id}: no tools of {', '.join(missing)}: is the server configured and does it start?"
        )
    others = distractors(task, snapshot.servers)
    if options.config is None and not options.quick and len(others) < DISTRACTORS:
        raise BenchError(f"{task.id}: only {len(others)} other servers start here")
    return Place(task, catalog_of(task, snapshot, others), bank.context.effects, str(fixtures))


async def _recorded(stage: _Stage) -> list[WeakPlan]:
    """Return the plans a model made of the tasks, in every way it was asked."""
    plans: list[WeakPlan] = []
    for way in WAYS:
        for place in _first(stage.places, stage.options.recorded_tasks, lambda place: place.task.id):
            try:
                plan = await recorded_plan(place, way, stage.options.tape, stage.options.live)
            except NotRecorded:
                continue  # a tape may hold a part of all plans; how many is in the table
            plans.append(plan)
            if stage.options.live is not None:
                stage.options.listener(Progress("bench", f"planned {plan.key}"))
    return plans


def _mix(recorded: Sequence[WeakPlan]) -> Mix | None:
    pairs = [
        (plan.workflow, plan.place.task.reference, plan.place.own)
        for plan in recorded
        if plan.workflow is not None and plan.place.task.workflow is not None
    ]
    if not pairs:
        return None
    counts, mean = measured_mix(pairs)
    wrong = sum(bool(faults_against(*pair).total()) for pair in pairs)
    return Mix(plans=len(pairs), wrong=wrong, counts=counts, mean=mean)


def _simulated(stage: _Stage, found: _Found) -> list[WeakPlan]:
    mix = MEASURED if found.mix is None else found.mix.counts
    with_reference = [place for place in stage.places if place.task.workflow is not None]
    places = _first(with_reference, stage.options.simulated_tasks, lambda place: place.task.id)
    plans: list[WeakPlan] = []
    for strength in STRENGTHS:
        made = [simulated_plan(place, strength, mix, stage.options.seed) for place in places]
        if missing := sum(plan is None for plan in made):
            found.notes.append(f"{missing} tasks have no place for the simulator's {strength} damage")
        plans += [plan for plan in made if plan is not None]
    return plans


def _without_model(recorded: Sequence[WeakPlan], count: int | None) -> list[WeakPlan]:
    """Return the plans made without a model of tasks that a model planned."""
    places = {plan.place.task.id: plan.place for plan in recorded}
    chosen = _first(places.values(), count, lambda place: place.task.id)
    return [plan for place in chosen for plan in plans_without_model(place)]


def _brought(stage: _Stage) -> Iterator[WeakPlan]:
    """Yield what others brought broken."""
    for place in stage.places:
        if place.task.broken is not None:
            yield WeakPlan(place, "brought", parse_workflow(place.task.broken), kinds=place.task.kinds)


def _first(items: Iterable[_Item], count: int | None, name: Callable[[_Item], str]) -> list[_Item]:
    """Return so many items in an order that has nothing to do with them: by the hash of their names."""
    ordered = sorted(items, key=lambda item: hashlib.sha256(name(item).encode()).hexdigest())
    return ordered if count is None else ordered[:count]


async def _measured(
    plans: Sequence[WeakPlan], others: Sequence[WeakPlan], stage: _Stage, notes: list[str]
) -> list[PlanOutcome]:
    """Return what becomes of every plan under every condition that is for it."""
    options = stage.options
    part = part_plans(plans, options)
    outcomes: list[PlanOutcome] = []
    for condition in CONDITIONS:
        if condition.is_ablation and not options.ablations:
            continue
        chosen = plans if condition.name in options.on_all else part
        if condition.asks_model:
            outcomes += await _with_model(condition, chosen, stage, notes)
            continue
        outcomes += [await _piece(condition, plan, stage) for plan in chosen]
        if condition.name in _OF_OTHERS:
            outcomes += [await _piece(condition, plan, stage) for plan in others]
    return outcomes + await _reacted(part, stage)


def part_plans(plans: Sequence[WeakPlan], options: EvolutionOptions) -> list[WeakPlan]:
    """Return the recorded plans on which more conditions run: drawn by hash from the first ways of asking."""
    first = {way.name for way in WAYS if not way.among_others}
    return _first([p for p in plans if p.source in first], options.part_plans, lambda plan: plan.key)


async def _piece(
    condition: Condition, plan: WeakPlan, stage: _Stage, editor: EditorTape | None = None
) -> PlanOutcome:
    options = stage.options

    async def make() -> PlanOutcome:
        return await measure_plan(plan, condition, stage.bank, options.budget, options.seed, editor)

    budget = f"{options.budget.seconds:g} s, {options.budget.calls}, {options.budget.candidates}"
    key = f"{plan.key}, {budget}, seed {options.seed}"
    outcome = await stage.kept.or_made(condition.name, key, PlanOutcome, make)
    told = "verified" if outcome.verified else "executed" if outcome.executed_ok else "not executed"
    options.listener(
        Progress("bench", f"{condition.name}: {plan.key}: {told}, {outcome.candidates} candidates")
    )
    return outcome


async def _with_model(
    condition: Condition, plans: Sequence[WeakPlan], stage: _Stage, notes: list[str]
) -> list[PlanOutcome]:
    options = stage.options
    has_edits = any(kind == _EDITING for kind, _, _ in options.tape.answers)
    if not plans or (options.live is None and not has_edits):
        notes.append(f"{condition.name}: left out, no edits of a model are recorded")
        return []
    outcomes: list[PlanOutcome] = []
    missed = 0
    for plan in plans:
        hidden = {FIXTURES: plan.place.fixtures}
        editor = EditorTape(options.tape, _EDITING, plan.key, options.live, hidden)
        outcomes.append(await _piece(condition, plan, stage, editor))
        missed += bool(editor.missed)
    if missed:
        notes.append(
            f"{condition.name}: for {missed} of {len(plans)} plans the search asked something that was not"
            " recorded, and went on without the model from there"
        )
    return outcomes


async def _reacted(plans: Sequence[WeakPlan], stage: _Stage) -> list[PlanOutcome]:
    """Return what ReAct comes to on the tasks of these plans, as far as it is recorded or can be asked."""
    options = stage.options
    outcomes: list[PlanOutcome] = []
    for task, place in {plan.place.task.id: plan.place for plan in plans}.items():
        hidden = {FIXTURES: place.fixtures}

        async def make(
            task: str = task, place: Place = place, hidden: dict[str, str] = hidden
        ) -> PlanOutcome:
            backend = options.tape.at(REACT, task, options.live, hidden)
            return await run_react(place, stage.bank, backend)

        try:
            outcome = await stage.kept.or_made(REACT, task, PlanOutcome, make)
        except NotRecorded:
            continue
        options.listener(
            Progress("bench", f"{REACT}: {task}: {'right' if outcome.verified else 'not right'}")
        )
        outcomes.append(outcome)
    return outcomes


def _report(
    stage: _Stage,
    recorded: Sequence[WeakPlan],
    outcomes: Sequence[PlanOutcome],
    mcp_bench: tuple[McpBenchRow, ...],
    found: _Found,
) -> EvolutionReport:
    options = stage.options
    tasks = [place.task for place in stage.places]
    sizes = Counter(len(task.reference.nodes) for task in tasks if task.workflow is not None)
    parts: Counter[Part] = Counter(part_of(task.id) for task in tasks)
    fetched = {server.distribution: server.version for server in FETCHED_SERVERS}
    own = {name: metadata.version(name) for name in ("skillbank", "mcp")}
    budget = options.budget
    return EvolutionReport(
        quick=options.quick,
        seed=options.seed,
        tasks=len(tasks),
        tasks_with_plans=len({plan.place.task.id for plan in recorded}),
        parts=dict(parts),
        sizes=dict(sorted(sizes.items())),
        mapped=sum(
            any(node.for_each is not None for node in task.reference.nodes) for task in tasks if task.workflow
        ),
        servers=tuple(sorted({name for place in stage.places for name in place.catalog.servers})),
        distractors=stage.others,
        budget={"seconds": budget.seconds, "calls": budget.calls, "candidates": budget.candidates},
        about=options.tape.about if recorded else None,
        mix=found.mix,
        versions={**installed_versions(), **fetched, **own},
        notes=tuple(found.notes),
        outcomes=tuple(outcomes),
        mcp_bench=mcp_bench,
        groups=groups_of(outcomes),
        seconds=time.perf_counter() - found.started,
    )


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for."""
    from server.wiring import open_bank

    async with answers_of(request, recorded_tapes) as (tape, live):
        usual = quick_evolution_options(tape) if request.quick else EvolutionOptions(tape)
        options = replace(
            usual,
            live=live,
            tasks=None if request.tasks is None else tuple(load_tasks(request.tasks)),
            config=request.config,
            keep=request.keep,
            mcp_bench=request.mcp_bench,
            listener=show_progress,
        )
        report = await run_evolution_bench(options, open_bank)
    return Measured(report, render_evolution_report(report))

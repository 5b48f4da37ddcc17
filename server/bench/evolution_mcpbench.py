"""MCP-Bench's tasks whose servers need no network, from a checkout of its public repository.

Nothing of it comes with this package. Its tasks have no reference answers and are scored by a judge; here
only executed without a fault is counted, and the score by rules: neither is the paper's measure.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Protocol, cast

from pydantic import JsonValue

from catalog.effects import Effect, Reset
from catalog.search import ToolIndex
from catalog.tools import Snapshot
from server.backends.backend import Backend
from server.bank import Bank
from server.bench.errors import BenchError
from server.bench.evolution_report import McpBenchRow
from server.bench.evolution_world import DISTRACTORS, WORLD_SERVERS, fetch_world
from server.bench.kept import Kept
from server.bench.planning_tape import NotRecorded, Tape
from server.evolution.driver import SearchResult, search
from server.evolution.evaluate import Evaluator
from server.evolution.options import SearchOptions
from server.planning.conversation import MeteredBackend
from server.planning.deterministic import plan_deterministically
from server.planning.heuristic_floor import plan_heuristic_floor
from server.planning.model_planner import ModelPlanner
from server.planning.sequence import in_sequence
from server.planning.view import World
from server.progress import Progress, ProgressListener
from server.provisioning.fetched import fetch_environment, servers_document
from server.requests import Budget
from server.settings import Settings, read_settings
from server.verification import Checks
from skills_store.workflow.model import Workflow

__all__ = ["McpBenchOptions", "McpBenchTask", "mcp_bench_tasks", "measure_mcp_bench"]

MCP_BENCH = "MCP-Bench"
"""Names its plans on a tape."""
_REQUIREMENTS = (
    "fastmcp>=2,<3",
    "matplotlib>=3.10.3",
    "mcp[cli]<2",
    "numpy>=2.2.6",
    "scipy",
    "sympy>=1.14.0",
    "tzdata",
    "tzlocal",
)
_TASK_FILES = (
    "mcpbench_tasks_single_runner_format.json",
    "mcpbench_tasks_multi_2server_runner_format.json",
    "mcpbench_tasks_multi_3server_runner_format.json",
)


class OpenBank(Protocol):
    """Opens the bank whose servers are called (`server.wiring.open_bank`)."""

    def __call__(self, settings: Settings, *, memoise: bool) -> AbstractAsyncContextManager[Bank]: ...


@dataclass(frozen=True, slots=True)
class _Offline:
    """A server of MCP-Bench that needs no network: where it is, and how it starts."""

    name: str
    """As its tasks say it."""
    id: str
    folder: str
    arguments: tuple[str, ...]
    is_node: bool = False
    effects: dict[str, Effect] = field(default_factory=lambda: {"*": Effect.PURE})
    reset: Reset = Reset.NONE


_SERVERS: tuple[_Offline, ...] = (
    _Offline("Unit Converter", "mb_units", "unit-converter-mcp/src", ("-m", "unit_converter_mcp.server")),
    _Offline(
        "Bibliomantic",
        "mb_bibliomantic",
        "bibliomantic-mcp-server",
        ("bibliomantic_server.py",),
        effects={"*": Effect.READ},  # it draws lots
    ),
    _Offline("Math MCP", "mb_math", "math-mcp", ("build/index.js",), is_node=True),
    _Offline("Medical Calculator", "mb_medical", "medcalc", ("medcalc/__main__.py",)),
    _Offline(
        "Scientific Computing",
        "mb_scientific",
        "scientific_computation_mcp",
        ("src/server.py",),
        effects={"*": Effect.WRITE, "view_tensor": Effect.READ},
        reset=Reset.PROCESS,
    ),
    _Offline("Time MCP", "mb_time", "time-mcp/src", ("-m", "mcp_server_time"), effects={"*": Effect.READ}),
)


@dataclass(frozen=True, slots=True)
class McpBenchTask:
    """One task: its words, and the servers it is for by our ids."""

    id: str
    task: str
    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class McpBenchOptions:
    """With what its tasks are run."""

    folder: Path
    """A checkout of the repository; its Math MCP built as its README says."""
    tape: Tape
    live: Backend | None
    budget: Budget
    seed: int
    kept: Kept
    listener: ProgressListener


@dataclass(frozen=True, slots=True)
class _Plan:
    workflow: Workflow | None
    tokens: int = 0


def mcp_bench_tasks(folder: Path) -> list[McpBenchTask]:
    """Return the tasks of a checkout whose servers need no network.

    Raises:
        BenchError: the folder is no checkout of the repository.
    """
    ids = {server.name: server.id for server in _SERVERS}
    tasks: list[McpBenchTask] = []
    for name in _TASK_FILES:
        path = folder / "tasks" / name
        try:
            document = cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
            groups = cast("list[dict[str, Any]]", document["server_tasks"])
            for group in groups:
                wanted = [str(one) for one in group.get("servers") or [group["server_name"]]]
                if ids.keys() >= set(wanted):
                    tasks += [_task(task, [ids[one] for one in wanted]) for task in group["tasks"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BenchError(f"{path}: not a file of MCP-Bench's tasks: {error!r}") from error
    return tasks


def _task(task: dict[str, Any], servers: Sequence[str]) -> McpBenchTask:
    return McpBenchTask(str(task["task_id"]), str(task["task_description"]), tuple(servers))


async def measure_mcp_bench(
    options: McpBenchOptions, open_bank: OpenBank, notes: list[str]
) -> tuple[McpBenchRow, ...]:
    """Return what becomes of plans for MCP-Bench's tasks, each among ten other servers.

    Raises:
        BenchError: the folder is no checkout, or environments cannot be made.
    """
    tasks = mcp_bench_tasks(options.folder)
    rows: dict[str, list[McpBenchRow]] = {}
    allowed = options.budget
    budget = f"{allowed.seconds:g} s, {allowed.calls}, {allowed.candidates}, seed {options.seed}"
    async with _opened(options, open_bank, notes) as bank:
        snapshot = await bank.context.snapshot()
        if missing := sorted(server.name for server in _SERVERS if server.id not in snapshot.servers):
            notes.append(f"MCP-Bench: no tools of {', '.join(missing)}; its tasks were left out")
        for task in (task for task in tasks if set(task.servers) <= snapshot.servers):
            world = _world(task, snapshot, bank)
            for planner, plan in (await _plans(task, world, options)).items():
                for condition, search_options in _conditions().items():
                    name = f"{planner}: {condition}"

                    async def make(
                        plan: _Plan = plan,
                        world: World = world,
                        name: str = name,
                        search_options: SearchOptions | None = search_options,
                    ) -> McpBenchRow:
                        return await _row(name, plan, world, bank, search_options, options)

                    row = await options.kept.or_made(
                        MCP_BENCH, f"{name}/{task.id}, {budget}", McpBenchRow, make
                    )
                    rows.setdefault(name, []).append(row)
                    told = "executed" if row.executed_ok else "not executed"
                    options.listener(Progress("bench", f"MCP-Bench {task.id}: {name}: {told}"))
    return tuple(_together(name, group) for name, group in rows.items())


def _conditions() -> dict[str, SearchOptions | None]:
    return {
        "as it is": None,
        "ladder": SearchOptions(strategy="ladder"),
        "ladder, then population": SearchOptions(strategy="population"),
    }


@asynccontextmanager
async def _opened(options: McpBenchOptions, open_bank: OpenBank, notes: list[str]) -> AsyncGenerator[Bank]:
    fetch_world(options.listener)
    python = fetch_environment("mcp-bench", _REQUIREMENTS, options.listener)
    with TemporaryDirectory(prefix="skillbank-bench-") as made:
        folder = Path(made)
        document = servers_document(WORLD_SERVERS, folder / "state")
        servers = cast("dict[str, JsonValue]", document["mcpServers"])
        own = cast("dict[str, JsonValue]", document["skillbank"])
        effects, resets = (cast("dict[str, JsonValue]", own[key]) for key in ("effects", "reset"))
        for server in _SERVERS:
            place = options.folder / "mcp_servers" / server.folder
            if not (place / server.arguments[-1]).exists() and server.arguments[0] != "-m":
                notes.append(
                    f"MCP-Bench: {server.name} is not built: run npm install and npm run build there"
                )
                continue
            command = "node" if server.is_node else str(python)
            servers[server.id] = {"command": command, "args": [*server.arguments], "cwd": str(place)}
            effects[server.id] = {pattern: effect.value for pattern, effect in server.effects.items()}
            if server.reset is not Reset.NONE:
                resets[server.id] = server.reset.value
        own["learning"] = "off"
        config = folder / "config.json"
        config.write_text(json.dumps(document), encoding="utf-8")
        async with open_bank(read_settings(config=config, store=folder / "store.db"), memoise=True) as bank:
            yield bank


def _world(task: McpBenchTask, snapshot: Snapshot, bank: Bank) -> World:
    others = sorted(set(WORLD_SERVERS) & snapshot.servers)
    drawn = Random(f"distractors:{task.id}").sample(others, min(DISTRACTORS, len(others)))
    names = {*task.servers, *drawn}
    known = Snapshot.of(*(tool for tool in snapshot if tool.id.server in names))
    return World(task.task, {}, known, bank.context.effects, ToolIndex(known))


async def _plans(task: McpBenchTask, world: World, options: McpBenchOptions) -> dict[str, _Plan]:
    drafts = plan_deterministically(world, ())
    plans = {
        "heuristic floor": _Plan(plan_heuristic_floor(world, ())),
        "deterministic planner": _Plan(drafts[0] if drafts else None),
    }
    model = MeteredBackend(options.tape.at(MCP_BENCH, task.id, options.live))
    try:
        [reading] = await ModelPlanner(model, world, (), way="constrained").propose(deadline_seconds=600.0)
    except NotRecorded:
        return plans
    workflow = None if reading.workflow is None else in_sequence(reading.workflow, world)
    plans["model, constrained"] = _Plan(workflow, model.usage.total)
    return plans


async def _row(
    name: str,
    plan: _Plan,
    world: World,
    bank: Bank,
    search_options: SearchOptions | None,
    options: McpBenchOptions,
) -> McpBenchRow:
    started = time.perf_counter()
    result = None
    if plan.workflow is not None:
        result = await _searched(plan.workflow, world, bank, search_options, options)
    best = None if result is None else result.best.evaluation
    return McpBenchRow(
        condition=name,
        tasks=1,
        planned=int(plan.workflow is not None),
        static_ok=int(best is not None and best.static_ok),
        executed_ok=int(best is not None and best.executed_ok),
        rule_score=0.0 if best is None else best.fitness.rule_score,
        calls=0.0 if result is None else float(result.calls),
        tokens=float(plan.tokens),
        seconds=time.perf_counter() - started,
    )


async def _searched(
    workflow: Workflow,
    world: World,
    bank: Bank,
    search_options: SearchOptions | None,
    options: McpBenchOptions,
) -> SearchResult | None:
    context = bank.context
    episode = context.episode(world.snapshot, world.effects)
    episode.set_plan(workflow, context.skill_workflow)
    evaluator = Evaluator(world, Checks(), episode, context.options(world.task))
    allowed = options.budget if search_options is not None else replace(options.budget, candidates=1)
    chosen = replace(search_options or SearchOptions(strategy="retry"), seed=options.seed)
    try:
        return await search(workflow, evaluator, allowed, options=chosen)
    except TimeoutError:
        return None


def _together(name: str, rows: Sequence[McpBenchRow]) -> McpBenchRow:
    return McpBenchRow(
        condition=name,
        tasks=len(rows),
        planned=sum(row.planned for row in rows),
        static_ok=sum(row.static_ok for row in rows),
        executed_ok=sum(row.executed_ok for row in rows),
        rule_score=sum(row.rule_score for row in rows) / len(rows),
        calls=sum(row.calls for row in rows) / len(rows),
        tokens=sum(row.tokens for row in rows) / len(rows),
        seconds=sum(row.seconds for row in rows) / len(rows),
    )

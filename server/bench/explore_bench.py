"""The explore benchmark: what an exploration covers, finds and is worth, on real servers.

Of each task the last held-out instance is kept from learning; it is solved by a bank that has seen
nothing and by the one that explored. Paper: AgentEvolver (+5.4 points from experience without
training). Differs: skills count too, no model plans, and the check is programmatic.
"""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from server.attribution.ablation import ablate
from server.attribution.labels import label_steps
from server.bank.bank import Bank
from server.bank.upstreams.exploration import Exploration
from server.bench.errors import BenchError
from server.bench.explore_report import ExploreBenchReport, ServerExplored, render_explore_report
from server.bench.explore_servers import DEMO_EXPLORED, SET_ASIDE, explored_document
from server.bench.request import BenchRequest, Measured, show_progress
from server.exploration.options import ExplorationOptions
from server.exploration.tasks import ExploredTask, HeldOutInstance
from server.progress import Progress, ProgressListener, ignore_progress
from server.requests import Budget, SolveRequest
from server.settings import Settings
from server.verification import Checks
from server.wiring import open_bank
from skills_store.workflow.model import Node, Workflow

__all__ = ["ExploreBenchOptions", "measure", "run_explore_bench"]

_ALL = (*DEMO_EXPLORED, *(server.name for server in SET_ASIDE))
_QUICK = ("hashlib", "calculator")


@dataclass(frozen=True, slots=True)
class ExploreBenchOptions:
    """How much is measured."""

    quick: bool = False
    servers: tuple[str, ...] = _ALL
    budget_calls: int = 400
    tasks: int = 6
    seconds: float = 8.0
    """Of each attempt at a held-out instance, before and after alike."""
    seed: int = 0
    listener: ProgressListener = ignore_progress


async def run_explore_bench(options: ExploreBenchOptions) -> ExploreBenchReport:
    """Return what was measured; a server that cannot be had is told of and does not end the rest."""
    started = time.perf_counter()
    measured: list[ServerExplored] = []
    for name in options.servers:
        options.listener(Progress("bench", f"exploring {name}"))
        begun = time.perf_counter()
        try:
            found = await _measured(name, options)
        except BenchError as error:
            found = ServerExplored(server=name, problem=str(error))
        measured.append(found.model_copy(update={"seconds": time.perf_counter() - begun}))
    return ExploreBenchReport(
        quick=options.quick,
        budget_calls=options.budget_calls,
        seed=options.seed,
        versions={"python": platform.python_version(), "skillbank": version("skillbank")},
        servers=tuple(measured),
        seconds=time.perf_counter() - started,
    )


async def _measured(name: str, options: ExploreBenchOptions) -> ServerExplored:
    explored = ExplorationOptions(budget_calls=options.budget_calls, tasks=options.tasks, seed=options.seed)
    with TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        work.mkdir()
        document = explored_document(name, work, options.listener)
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(document), encoding="utf-8")
        async with open_bank(_settings(config, Path(folder) / "learned.db")) as bank:
            report = await bank.explore(Exploration(name, explored, reserved=1))
            tasks = [task for task in report.tasks if task.check == "assertions"]
            held = [task.held_out[-1] for task in tasks if len(task.held_out) > 1]
            after = [await _solved(one, bank, options) for one in held]
        async with open_bank(_settings(config, Path(folder) / "fresh.db")) as bank:
            before = [await _solved(one, bank, options) for one in held]
            resolved = [await _holds(task, bank) for task in tasks]
            labels = [await _agreement(task, bank) for task in tasks]
    expected = {w for server in SET_ASIDE if server.name == name for w in server.warts}
    rules = {finding.rule for finding in report.health.findings}
    return ServerExplored(
        server=name,
        set_aside=bool(expected),
        tools=report.coverage.tools,
        called=report.coverage.called,
        pairs=report.coverage.pairs,
        joined=report.coverage.joined,
        calls=report.calls,
        drafts=report.drafts,
        kept=len(tasks),
        resolved=sum(resolved),
        warts=len(expected),
        found=len(expected & rules),
        missed=tuple(sorted(expected - rules)),
        skills=sum(skill.state == "active" for skill in report.skills),
        lessons=report.lessons,
        held_out=len(held),
        before=sum(right for right, _ in before),
        after=sum(right for right, _ in after),
        direct=sum(right and is_direct for right, is_direct in after),
        labelled=sum(both for both, _ in labels),
        agreed=sum(alike for _, alike in labels),
    )


def _settings(config: Path, store: Path) -> Settings:
    return Settings(config, store, environment=dict(os.environ))


async def _solved(one: HeldOutInstance, bank: Bank, options: ExploreBenchOptions) -> tuple[bool, bool]:
    """Return whether an instance was solved from its words alone, and whether a skill did it."""
    budget = Budget(seconds=options.seconds)
    report = await bank.solve(one.task, SolveRequest(checks=Checks(assertions=one.assertions), budget=budget))
    return report.status == "verified", report.route == "direct"


async def _holds(task: ExploredTask, bank: Bank) -> bool:
    """Return whether a reference passes its check once more, in processes that exploration never had."""
    report = await bank.run(task.workflow, task.inputs, Checks(assertions=task.assertions))
    return report.status == "verified"


async def _agreement(task: ExploredTask, bank: Bank) -> tuple[int, int]:
    """Return how many steps ablation and execution both label, and how many alike."""
    checks = Checks(assertions=task.assertions)
    report = await bank.run(task.workflow, task.inputs, checks)
    trace = bank.trace(report.trace_id) if report.trace_id else None
    if report.status != "verified" or trace is None:
        return 0, 0

    async def still_passes(workflow: Workflow) -> bool:
        return (await bank.run(workflow.to_json(), task.inputs, checks)).status == "verified"

    def is_free(node: Node) -> bool:
        return node.tool is not None and bank.context.effects.effect(node.tool).is_free

    executed = {one.node: one.label for one in label_steps(task.reference, trace)}
    ablated = [one for one in await ablate(task.reference, is_free, still_passes) if one.node in executed]
    return len(ablated), sum(executed[one.node] == one.label for one in ablated)


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for."""
    options = ExploreBenchOptions(listener=show_progress)
    if request.quick:
        options = ExploreBenchOptions(True, _QUICK, 120, 3, 4.0, listener=show_progress)
    report = await run_explore_bench(options)
    return Measured(report, render_explore_report(report))

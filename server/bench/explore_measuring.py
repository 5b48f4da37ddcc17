"""What exploring one server covers, finds and is worth.

Of each task the last held-out instance is kept from learning; it is solved by a bank that has seen
nothing and by the one that explored. Paper: AgentEvolver (+5.4 points from experience without
training). Differs: skills count too, no model plans, and the check is programmatic.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from catalog.config import ModelSpec
from server.attribution.ablation import ablate
from server.attribution.labels import label_steps
from server.bank.bank import Bank
from server.bank.upstreams.exploration import Exploration
from server.bank.upstreams.teaching import scoped_replayer
from server.bench.explore_credit import measure_credit
from server.bench.explore_report import HeldOutCase, ServerExplored
from server.bench.explore_servers import FETCHED, Defect, explored_document
from server.exploration.feasibility import runs_by_chance
from server.exploration.options import ExplorationOptions
from server.exploration.pace import Pace
from server.exploration.report import ExplorationReport
from server.exploration.scope import exploration_scope
from server.exploration.tasks import ExploredTask
from server.progress import Progress, ProgressListener, ignore_progress
from server.reports import RepairReport
from server.requests import Budget, SolveRequest
from server.settings import Settings
from server.verification import Checks, verify
from server.wiring import open_bank
from skills_store.workflow.model import Node, Workflow

__all__ = ["ServerSize", "measure_server"]

_TOKENS = 6_000
"""Of a model, for one attempt."""


@dataclass(frozen=True, slots=True)
class ServerSize:
    """How much of one server is measured."""

    budget_calls: int
    tasks: int
    seconds: float
    """Of each attempt at a held-out instance, before and after alike, and of each repair."""
    seed: int = 0
    credited: int | None = None
    """Tasks whose references are damaged and repaired, None: all that were kept."""
    model: ModelSpec | None = None
    """Who plans held-out instances, None: nobody. With one nothing else is measured again."""
    listener: ProgressListener = ignore_progress


async def measure_server(name: str, size: ServerSize) -> ServerExplored:
    """Return what was measured of a server.

    Raises:
        BenchError: it cannot be had, or the world stood in the way.
    """
    with TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        work.mkdir()
        document = explored_document(name, work, size.listener)
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(document), encoding="utf-8")
        async with open_bank(_settings(config, Path(folder) / "learned.db")) as bank:
            report = await _explored(name, bank, size)
            tasks = [task for task in report.tasks if task.check == "assertions"]
            held = [task for task in tasks if len(task.held_out) > 1]
            size.listener(Progress("bench", f"{name}: {len(held)} held out, by the bank that learned"))
            after = [await _solved(one, bank, size) for one in held]
        async with open_bank(_settings(config, Path(folder) / "fresh.db")) as bank:
            size.listener(Progress("bench", f"{name}: the same by one that has seen nothing"))
            before = [await _solved(one, bank, size) for one in held]
            checked = await _checked(name, tasks, bank, size) if size.model is None else {}
    return _covered(name, report).model_copy(
        update={
            "kept": len(tasks),
            "held_out": len(held),
            "before": sum(one.status == "verified" for one in before),
            "after": sum(one.status == "verified" for one in after),
            "direct": sum(one.status == "verified" and one.route == "direct" for one in after),
            "cases": tuple(_case(*one, report) for one in zip(held, before, after, strict=True)),
            "tokens_before": sum(one.tokens for one in before),
            "tokens_after": sum(one.tokens for one in after),
            **checked,
        }
    )


async def _checked(
    name: str, tasks: Sequence[ExploredTask], bank: Bank, size: ServerSize
) -> dict[str, object]:
    """Return what tasks are worth beside their held-out instances, by field of the report."""
    size.listener(Progress("bench", f"{name}: references again, labels, damaged references"))
    again = [(task, *await _solved_again(task, bank)) for task in tasks]
    labels = [await _agreement(task, bank) for task in tasks]
    budget = Budget(seconds=size.seconds)
    return {
        "resolved": sum(holds for _, holds, _ in again),
        "remarks": tuple(f"{' then '.join(task.solvers)}: {why}" for task, _, why in again if why),
        "labelled": sum(both for both, _ in labels),
        "agreed": sum(alike for _, alike in labels),
        "credit": await measure_credit(tasks[: size.credited], bank, budget, size.seed),
    }


async def _explored(name: str, bank: Bank, size: ServerSize) -> ExplorationReport:
    def say(progress: Progress) -> None:
        if progress.stage == "explore":
            size.listener(Progress("bench", f"{name}: {progress.message}", calls=progress.calls))

    options = ExplorationOptions(budget_calls=size.budget_calls, tasks=size.tasks, seed=size.seed)
    return await bank.explore(Exploration(name, options, reserved=1), say)


def _covered(name: str, report: ExplorationReport) -> ServerExplored:
    known = next((server for server in FETCHED if server.name == name), None)
    findings = report.health.findings
    defects = known.defects if known is not None else ()
    hard = [defect for defect in defects if not defect.is_easy]
    easy = [defect for defect in defects if defect.is_easy]
    return ServerExplored(
        server=name,
        set_aside=known is not None and known.set_aside,
        tools=report.coverage.tools,
        called=report.coverage.called,
        pairs=report.coverage.pairs,
        joined=report.coverage.joined,
        calls=report.calls,
        drafts=report.drafts,
        dropped=report.dropped,
        warts=len(hard),
        found=sum(defect.is_found(findings) for defect in hard),
        easy=len(easy),
        easy_found=sum(defect.is_found(findings) for defect in easy),
        missed=tuple(_told(defect) for defect in defects if not defect.is_found(findings)),
        rules=tuple(sorted({finding.rule for finding in findings})),
        skills=sum(skill.state == "active" for skill in report.skills),
        lessons=report.lessons,
    )


def _told(defect: Defect) -> str:
    places = f" ({', '.join(defect.tools)})" if defect.tools else ""
    return f"{defect.rule or 'no rule'}{places}: {defect.says}"


def _settings(config: Path, store: Path) -> Settings:
    return Settings(config, store, environment=dict(os.environ))


async def _solved(task: ExploredTask, bank: Bank, size: ServerSize) -> RepairReport:
    """Return what came of the instance that was kept from learning, of which the words alone are told."""
    held = task.held_out[-1]
    checks = Checks(assertions=held.assertions)
    budget = Budget(seconds=size.seconds, tokens=0 if size.model is None else _TOKENS)
    return await bank.solve(held.task, SolveRequest(checks=checks, budget=budget, model=size.model))


def _case(
    task: ExploredTask, before: RepairReport, after: RepairReport, report: ExplorationReport
) -> HeldOutCase:
    states = {skill.task: skill.state for skill in (*report.skills, *report.refused)}
    return HeldOutCase(
        task=task.held_out[-1].task,
        tools=task.solvers,
        skill=states.get(task.id, ""),
        before=before.status,
        after=after.status,
        route=after.route or "",
        reasons=after.route_reasons,
    )


async def _solved_again(task: ExploredTask, bank: Bank) -> tuple[bool, str]:
    """Return whether a reference passes its check in one more fresh process, and what is to be said of it.

    Where a tool fails, another process is asked, since a server that fails by chance is no wrong reference.
    """
    context, [server] = bank.context, task.servers
    snapshot = await context.snapshot([server])
    scope = exploration_scope(server, snapshot.of_server(server), context.effects)
    pace = Pace(ExplorationOptions().calls_per_second)  # as exploring itself: some servers fail when hurried
    replayer = replace(scoped_replayer(scope, context), pace=pace.wait)
    run, remark = await replayer.run_workflow(task.reference, task.inputs), ""
    if runs_by_chance(run):
        remark = f"only in a second process; in the first: {run.faults[0].message}"
        run = await replayer.run_workflow(task.reference, task.inputs)
    if run.faults:
        return False, f"not at all: {run.faults[0].message}"
    holds = verify(run, task.reference, task.inputs, Checks(assertions=task.assertions)).is_verified
    return holds, remark if holds else "its answer is another one"


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

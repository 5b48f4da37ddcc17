"""Repairing and solving: search from a base workflow, and what is reported of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import anyio
from pydantic import JsonValue

from catalog.effects import EffectTable
from catalog.search import ToolIndex
from catalog.tools import Snapshot
from server.bank.context import Context, allowing
from server.bank.running import static_faults
from server.compilation.compile import VerifiedRun
from server.evolution.driver import Progress as SearchProgress
from server.evolution.driver import SearchResult, search
from server.evolution.evaluate import Evaluator
from server.evolution.strategy import Record
from server.execution.episode import Episode
from server.planning.deterministic import plan_deterministically
from server.planning.view import World
from server.planning.wanted import wanted_outputs
from server.progress import Progress
from server.reports import CandidateRecord, RepairReport
from server.requests import Budget, RepairRequest, SolveRequest
from skills_store.errors import MalformedWorkflow
from skills_store.trace import Status
from skills_store.workflow.check import check_inputs
from skills_store.workflow.diff import render_diff
from skills_store.workflow.edits import render_edit
from skills_store.workflow.faults import Fault, Malformed
from skills_store.workflow.model import Workflow, parse_workflow

__all__ = ["Repaired", "repair_document", "solve_task"]

_LINEAGE_SHOWN = 200


@dataclass(frozen=True)
class Repaired:
    """The report, and the run a skill can be compiled from; None unless it was verified."""

    report: RepairReport
    run: VerifiedRun | None = None
    snapshot: Snapshot | None = None


async def repair_document(document: object, request: RepairRequest, context: Context) -> Repaired:
    """Execute a document and repair it by typed edits until it passes its checks or a budget ends."""
    try:
        workflow = parse_workflow(document)
    except MalformedWorkflow as error:
        return Repaired(_unreadable(document, error.faults))
    effects = allowing(context.config.effects, request.allow)
    if _is_zero(request.budget):
        snapshot = context.known()
        faults = [*check_inputs(workflow, dict(request.inputs)), *static_faults(workflow, snapshot, context)]
        return Repaired(_checked_only(workflow, faults))
    snapshot = await context.snapshot()
    if wrong := check_inputs(workflow, dict(request.inputs)):
        return Repaired(_checked_only(workflow, wrong))
    world = _world(request.task, request, snapshot, effects)
    return await _searched(workflow, world, request, context)


def _is_zero(budget: Budget) -> bool:
    return budget.seconds == 0 or budget.calls == 0 or budget.candidates == 0


def _world(
    task: str | None, request: RepairRequest | SolveRequest, snapshot: Snapshot, effects: EffectTable
) -> World:
    return World(task or "", request.inputs, snapshot, effects, ToolIndex(snapshot))


async def _searched(
    workflow: Workflow, world: World, request: RepairRequest | SolveRequest, context: Context
) -> Repaired:
    """Search from one base; planned and given bases alike."""
    started = anyio.current_time()
    episode = context.episode(world.snapshot, world.effects)
    episode.set_plan(workflow, context.skill_workflow)
    evaluator = Evaluator(world, request.checks, episode, context.options(world.task or None))
    result = await search(workflow, evaluator, request.budget, listener=_relayed(context))
    seconds = anyio.current_time() - started
    report = _report(result, episode, seconds)
    _keep_trace(result, context)
    return Repaired(report, _verified_run(result, world, report.status), world.snapshot)


def _relayed(context: Context) -> Callable[[SearchProgress], None]:
    def listener(progress: SearchProgress) -> None:
        context.progress(
            Progress(
                "repair",
                progress.trying,
                candidates=progress.candidates,
                calls=progress.calls,
                best=progress.best_score,
            )
        )

    return listener


def _keep_trace(result: SearchResult, context: Context) -> None:
    evaluation = result.best.evaluation
    if evaluation.trace is not None and evaluation.verdict is not None:
        context.store.add_trace(
            evaluation.trace.model_copy(
                update={
                    "status": evaluation.verdict.status,
                    "faults": evaluation.faults,
                    "verifications": tuple(evaluation.verdict.verifications),
                }
            )
        )


def _verified_run(result: SearchResult, world: World, status: Status) -> VerifiedRun | None:
    evaluation = result.best.evaluation
    if status != "verified" or evaluation.trace is None or evaluation.verdict is None:
        return None
    return VerifiedRun(
        workflow=result.best.candidate.workflow,
        trace=evaluation.trace,
        node_outputs=evaluation.outputs,
        task=world.task or None,
        inputs=dict(world.inputs),
        edits=tuple(render_edit(edit) for edit in result.best.candidate.edits),
        verifications=tuple(evaluation.verdict.verifications),
    )


def _report(result: SearchResult, episode: Episode, seconds: float) -> RepairReport:
    best = result.best.evaluation
    trace = best.trace
    return RepairReport(
        status=best.verdict.status if best.verdict and best.status != "static_faults" else "failed",
        outputs=trace.outputs if trace else None,
        workflow=result.best.candidate.workflow.to_json(),
        edits=result.best.candidate.edits,
        faults=best.faults,
        initial_faults=result.base.evaluation.faults,
        calls=result.calls,
        candidates=len(result.records),
        seconds=seconds,
        diff=render_diff(result.base.candidate.workflow, result.best.candidate.workflow),
        lineage=tuple(_record(record) for record in result.records[:_LINEAGE_SHOWN]),
        trace=trace.steps if trace else (),
        trace_id=trace.id if trace else None,
        not_repeated=tuple(episode.not_repeated),
        verifications=tuple(best.verdict.verifications) if best.verdict else (),
        budget_spent=result.stopped,
    )


def _record(record: Record) -> CandidateRecord:
    return CandidateRecord(
        id=record.candidate.id,
        parent=record.candidate.parent,
        edits=tuple(render_edit(edit) for edit in record.candidate.last),
        faults=record.evaluation.faults,
        score=record.evaluation.fitness.rule_score,
        status=record.evaluation.status,
        calls=record.evaluation.calls,
    )


def _checked_only(workflow: Workflow, faults: Sequence[Fault]) -> RepairReport:
    return RepairReport(
        status="failed" if faults else "unverified",
        outputs=None,
        workflow=workflow.to_json(),
        faults=tuple(faults),
        initial_faults=tuple(faults),
        budget_spent="zero budget: the original was checked, nothing was run",
    )


def _unreadable(document: object, faults: Sequence[Fault]) -> RepairReport:
    kept = cast("dict[str, JsonValue]", document) if isinstance(document, dict) else {}
    return RepairReport(
        status="failed", outputs=None, workflow=kept, faults=tuple(faults), initial_faults=tuple(faults)
    )


async def solve_task(task: str, request: SolveRequest, context: Context) -> Repaired:
    """Plan a task without a model, run the plans and repair them, until one is verified."""
    snapshot = await context.snapshot()
    effects = allowing(context.config.effects, request.allow)
    world = _world(task, request, snapshot, effects)
    plans = plan_deterministically(world, wanted_outputs(request.checks))
    if not plans:
        return Repaired(_no_plan(task))
    best: Repaired | None = None
    deadline = anyio.current_time() + request.budget.seconds
    calls = candidates = 0
    for place, plan in enumerate(plans):
        left = _share(request.budget, deadline - anyio.current_time(), calls, candidates, len(plans) - place)
        if _is_zero(left):
            break
        found = await _searched(plan, world, replace(request, budget=left), context)
        calls, candidates = calls + found.report.calls, candidates + found.report.candidates
        if best is None or _rank(found.report) > _rank(best.report):
            best = found
        if best.report.status in ("verified", "succeeded"):
            break
    if best is None:
        return Repaired(_no_plan(task))
    report = best.report.model_copy(update={"calls": calls, "candidates": candidates, "route": "dynamic"})
    return replace(best, report=report)


def _share(budget: Budget, seconds: float, calls: int, candidates: int, plans_left: int) -> Budget:
    """Return one plan's part of what is left: half for the most promising, all for the last."""
    part = 1 if plans_left == 1 else 2
    return Budget(
        seconds=max(0.0, seconds) / part,
        calls=max(0, budget.calls - calls) // part,
        candidates=max(0, budget.candidates - candidates) // part,
    )


def _rank(report: RepairReport) -> tuple[bool, bool, int]:
    return report.status == "verified", report.status == "succeeded", -len(report.faults)


def _no_plan(task: str) -> RepairReport:
    message = f"no known tool fits the task {task!r}: see `skillbank doctor` for the tools there are"
    return RepairReport(
        status="failed", outputs=None, workflow={}, faults=(Malformed(message=message),), route="dynamic"
    )

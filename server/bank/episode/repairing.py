"""Repairing: the search from one base workflow, and what is reported of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import anyio
from pydantic import JsonValue

from server.backends.backend import Backend
from server.backends.errors import BackendError
from server.bank.context import Context, allowing
from server.bank.episode.candidate_judge import CandidateJudge, candidate_judge
from server.bank.episode.lessons import hints_of, open_lessons
from server.bank.episode.search_records import open_record
from server.bank.patience import for_search
from server.bank.running import input_faults, servers_of, signatures_of, static_faults, unreachable_faults
from server.bank.traces import judged_trace, shown_outputs
from server.compilation.compile import VerifiedRun
from server.curation.withholding import Draw
from server.evolution.candidate import Record
from server.evolution.driver import Progress as SearchProgress
from server.evolution.driver import SearchResult, search
from server.evolution.evaluate import Evaluator
from server.evolution.journal import Journal
from server.evolution.options import SearchOptions
from server.planning.view import World
from server.progress import Progress
from server.reports import CandidateRecord, RepairReport
from server.requests import Budget, RepairRequest
from skills_store.errors import MalformedWorkflow
from skills_store.trace import Status, Trace
from skills_store.workflow.diff import render_diff
from skills_store.workflow.edits import render_edit
from skills_store.workflow.faults import Fault
from skills_store.workflow.model import Workflow, parse_workflow

__all__ = [
    "Repaired",
    "Wanted",
    "checked_only",
    "editor_of",
    "repair_document",
    "search_from",
    "spent_at_once",
]

_LINEAGE_SHOWN = 200


@dataclass(frozen=True)
class Repaired:
    """The report, and the run a skill can be compiled from; None unless the run succeeded."""

    report: RepairReport
    run: VerifiedRun | None = None
    drawn: Draw | None = None
    """The skill the plan started from or did without on purpose, None when there was none."""


async def repair_document(document: object, request: RepairRequest, context: Context) -> Repaired:
    """Execute a document and repair it by typed edits until it passes its checks or a budget ends.

    A budget of zero checks the document against what is known of the tools, and runs nothing.
    """
    try:
        workflow = parse_workflow(document)
    except MalformedWorkflow as error:
        return Repaired(_unreadable(error))
    effects = allowing(context.effects, request.allow)
    context = replace(context, memoise=context.memoise and request.search.switches.memoisation)
    wrong = input_faults(workflow, request.inputs)
    if spent := spent_at_once(request.budget):
        faults = [*wrong, *static_faults(workflow, context.known(), context)]
        return Repaired(checked_only(workflow, faults, spent))
    if wrong:
        return Repaired(checked_only(workflow, wrong))
    started = anyio.current_time()
    needed = servers_of(workflow, context)
    snapshot = await context.snapshot(patience=for_search(request.budget.seconds, needed))
    connecting = anyio.current_time() - started
    if away := unreachable_faults(workflow, snapshot, context):
        return Repaired(checked_only(workflow, away))
    world = World(
        request.task or "", request.inputs, snapshot, effects, context.tool_index(), context.config.labels
    )
    episode = context.episode(snapshot, effects)
    episode.set_plan(workflow, context.skill_workflow)
    lessons = await open_lessons(request.task or "", context)
    evaluator = Evaluator(
        world,
        request.checks,
        episode,
        context.options(request.task),
        signatures_of(workflow, context),
        hints=hints_of(lessons),
    )
    editor = await editor_of(context, request)
    if request.judge:
        evaluator.judge = await candidate_judge(request.task or "", request.budget.tokens, context)
    with open_record(workflow, request, evaluator, context) as (journal, options):
        wanted = Wanted(options, editor, journal)
        repaired = await search_from(
            workflow, evaluator, request.budget.after(connecting), context, wanted=wanted
        )
    await lessons.take(repaired.report, workflow)
    told: dict[str, object] = {"seconds": repaired.report.seconds + connecting}
    if isinstance(judge := evaluator.judge, CandidateJudge):
        told["tokens"] = repaired.report.tokens + judge.model.usage.total
    return replace(repaired, report=repaired.report.model_copy(update=told))


def spent_at_once(budget: Budget) -> str | None:
    """Return which part of a budget is zero, None when there is something to spend."""
    parts = {"seconds": budget.seconds, "calls": budget.calls, "candidates": budget.candidates}
    return next((name for name, amount in parts.items() if amount == 0), None)


@dataclass(frozen=True)
class Wanted:
    """How a search is to go about it, beside its base and its budget."""

    options: SearchOptions = field(default_factory=SearchOptions)
    editor: Backend | None = None
    """A model that proposes edits; None: none does."""
    journal: Journal | None = None
    """Where every candidate is written down; None: nowhere."""


async def editor_of(context: Context, request: RepairRequest) -> Backend | None:
    """Return the model that edits; None where none is wanted, none is there, or it cannot be used."""
    if request.search.strategy in ("ladder", "retry") or not request.budget.tokens:
        return None
    try:
        return await context.models.backend("editor")
    except BackendError as error:
        context.progress(Progress("repair", f"no model edits: {error}"))
        return None


async def search_from(
    workflow: Workflow,
    evaluator: Evaluator,
    budget: Budget,
    context: Context,
    level: str | None = None,
    wanted: Wanted | None = None,
) -> Repaired:
    """Search from one base, planned or given, and keep the trace of the best candidate.

    Args:
        workflow: the base.
        evaluator: of its task.
        budget: of this search.
        context: the bank.
        level: how far a solve with a model had escalated, for the trace.
        wanted: None: the deterministic ladder, written down nowhere.
    """
    started, wanted = anyio.current_time(), wanted or Wanted()
    try:
        result = await search(
            workflow,
            evaluator,
            budget,
            listener=_relayed(context),
            options=wanted.options,
            editor=wanted.editor,
            journal=wanted.journal,
        )
    except TimeoutError:
        faults = static_faults(workflow, evaluator.world.snapshot, context)
        return Repaired(checked_only(workflow, faults, "seconds"))
    trace = _keep_trace(result, context, level)
    report = await _report(result, evaluator, trace, context)
    report = report.model_copy(update={"seconds": anyio.current_time() - started})
    return Repaired(report, _run_of(result, evaluator.world, report.status))


def _relayed(context: Context) -> Callable[[SearchProgress], None]:
    def listener(progress: SearchProgress) -> None:
        context.progress(
            Progress(
                "repair",
                progress.trying,
                candidates=progress.candidates,
                calls=progress.calls,
                best=progress.best_score,
                generation=progress.generation,
                intensity=progress.intensity,
                faults_left=progress.faults_left,
            )
        )

    return listener


def _keep_trace(result: SearchResult, context: Context, level: str | None) -> Trace | None:
    best = result.best.evaluation
    if best.trace is None or best.verdict is None:
        return None
    trace = judged_trace(best.trace, result.best.candidate.workflow, best.verdict, context)
    faults = tuple(context.recorder.fault(fault) for fault in best.faults)
    taken_over = context.store.trace(trace.id) is not None  # of a search that was taken up
    fresh = uuid.uuid4().hex if taken_over else trace.id
    trace = trace.model_copy(update={"id": fresh, "faults": faults, "level": level})
    context.store.add_trace(trace)
    return trace


def _run_of(result: SearchResult, world: World, status: Status) -> VerifiedRun | None:
    """Return the run that a skill can be made of: one that succeeded, whoever vouches for it."""
    best = result.best
    if status not in ("verified", "succeeded") or best.evaluation.trace is None:
        return None
    return VerifiedRun(
        workflow=best.candidate.workflow,
        trace=best.evaluation.trace,
        outputs=best.evaluation.result or {},
        node_outputs=best.evaluation.outputs,
        task=world.task or None,
        inputs=dict(world.inputs),
        edits=tuple(render_edit(edit) for edit in best.candidate.edits),
        verifications=tuple(best.evaluation.verdict.verifications) if best.evaluation.verdict else (),
    )


async def _report(
    result: SearchResult, evaluator: Evaluator, trace: Trace | None, context: Context
) -> RepairReport:
    best, base = result.best, result.base
    redacted = context.recorder.fault
    is_sound = best.evaluation.verdict is not None and best.evaluation.status != "static_faults"
    return RepairReport(
        status=trace.status if trace and is_sound else "failed",
        outputs=await shown_outputs(best.evaluation.result, context),
        workflow=best.candidate.workflow.to_json(),
        edits=best.candidate.edits,
        faults=tuple(redacted(fault) for fault in best.evaluation.faults),
        initial_faults=tuple(redacted(fault) for fault in base.evaluation.faults),
        calls=result.calls,
        candidates=len(result.records),
        tokens=result.tokens,
        model_problem="; ".join(result.problems) or None,
        diff=render_diff(base.candidate.workflow, best.candidate.workflow),
        lineage=tuple(_record(record, context) for record in _lineage(result)),
        candidate=best.candidate.id,
        trace=trace.steps if trace else (),
        trace_id=trace.id if trace else None,
        not_repeated=tuple(evaluator.episode.not_repeated),
        verifications=trace.verifications if trace else (),
        budget_spent=result.stopped,
    )


def _lineage(result: SearchResult) -> list[Record]:
    """Return the first records of a search, and those that led to its best."""
    by_id = {record.candidate.id: record for record in result.records}
    led: set[str] = set()
    at: Record | None = result.best
    while at is not None and at.candidate.id not in led:
        led.add(at.candidate.id)
        at = by_id.get(at.candidate.parent or "")
    return [r for i, r in enumerate(result.records) if i < _LINEAGE_SHOWN or r.candidate.id in led]


def _record(record: Record, context: Context) -> CandidateRecord:
    found, made = record.evaluation, record.made
    return CandidateRecord(
        id=record.candidate.id,
        parent=record.candidate.parent,
        edits=tuple(render_edit(edit) for edit in record.candidate.last),
        faults=tuple(context.recorder.fault(fault) for fault in found.faults),
        score=found.score,
        scored_by=found.scored_by,
        status=found.status,
        static_ok=found.static_ok,
        executed_ok=found.executed_ok,
        verified=found.verified,
        calls=found.calls,
        strategy=made.strategy,
        mode=made.mode,
        by=made.by,
        generation=made.generation,
        growth=made.growth,
        intensity=made.intensity,
        tokens=made.tokens,
    )


def checked_only(workflow: Workflow, faults: Sequence[Fault], spent: str | None = None) -> RepairReport:
    """Return the report of a workflow that was checked and not run, as it was given."""
    return RepairReport(
        status="failed" if faults else "unverified",
        outputs=None,
        workflow=workflow.to_json(),
        faults=tuple(faults),
        initial_faults=tuple(faults),
        budget_spent=spent,
    )


def _unreadable(error: MalformedWorkflow) -> RepairReport:
    document = error.document
    kept = cast("dict[str, JsonValue]", document) if isinstance(document, dict) else {}
    faults = tuple(error.faults)
    return RepairReport(status="failed", outputs=None, workflow=kept, faults=faults, initial_faults=faults)

"""Solving a task in words: plans made by a model or without one, run and repaired until one is verified.

All plans share one episode, so that what costs happens at most once for the whole task, whichever
plan calls it, a skill that was tried first included. How a model's plans are escalated is
`server.bank.escalating`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import anyio

from server.backends.backend import Backend
from server.backends.errors import BackendError
from server.bank.context import Context, allowing
from server.bank.escalating import Climb, report_of
from server.bank.patience import for_search
from server.bank.plan_search import first_right
from server.bank.repairing import Repaired, checked_only, spent_at_once
from server.bank.routing import DirectRun
from server.bank.running import static_faults
from server.evolution.evaluate import Evaluator
from server.planning.conversation import MeteredBackend
from server.planning.deterministic import plan_deterministically
from server.planning.model_planner import ModelPlanner
from server.planning.prompt import Advice
from server.planning.view import World
from server.planning.wanted import wanted_outputs
from server.reports import RepairReport
from server.requests import SolveRequest
from skills_store.workflow.faults import Malformed
from skills_store.workflow.model import Workflow

__all__ = ["solve_task"]


@dataclass(frozen=True, slots=True)
class _Planner:
    """The model that plans; `backend` is None where there is none, or it cannot be used."""

    name: str | None = None
    backend: Backend | None = None
    problem: str | None = None


async def solve_task(
    task: str, request: SolveRequest, context: Context, tried: DirectRun | None = None
) -> Repaired:
    """Plan a task, run the plans and repair them, until one is verified.

    Args:
        task: in a person's words.
        request: inputs, checks and budget.
        context: the bank.
        tried: a skill that was run first and failed, None when there was none.
    """
    spent = spent_at_once(request.budget)
    planner = _Planner() if spent or request.budget.tokens == 0 else await _planner(context)
    started = anyio.current_time()
    if spent:
        snapshot = context.known()
    else:
        snapshot = await context.snapshot(patience=for_search(request.budget.seconds))
    effects = allowing(context.effects, request.allow)
    world = World(task, request.inputs, snapshot, effects, context.tool_index(), context.config.labels)
    plans = plan_deterministically(world, wanted_outputs(request.checks))
    if not len(snapshot) or (not plans and planner.backend is None):
        return Repaired(_told(_no_plan(task, context), planner))
    if spent:
        checked = checked_only(plans[0], static_faults(plans[0], snapshot, context), spent)
        return Repaired(checked.model_copy(update={"route": "dynamic"}))
    episode = context.episode(snapshot, effects) if tried is None else tried.episode
    evaluator = Evaluator(world, request.checks, episode, context.options(task))
    request = replace(request, budget=request.budget.after(anyio.current_time() - started))
    if planner.backend is not None:
        climb = _climb(planner.backend, request, evaluator, context, plans, is_planned=tried is not None)
        await climb.climb()
        best = report_of(climb) or Repaired(_no_plan(task, context, climb.unread_message))
        best = replace(best, report=_told(best.report, replace(planner, problem=climb.problem)))
    else:
        if tried is None:
            episode.set_plan(plans[0], context.skill_workflow)
        found, calls, candidates = await first_right(plans, evaluator, request.budget, context)
        counted = {"calls": calls, "candidates": candidates}
        best = replace(found, report=_told(found.report.model_copy(update=counted), planner))
    report = best.report.model_copy(
        update={
            "calls": best.report.calls + (tried.report.calls if tried else 0),
            "seconds": anyio.current_time() - started,
            "route": "dynamic",
            "route_reasons": _reasons(request, tried, planner),
        }
    )
    return replace(best, report=report)


async def _planner(context: Context) -> _Planner:
    """Return the model that plans, ready to be asked, or what keeps it from that."""
    spec = context.models.spec("planner")
    if spec.kind == "none":
        return _Planner()
    try:
        backend = await context.models.backend("planner")
        return _Planner(backend.name if backend else None, backend)
    except BackendError as error:
        return _Planner(str(spec), problem=str(error))


def _climb(
    backend: Backend,
    request: SolveRequest,
    evaluator: Evaluator,
    context: Context,
    plans: list[Workflow],
    *,
    is_planned: bool,
) -> Climb:
    model = MeteredBackend(backend, request.budget.tokens)
    planner = ModelPlanner(
        model,
        evaluator.world,
        wanted_outputs(request.checks),
        Advice(request.experiences, request.skills),
        context.redact,
    )
    return Climb(planner, model, evaluator, request.budget, context, plans, is_planned=is_planned)


def _told(report: RepairReport, planner: _Planner) -> RepairReport:
    """Return the report with who was to plan, and what stood in the way."""
    return report.model_copy(update={"model": planner.name, "model_problem": planner.problem})


def _reasons(request: SolveRequest, tried: DirectRun | None, planner: _Planner) -> tuple[str, ...]:
    if tried is not None:
        why = "; ".join(fault.message for fault in tried.report.faults) or tried.report.status
        return (*tried.report.route_reasons, f"it did not come out right: {why}", "so it was planned anew")
    if request.route == "dynamic":
        return ("asked for",)
    if request.route == "seeded" and planner.backend is None:
        return ("this planner takes no skill as a seed: planned from scratch",)
    return ("no active skill is this task's",)


def _no_plan(task: str, context: Context, why: str = "") -> RepairReport:
    there = "`skillbank doctor` lists the servers" if context.config.servers else "no server is configured"
    message = why or f"no known tool fits the task {task!r}: {there}"
    return RepairReport(
        status="failed", outputs=None, workflow={}, faults=(Malformed(message=message),), route="dynamic"
    )

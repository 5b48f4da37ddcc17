"""Solving a task in words: plans made without a model, each run and repaired until one is verified.

All plans share one episode, so that what costs happens at most once for the whole task, whichever
plan calls it, a skill that was tried first included.
"""

from __future__ import annotations

from dataclasses import replace

import anyio

from server.bank.context import Context, allowing
from server.bank.patience import for_search
from server.bank.repairing import Repaired, checked_only, search_from, spent_at_once
from server.bank.routing import DirectRun
from server.bank.running import static_faults
from server.evolution.evaluate import Evaluator
from server.planning.deterministic import plan_deterministically
from server.planning.view import World
from server.planning.wanted import wanted_outputs
from server.reports import RepairReport
from server.requests import Budget, SolveRequest
from skills_store.workflow.faults import Malformed
from skills_store.workflow.model import Workflow

__all__ = ["solve_task"]

_QUICK_LOOK = 12
"""The first look at a plan may spend this fraction of what is left."""


async def solve_task(
    task: str, request: SolveRequest, context: Context, tried: DirectRun | None = None
) -> Repaired:
    """Plan a task without a model, run the plans and repair them, until one is verified.

    Args:
        task: in a person's words.
        request: inputs, checks and budget.
        context: the bank.
        tried: a skill that was run first and failed, None when there was none.
    """
    started = anyio.current_time()
    if spent_at_once(request.budget):
        snapshot = context.known()
    else:
        snapshot = await context.snapshot(patience=for_search(request.budget.seconds))
    effects = allowing(context.effects, request.allow)
    world = World(task, request.inputs, snapshot, effects, context.tool_index())
    plans = plan_deterministically(world, wanted_outputs(request.checks))
    if not plans:
        return Repaired(_no_plan(task, context))
    if spent := spent_at_once(request.budget):
        checked = checked_only(plans[0], static_faults(plans[0], snapshot, context), spent)
        return Repaired(checked.model_copy(update={"route": "dynamic"}))
    if tried is None:
        episode = context.episode(snapshot, effects)
        episode.set_plan(plans[0], context.skill_workflow)
    else:
        episode = tried.episode
    evaluator = Evaluator(world, request.checks, episode, context.options(task))
    budget = request.budget.after(anyio.current_time() - started)
    best, calls, candidates = await _first_right(plans, evaluator, budget, context)
    report = best.report.model_copy(
        update={
            "calls": calls + (tried.report.calls if tried else 0),
            "candidates": candidates,
            "seconds": anyio.current_time() - started,
            "route": "dynamic",
            "route_reasons": _reasons(request, tried),
        }
    )
    return replace(best, report=report)


async def _first_right(
    plans: list[Workflow], evaluator: Evaluator, budget: Budget, context: Context
) -> tuple[Repaired, int, int]:
    """Return the first plan that comes out right, else the best, with all calls and candidates spent."""
    deadline = anyio.current_time() + budget.seconds
    best: Repaired | None = None
    calls = candidates = 0
    for plan, part in _turns(plans):
        left = _share(budget, deadline - anyio.current_time(), calls, candidates, part)
        if best is not None and spent_at_once(left):
            break
        found = await search_from(plan, evaluator, left, context)
        calls, candidates = calls + found.report.calls, candidates + found.report.candidates
        if best is None or _rank(found.report) > _rank(best.report):
            best = found
        if best.report.status in ("verified", "succeeded"):
            break
    assert best is not None
    return best, calls, candidates


def _turns(plans: list[Workflow]) -> list[tuple[Workflow, int]]:
    """Return which plan is searched from when, with what part of what is left is its own.

    A quick look at each plan comes first, since a right plan needs little repair; then the plans in
    turn, half of what is left for each and all for the last. What was called is remembered.
    """
    if len(plans) == 1:
        return [(plans[0], 1)]
    looks = [(plan, _QUICK_LOOK) for plan in plans]
    return [*looks, *((plan, 2) for plan in plans[:-1]), (plans[-1], 1)]


def _share(budget: Budget, seconds: float, calls: int, candidates: int, part: int) -> Budget:
    """Return one plan's part, the `1 / part` of what is left."""
    return Budget(
        seconds=max(0.0, seconds) / part,
        calls=max(0, -(-(budget.calls - calls) // part)),
        candidates=max(0, -(-(budget.candidates - candidates) // part)),
    )


def _rank(report: RepairReport) -> tuple[bool, bool, int]:
    return report.status == "verified", report.status == "succeeded", -len(report.faults)


def _reasons(request: SolveRequest, tried: DirectRun | None) -> tuple[str, ...]:
    if tried is not None:
        why = "; ".join(fault.message for fault in tried.report.faults) or tried.report.status
        return (*tried.report.route_reasons, f"it did not come out right: {why}", "so it was planned anew")
    if request.route == "dynamic":
        return ("asked for",)
    if request.route == "seeded":
        return ("this planner takes no skill as a seed: planned from scratch",)
    return ("no active skill is this task's",)


def _no_plan(task: str, context: Context) -> RepairReport:
    there = "`skillbank doctor` lists the servers" if context.config.servers else "no server is configured"
    message = f"no known tool fits the task {task!r}: {there}"
    return RepairReport(
        status="failed", outputs=None, workflow={}, faults=(Malformed(message=message),), route="dynamic"
    )

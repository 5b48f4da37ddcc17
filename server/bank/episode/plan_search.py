"""Searching from several plans of one task within one budget, until one comes out right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import anyio

from server.backends.backend import Backend
from server.bank.context import Context
from server.bank.episode.repairing import Repaired, Wanted, search_from, spent_at_once
from server.evolution.evaluate import Evaluator
from server.evolution.options import SearchOptions, Switches
from server.planning.escalation import Level
from server.reports import RepairReport
from server.requests import Budget
from skills_store.workflow.model import Workflow

__all__ = ["first_right", "is_right", "rank_of"]

_QUICK_LOOK = 12
"""The first look at a plan may spend this fraction of what is left."""
_EVOLVING = SearchOptions(ladder_first=False, switches=Switches(meta_guidance=False))
"""The ladder went before it; a plan from elsewhere is what the levels around it ask a model for."""
_FIRST_PART = 4
"""So much of what is left may a plan that goes before all others spend."""


async def first_right(
    plans: Sequence[Workflow],
    evaluator: Evaluator,
    budget: Budget,
    context: Context,
    level: Level | None = None,
    first: tuple[Workflow, Evaluator] | None = None,
    editor: Backend | None = None,
) -> tuple[Repaired, int, int]:
    """Return the first plan that comes out right, else the best, with all calls and candidates spent.

    The ladder of deterministic edits goes first, from every plan; what is left is then spent on evolving
    the best that came of it, where a model can edit.

    Args:
        plans: the most promising first; at least one where there is no `first`.
        evaluator: of the task.
        budget: of all of them together.
        context: the bank.
        level: how far a solve had escalated, for the traces.
        first: a plan with inputs of its own that is tried before them; None: there is none.
        editor: a model that proposes edits; None: there is none, and no population search.
    """
    turns = [(plan, evaluator, part) for plan, part in _turns(plans)]
    if first is not None:
        turns = [(*first, _FIRST_PART if turns else 1), *turns]
    deadline = anyio.current_time() + budget.seconds
    ladder = budget if editor is None else _for_ladder(budget)
    ladder_ends = anyio.current_time() + ladder.seconds
    best: Repaired | None = None
    found_with = evaluator
    calls = candidates = 0
    for plan, evaluating, part in turns:
        left = _share(ladder, ladder_ends - anyio.current_time(), calls, candidates, part)
        if best is not None and spent_at_once(left):
            break
        found = await search_from(plan, evaluating, left, context, level)
        calls, candidates = calls + found.report.calls, candidates + found.report.candidates
        if best is None or rank_of(found.report) > rank_of(best.report):
            best, found_with = found, evaluating
        if is_right(best.report):
            break
    assert best is not None
    left = _share(budget, deadline - anyio.current_time(), calls, candidates, 1)
    if editor is None or is_right(best.report) or spent_at_once(left):
        return best, calls, candidates
    wanted = Wanted(_EVOLVING, editor)
    base = Workflow.model_validate(best.report.workflow)
    left = replace(left, tokens=budget.tokens)
    found = await search_from(base, found_with, left, context, level, wanted)
    better = found if rank_of(found.report) > rank_of(best.report) else best
    return better, calls + found.report.calls, candidates + found.report.candidates


def _for_ladder(budget: Budget) -> Budget:
    """Return what the ladder may spend where a model's edits come after it."""
    share = SearchOptions().ladder_share
    return replace(
        budget,
        seconds=budget.seconds * share,
        calls=max(1, int(budget.calls * share)),
        candidates=max(1, int(budget.candidates * share)),
    )


def is_right(report: RepairReport) -> bool:
    """Return whether nothing more is to be tried: a check passed, or the run did where there is none."""
    return report.status in ("verified", "succeeded")


def rank_of(report: RepairReport) -> tuple[bool, bool, int]:
    """Return what of two reports the better has more of."""
    return report.status == "verified", report.status == "succeeded", -len(report.faults)


def _turns(plans: Sequence[Workflow]) -> list[tuple[Workflow, int]]:
    """Return which plan is searched from when, with what part of what is left is its own.

    A quick look at each plan comes first, since a right plan needs little repair; then the plans in
    turn, half of what is left for each and all for the last. What was called is remembered.
    """
    if len(plans) < 2:
        return [(plan, 1) for plan in plans]
    looks = [(plan, _QUICK_LOOK) for plan in plans]
    return [*looks, *((plan, 2) for plan in plans[:-1]), (plans[-1], 1)]


def _share(budget: Budget, seconds: float, calls: int, candidates: int, part: int) -> Budget:
    """Return one plan's part, the `1 / part` of what is left."""
    return Budget(
        seconds=max(0.0, seconds) / part,
        calls=max(0, -(-(budget.calls - calls) // part)),
        candidates=max(0, -(-(budget.candidates - candidates) // part)),
    )

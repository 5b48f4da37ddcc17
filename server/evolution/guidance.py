"""Guidance for a search that stagnates: a plan made anew, as edits of what there is.

Paper: EvoFlux (meta-guidance; facts §1.5, §1.6). Differs: without a model the deterministic planner
gives the plans; whoever gives it, the plan comes as edits of the parent, so that a candidate is a base
plus edits still, declared outputs stay, and no check is lost with the node it stood on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from server.backends.errors import BackendError
from server.evolution.evaluate import Evaluator
from server.evolution.plan_edits import edits_towards
from server.evolution.proposal import Proposal
from server.evolution.proposer import Asked, Offer
from server.evolution.removals import may_leave_out
from server.planning.conversation import MeteredBackend
from server.planning.deterministic import plan_deterministically
from server.planning.model_planner import ModelPlanner
from server.planning.view import View
from skills_store.workflow.model import Workflow

__all__ = ["ModelReplanner", "Replanner"]

_COST = 3.0
_PLANS = 8


@dataclass(frozen=True, slots=True)
class Replanner:
    """The plans of the planner without a model, the most promising first."""

    name: str = "planner"

    async def propose(self, asked: Asked) -> Offer:
        """Return the parent turned into each plan."""
        if not asked.view.world.task:
            return Offer(problems=("without the task's words there is nothing to plan",))
        plans = plan_deterministically(asked.view.world, tuple(asked.view.workflow.outputs), limit=_PLANS)
        return _offer(asked.view, plans)


@dataclass(frozen=True)
class ModelReplanner:
    """A plan of a model that is shown the best candidate and what is wrong with it."""

    model: MeteredBackend
    evaluator: Evaluator
    deadline_seconds: float = 120.0
    name: str = "model-planner"

    async def propose(self, asked: Asked) -> Offer:
        """Return the parent turned into the model's plan; empty where the model could not answer."""
        before = self.model.usage.total
        planner = ModelPlanner(
            self.model,
            asked.view.world,
            tuple(asked.view.workflow.outputs),
            redact=self.evaluator.options.redact,
        )
        try:
            readings = await planner.reflect(asked.view, deadline_seconds=self.deadline_seconds)
        except BackendError as error:
            return Offer(tokens=self.model.usage.total - before, problems=(str(error),), failure=str(error))
        plans = [reading.workflow for reading in readings if reading.workflow is not None]
        wrong = tuple(fault.message for reading in readings for fault in reading.faults)
        offer = _offer(asked.view, plans)
        return replace(offer, tokens=self.model.usage.total - before, problems=(*wrong, *offer.problems))


def _offer(view: View, plans: list[Workflow]) -> Offer:
    may_remove = partial(may_leave_out, view)
    found = [edits for plan in plans if (edits := edits_towards(view.workflow, plan, may_remove))]
    none = ("no plan gives the declared outputs",)
    return Offer([Proposal(edits, _COST) for edits in found], problems=() if found else none)

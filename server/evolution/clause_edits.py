"""The plan that the task's words say, clause by clause, as one proposal of edits.

One missing step at a time shows no gain where only the end is checked; all of them at once does. Paper:
EvoFlux (meta-guidance). Differs: no model, offered from any faulty candidate, since what its tools were
seen to answer says how the next plan has to read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pydantic import JsonValue

from server.evolution.plan_edits import edits_towards
from server.evolution.proposal import Proposal
from server.evolution.removals import may_leave_out
from server.planning.clause_planner import plan_by_clauses
from server.planning.view import View
from skills_store.workflow.faults import CheckFailed
from skills_store.workflow.graph import needed
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import ExpressionError, Reference, map_references

__all__ = ["propose_by_clauses"]

_COST, _COST_BESIDE_FAULTS, _COST_OF_READING = 1.0, 2.2, 0.3
"""Nats: before other guesses where no fault says what to mend, else after small edits that answer faults;
cheap where the calls are the plan's already and it only reads them as they were seen to answer."""
_PER_FAULT = 0.3
"""Nats less for every further fault: mending each takes an edit of its own."""


def propose_by_clauses(view: View) -> Iterator[Proposal]:
    """Yield the edits that make of a workflow what the task's words order; none where it is that already."""
    plan = plan_by_clauses(view, tuple(view.workflow.outputs)) if view.world.task else None
    if plan is None or _shape(plan) == _shape(view.workflow):
        return
    if edits := edits_towards(view.workflow, plan, partial(may_leave_out, view)):
        yield Proposal(edits, _cost(view, plan), anew=view.world.planned)


def _cost(view: View, plan: Workflow) -> float:
    if view.world.planned and _calls(plan) == _calls(view.workflow):
        return _COST_OF_READING
    faults = [fault for fault in view.visible_faults if not isinstance(fault, CheckFailed)]
    if not view.world.planned:  # a person's own way is mended before it is given up
        return _COST_BESIDE_FAULTS if faults else _COST
    return max(_COST, _COST_BESIDE_FAULTS - _PER_FAULT * (len(faults) - 1)) if faults else _COST


def _calls(workflow: Workflow) -> list[str]:
    """Return the tools that the outputs of a workflow stand on, each as often as it is called."""
    standing = needed(workflow)
    return sorted(str(node.tool) for node in workflow.nodes if node.id in standing)


def _shape(workflow: Workflow) -> list[JsonValue] | None:
    """Return what a workflow calls and gives, whatever its nodes are called, None where unreadable."""
    places = {node.id: str(place) for place, node in enumerate(workflow.nodes)}

    def change(found: Reference) -> Reference:
        name = places.get(found.name, found.name) if found.root == "nodes" else found.name
        return Reference(found.root, f"n{name}" if found.root == "nodes" else name, found.pointer)

    try:
        calls: list[JsonValue] = [
            [
                str(node.tool),
                map_references(dict(node.arguments), change),
                map_references(node.for_each, change),
            ]
            for node in workflow.nodes
        ]
        return [*calls, map_references(dict(workflow.outputs), change)]
    except ExpressionError:
        return None

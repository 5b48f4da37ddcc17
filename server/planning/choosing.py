"""Which of several plans to run first: by what they mean, since nearly all of them are valid.

Measured: of five plans of a compact model one is right twice as often as the first is. What tells
them apart before anything runs is whether they use what the task says, give what is asked for,
hold no needless step, and call tools the task speaks of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from catalog.tools import Snapshot
from server.planning.needless import needless_nodes
from server.planning.view import View, World
from skills_store.workflow.check import check_workflow
from skills_store.workflow.graph import output_nodes
from skills_store.workflow.model import Workflow

__all__ = ["Promise", "by_promise", "promise_of"]


@dataclass(frozen=True, slots=True, order=True)
class Promise:
    """How promising a plan is; compared field by field, more is better."""

    soundness: float
    """1 without a static fault, less with each."""
    said: float
    """Share of the values the task says, and of its inputs, that the plan uses."""
    given: float
    """Share of the wanted outputs that a tool's answer feeds."""
    lean: int
    """Needless steps, counted down from 0."""
    spoken: float
    """How much the task speaks of the tools that are called."""


def by_promise(plans: Sequence[Workflow], world: World, wanted: Sequence[str]) -> list[Workflow]:
    """Return the plans, the most promising first, those alike in their order."""
    return sorted(plans, key=lambda plan: promise_of(plan, world, wanted), reverse=True)


def promise_of(plan: Workflow, world: World, wanted: Sequence[str]) -> Promise:
    """Return how promising a plan is before it has run."""
    faults = check_workflow(plan, world.snapshot)
    called = [node.tool for node in plan.nodes if node.tool is not None]
    spoken = [world.spoken_of.get(tool, 0.0) for tool in called]
    return Promise(
        soundness=1 / (1 + len(faults)),
        said=_said(plan, world),
        given=_given(plan, world.snapshot, wanted),
        lean=-len(needless_nodes(plan, world)) if len(plan.nodes) > 1 else 0,
        spoken=sum(spoken) / len(spoken) if spoken else 0.0,
    )


def _said(plan: Workflow, world: World) -> float:
    stated = [x.value for x in world.literals if x.kind not in ("word", "name", "symbol")]
    inputs = list(world.inputs.values())
    texts = {str(value) for value in _scalars([dict(node.arguments) for node in plan.nodes])}
    used = View(world, plan).used_inputs
    hits = [str(value) in texts or value in inputs for value in stated]
    hits += [name in used for name in world.inputs]
    return sum(hits) / len(hits) if hits else 1.0


def _given(plan: Workflow, snapshot: Snapshot, wanted: Sequence[str]) -> float:
    known = {node.id for node in plan.nodes if node.tool is not None and node.tool in snapshot}
    if not known & output_nodes(plan):
        return 0.0
    return sum(name in plan.outputs for name in wanted) / len(wanted) if wanted else 1.0


def _scalars(value: object) -> list[JsonValue]:
    match value:
        case dict():
            return [part for item in cast("dict[str, JsonValue]", value).values() for part in _scalars(item)]
        case list():
            return [part for item in cast("list[JsonValue]", value) for part in _scalars(item)]
        case _:
            return [cast("JsonValue", value)]

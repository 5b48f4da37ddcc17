"""Whether a step was needed: drop it, run the rest again, and see whether the check still passes.

Only pure and read steps are dropped and run: the rest is answered from memory, so that an ablation
makes no call that a search has not made, and never one that is not free.
Paper: AgentEvolver has a model judge each step (§3.3). Differs: this measures it, where that is free.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import chain

from pydantic import JsonValue

from server.attribution.labels import StepLabel
from skills_store.workflow.edits import EditRefused, RemoveNode, apply_edit
from skills_store.workflow.graph import data_dependencies, output_nodes, waves
from skills_store.workflow.model import Node, Workflow

__all__ = ["StillPasses", "ablate"]

StillPasses = Callable[[Workflow], Awaitable[bool | None]]
"""Whether a workflow passes the task's check; None where it could not be told (a call is not free)."""


async def ablate(
    workflow: Workflow, is_free: Callable[[Node], bool], still_passes: StillPasses
) -> tuple[StepLabel, ...]:
    """Return the labels of the steps that could be dropped or are shown to be needed.

    Where something that a step itself reads can stand in for its answer, that is what its readers get;
    else its readers are dropped with it. Where the answer is among these, there is none without the step.

    Args:
        workflow: passed its check.
        is_free: whether a node's call may be repeated at will.
        still_passes: runs a workflow from memory and checks it.
    """
    labels: list[StepLabel] = []
    for node in workflow.nodes:
        if not is_free(node):
            continue
        without = _without(workflow, node) or _without_readers(workflow, node)
        if without is None:
            labels.append(StepLabel(node.id, "good", "ablation", "there is no answer without it"))
            continue
        passes = await still_passes(without)
        if passes is None:
            continue
        label = "bad" if passes else "good"
        reason = "the check passes without it" if passes else "the check fails without it"
        labels.append(StepLabel(node.id, label, "ablation", reason))
    return tuple(labels)


def _without(workflow: Workflow, node: Node) -> Workflow | None:
    """Return the workflow without a node, its readers reading what it read; None where nothing stands in."""
    readers = [n for n, reads in data_dependencies(workflow).items() if node.id in reads]
    if not readers and node.id not in output_nodes(workflow):
        return _removed(workflow, node, {})
    for stand_in in _sources(node):
        reference = f"$nodes.{node.id}.output"
        places = _references(workflow, reference)
        removed = _removed(workflow, node, dict.fromkeys(places, stand_in))
        if removed is not None:
            return removed
    return None


def _without_readers(workflow: Workflow, node: Node) -> Workflow | None:
    """Return the workflow without a node and all that stands on it; None where the answer is among it."""
    reads = data_dependencies(workflow)
    dropped = {node.id}
    while further := {name for name, read in reads.items() if read & dropped} - dropped:
        dropped |= further
    if dropped & output_nodes(workflow):
        return None
    left: Workflow | None = workflow
    for name in reversed(list(chain.from_iterable(waves(workflow)))):
        last = left.node(name) if left is not None and name in dropped else None
        left = _removed(left, last, {}) if left is not None and last is not None else left
    return left


def _removed(workflow: Workflow, node: Node, rewired: dict[str, str]) -> Workflow | None:
    try:
        return apply_edit(workflow, RemoveNode(node=node.id, rewired=rewired))
    except EditRefused:
        return None


def _sources(node: Node) -> list[str]:
    """Return the references that a node's own arguments are, in order."""
    return [value for value in node.arguments.values() if isinstance(value, str) and value.startswith("$")]


def _references(workflow: Workflow, reference: str) -> list[str]:
    """Return every distinct whole reference into a node's output, as text."""
    found: dict[str, None] = {}
    waiting: list[JsonValue] = [workflow.outputs, *(node.arguments for node in workflow.nodes)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and (value == reference or value.startswith(f"{reference}#")):
            found[value] = None
    return list(found)

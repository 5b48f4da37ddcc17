"""Whether each step of a run was good, from the run itself.

Paper: AgentEvolver (self-attributing, §3.3; facts §4.4). Differs: no model is needed; a step is good
when it ran, something that counts reads it, and no earlier step was the same. A judge's opinion
(`judging`) and ablation (`ablation`) replace these labels where they were asked for, and every label
says whose it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from catalog.canonical import digest
from skills_store.trace import Step, Trace
from skills_store.workflow.graph import needed
from skills_store.workflow.model import Workflow

__all__ = ["Label", "LabelSource", "StepLabel", "agreement", "label_steps", "replacing"]

Label = Literal["good", "bad"]
LabelSource = Literal["execution", "ablation", "judge"]


@dataclass(frozen=True, slots=True)
class StepLabel:
    """One step's label; the items of a mapped node are one step."""

    node: str
    label: Label
    source: LabelSource
    reason: str


def label_steps(workflow: Workflow, trace: Trace) -> tuple[StepLabel, ...]:
    """Return the label of each node that was reached, in the order in which they ran.

    Steps inside of a skill count to the node that called it. A skipped node is good: that was its part.
    """
    useful = needed(workflow)
    seen: set[str] = set()
    labels: list[StepLabel] = []
    for node, steps in _by_node(trace.steps):
        if all(step.outcome == "not_reached" for step in steps):
            continue
        labels.append(_label(node, steps, useful, seen))
        seen.update(_actions(steps))
    return tuple(labels)


def _by_node(steps: Iterable[Step]) -> list[tuple[str, list[Step]]]:
    found: dict[str, list[Step]] = {}
    for step in steps:
        found.setdefault(step.node.split(".")[0], []).append(step)
    return list(found.items())


def _label(node: str, steps: list[Step], useful: frozenset[str], seen: set[str]) -> StepLabel:
    failed = next((step for step in steps if step.outcome == "failed"), None)
    if failed is not None:
        said = failed.fault.kind if failed.fault is not None else "it failed"
        return StepLabel(node, "bad", "execution", f"it failed: {said}")
    if node not in useful:
        return StepLabel(node, "bad", "execution", "nothing that counts reads it")
    if _actions(steps) & seen:
        return StepLabel(node, "bad", "execution", "an earlier step made the same call")
    return StepLabel(node, "good", "execution", "it ran, and what counts reads it")


def _actions(steps: list[Step]) -> set[str]:
    """Return what was done, as text: tool and arguments of each call."""
    return {f"{step.tool} {digest(step.arguments)}" for step in steps if step.tool is not None}


def replacing(labels: Iterable[StepLabel], better: Iterable[StepLabel]) -> tuple[StepLabel, ...]:
    """Return labels with those of a better source in their place."""
    known = {label.node: label for label in better}
    return tuple(known.get(label.node, label) for label in labels)


def agreement(ones: Iterable[StepLabel], others: Iterable[StepLabel]) -> float | None:
    """Return the share of steps that both label alike, None where they have no step in common."""
    first = {label.node: label.label for label in ones}
    both = [(first[label.node], label.label) for label in others if label.node in first]
    return sum(one == other for one, other in both) / len(both) if both else None

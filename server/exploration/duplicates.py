"""Which tasks are near-duplicates of those there are: alike in words *and* in structure.

Paper: AgentEvolver (filter of synthetic tasks, word-set Jaccard 0.8; facts §4.2, §7). Differs: equal
words over another structure, and an equal structure in other words, are both kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.similarity import words
from server.exploration.tasks import ExploredTask
from server.planning.literals import wording
from skills_store.workflow.graph import data_dependencies
from skills_store.workflow.model import Node, Workflow

__all__ = ["TaskShape", "is_near_duplicate", "shape_of", "shape_of_task"]

_ALIKE = 0.8


@dataclass(frozen=True, slots=True)
class TaskShape:
    """What of a task is compared: its words without the values, and its steps with what each reads."""

    words: frozenset[str]
    steps: tuple[str, ...]
    is_reworded: bool = False
    """Whether a model said it in its own words, which template's words cannot be compared with."""


def shape_of(task: str, workflow: Workflow) -> TaskShape:
    """Return the shape of a task in a template's words with this reference."""
    reads = data_dependencies(workflow)
    place = {node.id: number for number, node in enumerate(workflow.nodes)}
    return TaskShape(
        frozenset(words(wording(task))),
        tuple(_step(node, sorted(place[read] for read in reads[node.id])) for node in workflow.nodes),
    )


def shape_of_task(task: ExploredTask) -> TaskShape:
    """Return the shape of a task that was made earlier."""
    shape = shape_of(task.task, task.reference)
    return TaskShape(shape.words, shape.steps, task.worded_by == "model")


def _step(node: Node, reads: list[int]) -> str:
    """Return a step as text: its tool, its arguments, and the numbers of the steps it reads."""
    arguments = ",".join(sorted(node.arguments))
    return f"{node.tool}({arguments})<{','.join(map(str, reads))}"


def is_near_duplicate(shape: TaskShape, kept: Iterable[TaskShape]) -> bool:
    """Return whether a kept task has the same steps and at least four fifths of the words."""
    return any(
        shape.steps == other.steps
        and (shape.is_reworded or other.is_reworded or _jaccard(shape.words, other.words) >= _ALIKE)
        for other in kept
    )


def _jaccard(one: frozenset[str], two: frozenset[str]) -> float:
    return len(one & two) / len(one | two) if one | two else 1.0

"""Tidying a verified candidate: no edit that is not needed, no node that nobody reads.

Each step is a candidate of its own and counts only if it verifies too. What costs is never pruned:
a write that nobody reads has its purpose in itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Sequence

from pydantic import JsonValue

from server.evolution.argument_faults import set_argument
from server.evolution.building import edited
from server.evolution.candidate import Candidate, Made, Record
from server.evolution.evaluate import Evaluator
from server.planning.literals import mentions
from server.planning.slots import input_reference
from server.planning.view import View
from skills_store.workflow.edits import Edit, EditRefused, RemoveNode
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow

__all__ = ["tidied"]

#: What a tidier candidate is preferred by, so that it becomes the best of the search.
_BONUS = 0.01


async def tidied(
    best: Record, base: Workflow, evaluator: Evaluator, known: Collection[str]
) -> AsyncIterator[Record]:
    """Yield every candidate that was tried; one that verifies is tidier than all before it.

    Args:
        best: verified.
        base: what its edits start from.
        evaluator: of the search.
        known: ids of candidates that were evaluated already, and are not again.
    """
    current, seen = best, set(known)
    for edit in reversed(best.candidate.edits):
        kept = tuple(other for other in current.candidate.edits if other is not edit)
        if record := await _tried(current, base, kept, evaluator, seen):
            current = _tidier(current, record)
            yield record
    before = None
    while before is not current:
        before = current
        for edits in _improvements(evaluator.view(current.candidate, current.evaluation)):
            longer = (*current.candidate.edits, *edits)
            if record := await _tried(current, base, longer, evaluator, seen):
                current = _tidier(current, record)
                yield record


def _tidier(current: Record, record: Record) -> Record:
    is_right = record.evaluation.status == "verified"
    keeps = record.evaluation.fitness.keeps_inputs >= current.evaluation.fitness.keeps_inputs
    return record if is_right and keeps else current


async def _tried(
    current: Record, base: Workflow, edits: tuple[Edit, ...], evaluator: Evaluator, seen: set[str]
) -> Record | None:
    """Return the record of the base under these edits, None when they are refused or lead to a known one."""
    try:
        workflow = edited(base, edits)
    except EditRefused:
        return None
    candidate = Candidate(
        id=content_hash(workflow),
        workflow=workflow,
        edits=edits,
        last=edits[-1:],
        parent=current.candidate.id,
        cost=current.candidate.cost - _BONUS,
        depth=current.candidate.depth,
    )
    if candidate.id in seen:
        return None
    seen.add(candidate.id)
    return Record(candidate, await evaluator.evaluate(candidate), Made(strategy="tidy", mode="tidy"))


def _improvements(view: View) -> Iterator[Sequence[Edit]]:
    for node in view.unused_nodes:
        if node.tool and view.world.effect(node.tool).is_free and not node.expect:
            yield [RemoveNode(node=node.id, because=f"nothing reads {node.id!r}")]
    for node in view.workflow.nodes:
        for argument, value in node.arguments.items():
            reference = _lifted(value, view)
            if reference is not None:
                yield [set_argument(node, argument, reference, f"{value!r} is the value of {reference}")]


def _lifted(value: JsonValue, view: View) -> str | None:
    """Return the unread input a literal repeats, when it is the only one with that value."""
    if isinstance(value, dict | list):
        return None
    reference = input_reference(value, view)
    is_unread = reference is not None and reference.removeprefix("$inputs.") in view.unused_inputs
    return reference if is_unread and (isinstance(value, str) or mentions(view.world.task, value)) else None

"""The runs of a task's family among those that are kept, and what they showed."""

from __future__ import annotations

from server.bank.context import Context
from server.planning.insights import insights_of
from server.planning.task_reading import is_same_family
from skills_store.errors import MalformedWorkflow
from skills_store.skill import Skill
from skills_store.trace import Trace
from skills_store.workflow.hashing import shape_hash
from skills_store.workflow.model import parse_workflow

__all__ = ["family_insights"]

_TRACES_LOOKED_AT = 200


def family_insights(task: str, skill: Skill | None, context: Context) -> tuple[str, ...]:
    """Return what earlier runs of the family of a task showed, nothing where fewer than three are kept.

    Args:
        task: runs for tasks that say the same with other values belong to its family.
        skill: runs of the same shape as its workflow do too; None: no skill is near.
        context: the bank.
    """
    shapes: dict[str, str | None] = {}
    family: list[Trace] = []
    for trace in context.store.traces(_TRACES_LOOKED_AT):
        if trace.task is None:
            continue
        if is_same_family(task, trace.task) or (
            skill is not None and _shape(trace, shapes) == skill.shape_hash
        ):
            family.append(trace)
    return insights_of(family)


def _shape(trace: Trace, known: dict[str, str | None]) -> str | None:
    """Return the shape of what ran, None where its document cannot be read any more."""
    if trace.workflow_hash not in known:
        try:
            known[trace.workflow_hash] = shape_hash(parse_workflow(trace.workflow))
        except MalformedWorkflow:
            known[trace.workflow_hash] = None
    return known[trace.workflow_hash]

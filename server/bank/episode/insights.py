"""The runs of a task's family among those that are kept, and what they showed."""

from __future__ import annotations

from server.bank.context import Context
from server.planning.insights import insights_of
from server.planning.patterns import same_pattern
from server.planning.task_reading import is_same_family
from skills_store.retrieval import SAME_PATTERN
from skills_store.skill import Skill
from skills_store.trace import Trace

__all__ = ["family_insights"]

_TRACES_LOOKED_AT = 200


def family_insights(task: str, skill: Skill | None, context: Context) -> tuple[str, ...]:
    """Return what earlier runs of the family of a task showed, nothing where fewer than three are kept.

    Where learning is off nothing is taken from earlier runs either.

    Args:
        task: runs for tasks that say the same with other values belong to its family.
        skill: the nearest one, whose runs and whose own task's family belong to it too; None: none is near.
        context: the bank.
    """
    if context.config.learning == "off":
        return ()
    return insights_of(
        [
            trace
            for trace in context.store.traces(_TRACES_LOOKED_AT)
            if trace.task is not None
            and (is_same_family(task, trace.task) or (skill is not None and _is_of(skill, trace, trace.task)))
        ]
    )


def _is_of(skill: Skill, trace: Trace, task: str) -> bool:
    return same_pattern(task, skill) >= SAME_PATTERN or trace.workflow_hash == skill.content_hash

"""Lessons of one run by template: what came right, what went wrong, and what made the difference.

Paper: AgentEvolver (success, failure and comparative experience, §3.2; facts §4.3). Differs: no model is
needed, and what a template may say is closed: the caller's words without their values, names of tools
and arguments, classes of faults. No word of a tool's answer gets in, so that no instruction in one can.
World faults teach nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from catalog.plain_text import plain_text
from catalog.tools import ToolId
from server.planning.literals import wording
from skills_store.experience.unit import LIFETIME_SECONDS, ExperienceKind, ExperienceUnit, unit_id
from skills_store.trace import Trace
from skills_store.workflow.faults import CheckFailed, Fault
from skills_store.workflow.model import Workflow

__all__ = ["Lesson", "situation_of", "units_of"]

_LONGEST = 300
_MOST_TOOLS = 12
_CHECKED = 0.7
_UNCHECKED = 0.4


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a run of a task came to, as far as anything may be learned from it."""

    task: str
    trace: Trace
    before: Workflow | None = None
    """The workflow as it was first, where the run is of a repaired one."""
    after: Workflow | None = None
    """The workflow that ran."""
    faults: tuple[Fault, ...] = ()
    """Of the first workflow, or of the run where nothing mended it."""


def situation_of(task: str) -> str:
    """Return when a lesson of a task is to be used: the task's words without the values it states."""
    return plain_text(" ".join(wording(task).split()), _LONGEST).strip(" ,.;:")


def units_of(lesson: Lesson, now: float) -> list[ExperienceUnit]:
    """Return the units a run teaches, none where the world or nobody's check stood in the way.

    Args:
        lesson: one run.
        now: Unix seconds.
    """
    situation = situation_of(lesson.task)
    if not situation or any(fault.evidence == "world" for fault in lesson.trace.faults):
        return []
    if lesson.trace.status in ("verified", "succeeded"):
        return [*_success(situation, lesson, now), *_comparison(situation, lesson, now)]
    return list(_failure(situation, lesson, now)) if lesson.trace.status == "failed" else []


def _success(situation: str, lesson: Lesson, now: float) -> Iterator[ExperienceUnit]:
    tools = _tools(lesson.trace)
    if tools:
        steps = ", then ".join(map(str, tools))
        yield _unit("success", situation, f"Call {steps}.", tools, lesson, now)


def _failure(situation: str, lesson: Lesson, now: float) -> Iterator[ExperienceUnit]:
    """Yield what was wrong where it was wrong; that a check failed is no lesson about any one tool."""
    called = {step.node: step.tool for step in lesson.trace.steps if step.tool is not None}
    for fault in _own(lesson.faults or lesson.trace.faults)[:2]:
        tool = called.get(fault.node or "")
        if tool is not None and not isinstance(fault, CheckFailed):
            said = f"{tool} fails with {fault.kind}{_at(fault)}: look at its arguments, or use another tool."
            yield _unit("failure", situation, said, (tool,), lesson, now, fault.kind)


def _comparison(situation: str, lesson: Lesson, now: float) -> Iterator[ExperienceUnit]:
    """Yield the tools that took another's place in what came right."""
    if lesson.before is None or lesson.after is None:
        return
    kinds = [fault.kind for fault in _own(lesson.faults)]
    for old, new in _swapped(lesson.before, lesson.after):
        kind = kinds[0] if kinds else None
        why = f" with {kind}" if kind else ""
        said = f"Call {new} instead of {old}: {old} failed{why} and {new} came right."
        yield _unit("comparison", situation, said, (new,), lesson, now, kind, old)


def _swapped(before: Workflow, after: Workflow) -> list[tuple[ToolId, ToolId]]:
    """Return the tools of nodes that both have and that call another tool in the second."""
    pairs: list[tuple[ToolId, ToolId]] = []
    for node in before.nodes:
        other = after.node(node.id)
        if node.tool and other is not None and other.tool and other.tool != node.tool:
            pairs.append((node.tool, other.tool))
    return pairs


def _unit(
    kind: ExperienceKind,
    situation: str,
    content: str,
    tools: Sequence[ToolId],
    lesson: Lesson,
    now: float,
    fault: str | None = None,
    instead_of: ToolId | None = None,
) -> ExperienceUnit:
    named = tuple(tools)[:_MOST_TOOLS]
    return ExperienceUnit(
        id=unit_id(kind, situation, named, fault),
        kind=kind,
        when_to_use=situation,
        content=content[:600],
        tools=named,
        instead_of=instead_of,
        fault=fault,
        evidence=(lesson.trace.id,),
        confidence=_CHECKED if lesson.trace.status == "verified" else _UNCHECKED,
        created_at=now,
        expires_at=now + LIFETIME_SECONDS,
    )


def _own(faults: Sequence[Fault]) -> list[Fault]:
    return [fault for fault in faults if fault.evidence == "workflow"]


def _at(fault: Fault) -> str:
    argument = getattr(fault, "argument", None)
    return f" at {argument}" if isinstance(argument, str) and argument.isidentifier() else ""


def _tools(trace: Trace) -> tuple[ToolId, ...]:
    called = sorted((step for step in trace.steps if step.tool is not None), key=lambda step: step.wave)
    return tuple(dict.fromkeys(step.tool for step in called if step.tool is not None))

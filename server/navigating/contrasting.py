"""Lessons of calls that were tried out: what a refused one had otherwise than one that worked.

Paper: AgentEvolver (comparative and failure experience, §3.2; facts §4.3). Differs: no model compares
trajectories; the two calls of a tool are compared that differ in the fewest arguments, and the lesson
names the tool, these arguments and the class of the fault. No word of an answer gets in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.similarity import words
from catalog.tools import ToolId
from server.navigating.writing import situation_of
from skills_store.experience.unit import LIFETIME_SECONDS, ExperienceKind, ExperienceUnit, unit_id
from skills_store.workflow.faults import Fault

__all__ = ["Tried", "contrasted"]

_CONFIDENCE = 0.5
"""A tool said it; no task's check did."""
_MOST_NAMED = 3
_SITUATIONS = 2


@dataclass(frozen=True, slots=True)
class Tried:
    """A call its tool's schema allows. `fault` is None where it worked."""

    tool: ToolId
    arguments: Mapping[str, JsonValue]
    evidence: str
    """Id of the trace that has it."""
    fault: Fault | None = None


def contrasted(
    tried: Iterable[Tried], tasks: Mapping[ToolId, Sequence[str]], now: float
) -> Iterator[ExperienceUnit]:
    """Yield what the calls of each tool teach; what the world did teaches nothing.

    Args:
        tried: in any order.
        tasks: in words, by a tool that solves them; a tool without one is told of by its name.
        now: Unix seconds.
    """
    by_tool: dict[ToolId, list[Tried]] = {}
    for call in tried:
        if call.fault is None or call.fault.evidence == "workflow":
            by_tool.setdefault(call.tool, []).append(call)
    for tool, calls in sorted(by_tool.items()):
        told = _told([c for c in calls if c.fault is None], [c for c in calls if c.fault is not None])
        if told is None:
            continue
        said = [situation_of(task) for task in tasks.get(tool, ())[:_SITUATIONS]]
        for situation in [text for text in said if text] or [" ".join(words(tool.tool))]:
            if situation:
                yield _unit(told, tool, situation, now)


@dataclass(frozen=True, slots=True)
class _Told:
    kind: ExperienceKind
    says: str
    fault: str
    evidence: tuple[str, ...]


def _told(good: Sequence[Tried], bad: Sequence[Tried]) -> _Told | None:
    if not bad:
        return None
    if not good:
        shown, kind = bad[-1], _kind(bad[-1])
        said = f"{shown.tool} failed with {kind} however it was called: use another tool, or ask."
        return _Told("failure", said, kind, (shown.evidence,))
    worked, failed = min(((one, other) for one in good for other in bad), key=lambda pair: len(_apart(*pair)))
    named = [name for name in _apart(worked, failed) if name.isidentifier()][:_MOST_NAMED]
    if not named:
        return None
    at = " and ".join(named)
    said = (
        f"{failed.tool} failed with {_kind(failed)} where {at} had another value than in a call that worked:"
        " take one that its schema, its description or an earlier call gives."
    )
    return _Told("comparison", said, _kind(failed), (worked.evidence, failed.evidence))


def _kind(call: Tried) -> str:
    return call.fault.kind if call.fault is not None else ""


def _apart(one: Tried, other: Tried) -> list[str]:
    """Return the arguments in which two calls differ."""
    names = sorted({*one.arguments, *other.arguments})
    missing = object()
    return [name for name in names if one.arguments.get(name, missing) != other.arguments.get(name, missing)]


def _unit(told: _Told, tool: ToolId, situation: str, now: float) -> ExperienceUnit:
    return ExperienceUnit(
        id=unit_id(told.kind, situation, (tool,), told.fault),
        kind=told.kind,
        when_to_use=situation,
        content=told.says,
        tools=(tool,),
        fault=told.fault,
        evidence=told.evidence,
        confidence=_CONFIDENCE,
        created_at=now,
        expires_at=now + LIFETIME_SECONDS,
    )

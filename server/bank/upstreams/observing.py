"""What an exploration's calls leave in the bank beside its tasks: their records, and lessons of refusals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from catalog.tools import ToolId
from server.bank.context import Context
from server.bank.keeping import keep_units
from server.bank.traces import keep_call
from server.execution.failures import Place, PlannedCall, faults_of
from server.exploration.observation import Observation
from server.exploration.tasks import ExploredTask
from server.navigating.contrasting import Tried, contrasted
from skills_store.experience.unit import ExperienceUnit
from skills_store.workflow.faults import Fault

__all__ = ["keep_observed"]

_EACH = 5
"""Calls of a tool that worked, and as many that did not, whose records are kept."""
_SAYING = frozenset({"typical", "enum", "chained", "proposed"})
"""Kinds of calls that anybody might make."""


async def keep_observed(
    observations: Sequence[Observation], tasks: Iterable[ExploredTask], context: Context
) -> list[ExperienceUnit]:
    """Keep records of calls for the guidelines of tools, and what refusals teach; return the lessons.

    What only the world did is neither. The failed calls are kept first, so that no server looks broken.
    """
    said = [call for call in observations if call.probe.kind in _SAYING]
    good = [call for call in said if call.succeeded]
    bad = [call for call in said if (fault := _fault(call)) is not None and fault.evidence == "workflow"]
    tried = [await _kept(call, context) for call in (*_newest(bad), *_newest(good))]
    solved_by: dict[ToolId, list[str]] = {}
    for task in tasks:
        for node in task.reference.nodes:
            if node.tool is not None:
                solved_by.setdefault(node.tool, []).append(task.task)
    return await keep_units(contrasted(tried, solved_by, context.clock()), context)


def _newest(calls: Sequence[Observation]) -> list[Observation]:
    """Return the last few calls of each tool, in order."""
    counts: dict[ToolId, int] = {}
    found: list[Observation] = []
    for call in reversed(calls):
        tool = call.probe.tool.id
        counts[tool] = counts.get(tool, 0) + 1
        if counts[tool] <= _EACH:
            found.append(call)
    return found[::-1]


async def _kept(call: Observation, context: Context) -> Tried:
    probe = call.probe
    kept = await keep_call(probe.tool.id, dict(probe.arguments), call.outcome, context)
    return Tried(probe.tool.id, probe.arguments, kept.trace_id, _fault(call))


def _fault(call: Observation) -> Fault | None:
    if call.failure is None:
        return None
    planned = PlannedCall(call.probe.tool.id, call.probe.tool.input_schema, dict(call.probe.arguments))
    return faults_of(call.failure, planned, Place("call", 0))[0]

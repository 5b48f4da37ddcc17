"""Whether a tool under a skill answers far slower than when the skill came into its state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from catalog.tools import ToolId
from server.bank.context import Context
from server.bank.curation.observing import entered_at
from skills_store.skill import Skill
from skills_store.trace import Trace

__all__ = ["SLOWER_SECONDS", "SLOWER_TIMES", "slowed"]

SLOWER_TIMES: Final = 5.0
"""How many times slower is another contract."""
SLOWER_SECONDS: Final = 1.0
"""And how much at least: a tool that takes 5 ms instead of 1 has not changed for anybody."""
_FEW: Final = 5
"""Uses that are compared, the first and the latest."""
_USES_READ: Final = 200


def slowed(skill: Skill, context: Context) -> str:
    """Return which tools have become slower and by how much, empty when none has.

    Compared are the middle times of the first and of the latest uses since the skill came into its
    state, so that what was verified again is measured anew.
    """
    since = entered_at(skill, context)
    uses = [
        use
        for use in context.store.uses(skill.name, _USES_READ)
        if use.version == skill.version and use.at > since and use.trace is not None
    ]
    if len(uses) < 2 * _FEW:
        return ""
    before = _times(_traces([use.trace for use in uses[-_FEW:]], context))
    after = _times(_traces([use.trace for use in uses[:_FEW]], context))
    said = [
        f"{tool} takes {after[tool]:.1f} s where it took {before[tool]:.1f} s"
        for tool in sorted(before.keys() & after.keys())
        if after[tool] >= SLOWER_TIMES * before[tool] and after[tool] - before[tool] >= SLOWER_SECONDS
    ]
    return " and ".join(said)


def _traces(ids: Sequence[str | None], context: Context) -> list[Trace]:
    found = [context.store.trace(trace_id) for trace_id in ids if trace_id is not None]
    return [trace for trace in found if trace is not None]


def _times(traces: Iterable[Trace]) -> dict[ToolId, float]:
    """Return the middle time of each tool's answered calls, in seconds."""
    seen: dict[ToolId, list[float]] = {}
    for trace in traces:
        for step in trace.steps:
            if step.tool is not None and step.outcome == "succeeded" and not step.from_memory:
                seen.setdefault(step.tool, []).append(step.seconds)
    return {tool: median(seconds) for tool, seconds in seen.items()}

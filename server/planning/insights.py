"""What earlier runs of a family of tasks showed: where to look first, and what commonly goes wrong.

Paper: FlowEvo (ALFWorld, L3 insight after three traces of a type; facts §3.7). Differs: rendered
without a model, and of fault classes, tools and the caller's own words alone, never of tool output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from catalog.tools import ToolId
from skills_store.trace import Trace

__all__ = ["LEAST_TRACES", "insights_of"]

LEAST_TRACES = 3
"""Runs of a family from which on they say something."""
_MOST_FAULTS = 2


def insights_of(family: Sequence[Trace]) -> tuple[str, ...]:
    """Return what the runs of a family have in common, each a sentence; nothing of fewer than three."""
    if len(family) < LEAST_TRACES:
        return ()
    return (*_where_to_look(family), *_common_faults(family))


def _where_to_look(family: Sequence[Trace]) -> Iterator[str]:
    right = [trace for trace in family if trace.status in ("verified", "succeeded")]
    ways = Counter(tuple(_tools(trace)) for trace in right)
    ways.pop((), None)
    if not ways:
        return
    way, count = min(ways.items(), key=lambda entry: (-entry[1], entry[0]))
    steps = ", then ".join(str(tool) for tool in way)
    yield f"When a task is like this one, begin with {steps}: {count} of {len(right)} runs came out right so."


def _common_faults(family: Sequence[Trace]) -> Iterator[str]:
    counts = Counter(place for trace in family for place in set(_faults(trace)))
    common = sorted(
        ((n, place) for place, n in counts.items() if n > 1), key=lambda entry: (-entry[0], entry[1])
    )
    for count, (kind, place) in common[:_MOST_FAULTS]:
        where = f" at {place}" if place else ""
        yield f"When a task is like this one, avoid {kind}{where}: {count} of {len(family)} runs had it."


def _tools(trace: Trace) -> list[ToolId]:
    """Return the tools of a run in the order in which they were first called."""
    called = sorted((step for step in trace.steps if step.tool is not None), key=lambda step: step.wave)
    return list(dict.fromkeys(step.tool for step in called if step.tool is not None))


def _faults(trace: Trace) -> Iterator[tuple[str, str]]:
    """Yield the classes of a run's own faults, each with the tool it was found at."""
    tools = {step.node: str(step.tool) for step in trace.steps if step.tool is not None}
    for fault in trace.faults:
        if fault.evidence == "workflow":
            yield fault.kind, tools.get(fault.node or "", "")

"""Equal calls of an exploration, with no change in between: which of them answered otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from server.exploration.observation import Observation

__all__ = ["differing_pairs", "equal_pairs", "volatile_tools"]


def volatile_tools(observations: Sequence[Observation], changing: Set[str]) -> frozenset[str]:
    """Return the tools of which two equal valid calls gave different answers with no change in between."""
    return frozenset(one.probe.tool.id.tool for one, _ in differing_pairs(observations, changing))


def differing_pairs(
    observations: Sequence[Observation], changing: Set[str]
) -> Iterator[tuple[Observation, Observation]]:
    """Yield equal valid calls that succeeded with different answers."""
    for one, two in equal_pairs(observations, changing):
        if one.succeeded and two.succeeded and one.output != two.output:
            yield one, two


def equal_pairs(
    observations: Sequence[Observation], changing: Set[str]
) -> Iterator[tuple[Observation, Observation]]:
    """Yield the first of equal valid calls with each later one, of one process without a change between."""
    first: dict[tuple[str, int], Observation] = {}
    changes = process = 0
    for call in observations:
        if changing and (call.session != process or call.probe.tool.id.tool in changing):
            changes, process = changes + 1, call.session
        if call.probe.breaks_schema:
            continue
        known = first.setdefault((call.probe.key, changes), call)
        if known is not call:
            yield known, call

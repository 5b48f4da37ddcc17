"""Chains of calls: which earlier answers and which earlier calls a call of an exploration stands on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from server.exploration.observation import Observation

__all__ = ["Chain", "chain_of", "tool_pair"]


@dataclass(frozen=True, slots=True)
class Chain:
    """The calls that a last call needs, in the order in which they were made."""

    steps: tuple[Observation, ...]

    @property
    def last(self) -> Observation:
        return self.steps[-1]

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools in order."""
        return tuple(step.probe.tool.id.tool for step in self.steps)

    @property
    def links(self) -> int:
        """Arguments that an earlier answer gave."""
        return sum(len(step.probe.origins) for step in self.steps)


def chain_of(last: Observation, observations: Sequence[Observation], extra: Sequence[int] = ()) -> Chain:
    """Return the chain that ends in an observation: what it read from, and what else it is said to need.

    Args:
        last: the end.
        observations: all, in order.
        extra: numbers of calls that are needed for their effect.
    """
    needed: set[int] = set()
    waiting = [last.number, *extra]
    while waiting:
        number = waiting.pop()
        if number not in needed:
            needed.add(number)
            origins = observations[number].probe.origins.values()
            waiting.extend(origin.observation for origin in origins)
    return Chain(tuple(observations[number] for number in sorted(needed)))


def tool_pair(source: Observation, target: Observation) -> tuple[str, str]:
    """Return the pair of tools that a link joins."""
    return source.probe.tool.id.tool, target.probe.tool.id.tool

"""Breadth first: every tool at least once, then every enum value, the boundaries, and what must be refused.

Paper: AgentEvolver (self-questioning, breadth; facts §4.2, §7). Differs: an algorithm rather than an
instruction to a model. A refusal that names what is allowed is learned from and the tool tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from pydantic import JsonValue

from catalog.result import FailureKind
from catalog.tools import Tool
from server.exploration.observation import Observation, Probe
from server.exploration.probes import boundary_probes, breaking_probes, enum_probes, typical_probes
from server.exploration.session import ExplorationSession
from server.exploration.values import KnownValues

__all__ = ["explore_breadth", "probe_details"]

_ATTEMPTS = 4
"""Typical calls of one tool in one turn."""
_TURNS = 3
"""Turns over the tools that never succeeded: what others answered meanwhile may help them."""
_GONE = frozenset({FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE})


async def explore_breadth(session: ExplorationSession) -> None:
    """Call every tool of the scope until it succeeds once or its attempts are used up.

    Raises:
        BudgetSpent: the budget ended first.
    """
    waiting = sorted(session.scope.allowed, key=_how_demanding)
    tried: set[str] = set()
    handles = Handles(session)
    for turn in range(_TURNS):
        attempts = 1 if turn == 0 else _ATTEMPTS
        waiting = [tool for tool in waiting if not await _first_success(tool, handles, tried, attempts)]
        if not waiting:
            return


async def probe_details(session: ExplorationSession) -> None:
    """Call the tools that succeeded once with each enum value, at boundaries, twice the same, and wrongly.

    One call of each tool before the second of any, so that a small budget reaches all of them.

    Raises:
        BudgetSpent: the budget ended first.
    """
    streams = [_details(first) for first in first_successes(session.observations)]
    hopeless: set[str] = set()
    for row in zip_longest(*streams):
        for probe in row:
            if probe is None or probe.tool.id.tool in hopeless:
                continue
            observation = await session.call(probe)
            _learn(observation, session.known)
            failure = observation.failure
            if failure is not None and failure.kind is FailureKind.TIMEOUT:
                hopeless.add(probe.tool.id.tool)


@dataclass
class Handles:
    """Gets values anew that an answer gave and that no longer work: what was opened has been closed."""

    session: ExplorationSession
    _tried: set[str] = field(default_factory=set[str])

    async def renew(self, failed: Observation) -> int:
        """Replace the values of a failed call that worked once and do so no longer.

        Returns: how many were replaced. It is asked once for each tool that failed with one.
        """
        renewed = 0
        for name, origin in failed.probe.origins.items():
            value = failed.probe.arguments[name]
            action = f"{failed.probe.tool.id.tool} {value!r}"
            if action in self._tried:
                continue
            self._tried.add(action)
            if not await self._is_dead(name, value):
                continue
            self.session.known.forget(value)
            source = self.session.observations[origin.observation]
            again = await self.session.call(Probe(source.probe.tool, source.probe.arguments, "again"))
            renewed += _learn(again, self.session.known)
        return renewed

    async def _is_dead(self, name: str, value: JsonValue) -> bool:
        """Return whether a call that worked with this value, best one that changes nothing, now fails."""
        used = (o for o in self.session.observations if name in o.probe.origins and o.succeeded)
        worked = [o for o in used if o.probe.arguments[name] == value]
        if not worked:
            return False
        changing = self.session.scope.changing
        first = min(worked, key=lambda o: o.probe.tool.id.tool in changing)
        again = await self.session.call(Probe(first.probe.tool, first.probe.arguments, "again"))
        return not again.succeeded


def first_successes(observations: Iterable[Observation]) -> list[Observation]:
    """Return the first successful call of each tool."""
    found: dict[str, Observation] = {}
    for observation in observations:
        if observation.succeeded and not observation.probe.breaks_schema:
            found.setdefault(observation.probe.tool.id.tool, observation)
    return list(found.values())


def _details(first: Observation) -> Iterator[Probe]:
    tool, worked = first.probe.tool, first.probe.arguments
    breaking, boundaries = breaking_probes(tool, worked), boundary_probes(tool, worked)
    yield Probe(tool, worked, "again")
    enums = enum_probes(tool, worked)
    for probes in zip_longest(breaking, enums, boundaries):
        yield from (probe for probe in probes if probe is not None)


def _how_demanding(tool: Tool) -> tuple[int, str]:
    required = tool.input_schema.get("required")
    return len(required) if isinstance(required, list) else 0, tool.id.tool


async def _first_success(tool: Tool, handles: Handles, tried: set[str], attempts: int) -> bool:
    session, made, lost = handles.session, 0, 0
    while made < attempts and lost < 2:
        fresh = [probe for probe in typical_probes(tool, session.known) if probe.key not in tried]
        if not fresh:
            return False
        observation = await session.call(fresh[0])
        tried.add(fresh[0].key)
        made += 1
        if _learn(observation, session.known):
            return True
        made -= await handles.renew(observation)
        failure = observation.failure
        lost += failure is not None and failure.kind in _GONE
    return lost >= 2


def _learn(observation: Observation, known: KnownValues) -> bool:
    """Take in what an answer says of good values; return whether the call succeeded."""
    probe = observation.probe
    if observation.succeeded:
        if not probe.breaks_schema and probe.kind != "boundary":  # what lies at an edge is no typical value
            known.learn_success(probe.arguments, observation.output, probe.origins)
        return True
    if observation.failure is not None and not probe.breaks_schema and probe.kind != "boundary":
        known.learn_refusal(probe.tool.id.tool, probe.arguments, observation.failure.message)
    return False

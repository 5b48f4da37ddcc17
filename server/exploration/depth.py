"""Depth first: answers into arguments they fit, pairs of tools that were not joined yet first.

Paper: AgentEvolver (self-questioning, depth; facts §4.2, §7). Differs: the next call is chosen by
what is unseen (a pair of tools), by types and by names; visited actions are never repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from catalog.effects import Reset
from catalog.schema import is_valid, types
from catalog.similarity import name_similarity
from catalog.tools import JsonSchema, Tool
from server.exploration.arguments import argument_schemas
from server.exploration.breadth import first_successes
from server.exploration.chains import chain_of, tool_pair
from server.exploration.lexicon import is_control
from server.exploration.observation import Observation, Origin, Probe
from server.exploration.scope import ExplorationScope
from server.exploration.session import ExplorationSession
from server.planning.leaves import leaves_of_value
from server.planning.likeness import GENERIC_KEYS

__all__ = ["DepthSearch", "Link", "feasible_pairs"]

_LIKE: Final = 0.55
_LINKS_KEPT: Final = 60
"""Of one answer, the nearest ones."""
_LONGEST_TEXT: Final = 2_000


@dataclass(frozen=True, slots=True)
class Link:
    """A place in an answer that fits an argument of a tool. `cost` orders them, cheapest first."""

    source: Observation
    pointer: str
    value: JsonValue
    tool: Tool
    argument: str
    cost: float

    @property
    def pair(self) -> tuple[str, str]:
        """The two tools it would join."""
        return self.source.probe.tool.id.tool, self.tool.id.tool


@dataclass
class DepthSearch:
    """Joins answers to arguments while the budget lasts.

    Attributes:
        joined: pairs of tools of which a successful call read the other's answer.
        tried: actions that were made already, by key.
    """

    session: ExplorationSession
    joined: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    attempted: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    tried: set[str] = field(default_factory=set[str])
    _links_of: dict[int, list[Link]] = field(default_factory=dict[int, list[Link]])

    async def run(self, calls: int) -> None:
        """Make up to so many chained calls; end early when nothing is left to join.

        Raises:
            BudgetSpent: the budget of the session ended first.
        """
        self.tried.update(observation.probe.key for observation in self.session.observations)
        self.joined.update(self.pairs_seen())
        for _ in range(calls):
            probe = self._next()
            if probe is None:
                return
            self.tried.add(probe.key)
            observation = await self.session.call(probe)
            self._take_in(observation)

    def pairs_seen(self) -> set[tuple[str, str]]:
        """Return the pairs of tools that any successful call has joined so far."""
        return {pair for o in self.session.observations if o.succeeded for pair in self._pairs(o)}

    def _take_in(self, observation: Observation) -> None:
        for pair in self._pairs(observation):
            self.attempted[pair] = self.attempted.get(pair, 0) + 1
            if observation.succeeded:
                self.joined.add(pair)
        if observation.succeeded:
            probe = observation.probe
            self.session.known.learn_success(probe.arguments, observation.output, probe.origins)

    def _pairs(self, observation: Observation) -> list[tuple[str, str]]:
        """Return the pairs of tools that a call joins."""
        by_number, origins = self.session.observations, observation.probe.origins.values()
        return [tool_pair(by_number[origin.observation], observation) for origin in origins]

    def _next(self) -> Probe | None:
        """Return the most promising call that was not made yet, None when there is none."""
        templates = {o.probe.tool.id.tool: o for o in first_successes(self.session.observations)}
        ranked = sorted(
            ((link.cost + self._staleness(link), place, link) for place, link in enumerate(self._links())),
            key=lambda entry: entry[:2],
        )
        for _, _, link in ranked:
            probe = self._probe(link, templates)
            if probe is not None and probe.key not in self.tried:
                return probe
        return None

    def _links(self) -> Iterator[Link]:
        """Yield the links that may be tried: a pair that failed three times and never held is given up."""
        for source in self._sources():
            if source.number not in self._links_of:
                scope = self.session.scope
                links = links_from(source, scope.allowed, keeps=not scope.is_stateless)
                found = sorted(links, key=lambda link: link.cost)
                self._links_of[source.number] = found[:_LINKS_KEPT]
            for link in self._links_of[source.number]:
                if link.pair in self.joined or self.attempted.get(link.pair, 0) < 3:
                    yield link

    def _sources(self) -> Iterator[Observation]:
        """Yield the answers to go on from: valid, in chains that may grow, of the process that runs."""
        is_stateful = self.session.scope.reset is not Reset.NONE
        for observation in self.session.observations:
            if not observation.succeeded or observation.probe.breaks_schema:
                continue
            if observation.probe.kind in ("boundary", "again"):
                continue
            if is_stateful and observation.session != self.session.number:
                continue
            if (
                len(chain_of(observation, self.session.observations).steps)
                < self.session.options.chain_length
            ):
                yield observation

    def _staleness(self, link: Link) -> float:
        """Return what a link costs for being like what was seen: pairs first, then longer chains."""
        again = 2.0 if link.pair in self.joined else 0.7 * self.attempted.get(link.pair, 0)
        return again + (0.0 if link.source.probe.origins else 0.1)

    def _probe(self, link: Link, templates: Mapping[str, Observation]) -> Probe | None:
        template = templates.get(link.tool.id.tool)
        if template is None:
            return None
        origin = Origin(link.source.number, link.pointer)
        arguments = {**self._varied(link, template), link.argument: link.value}
        return Probe(link.tool, arguments, "chained", link.argument, {link.argument: origin})

    def _varied(self, link: Link, template: Observation) -> dict[str, JsonValue]:
        """Return arguments that worked, numbers that the source had too replaced by others that may work."""
        given = dict(template.probe.arguments)
        used = list(link.source.probe.arguments.values())
        for name, value in template.probe.arguments.items():
            if name == link.argument or value not in used or not _is_plain_number(value):
                continue
            others = self.session.known.candidates(link.tool, name)
            given[name] = next((o for o in others if _is_plain_number(o) and o not in used), value)
            used.append(given[name])
        return given


def _is_plain_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def links_from(source: Observation, tools: tuple[Tool, ...], *, keeps: bool) -> Iterator[Link]:
    """Yield the places of an answer that fit an argument of a tool by type and, loosely, by name.

    What only says again what was asked is no answer to go on from, unless its server keeps what it was told.

    Args:
        source: a successful call.
        tools: whose arguments may be given.
        keeps: whether the server has state.
    """
    echoed = [] if keeps else _said(source.probe.arguments)
    for leaf in leaves_of_value(source.output):
        if leaf.value in (None, "", [], {}) or isinstance(leaf.value, bool) or leaf.value in echoed:
            continue
        if isinstance(leaf.value, str) and len(leaf.value) > _LONGEST_TEXT:
            continue
        for tool in tools:
            for name, schema in argument_schemas(tool).items():
                cost = _cost(leaf.key, leaf.value, name, schema)
                if cost is not None and source.probe.arguments.get(name) != leaf.value:
                    yield Link(source, leaf.pointer, leaf.value, tool, name, cost)


def _said(arguments: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return the values of a call, and the members of those that are lists."""
    members = [part for value in arguments.values() if isinstance(value, list) for part in value]
    return [*arguments.values(), *members]


def _cost(key: str, value: JsonValue, argument: str, schema: JsonSchema) -> float | None:
    """Return how far-fetched it is to give a value of this key to an argument, None where it does not fit."""
    if not schema or not types(schema) or not is_valid(schema, value):
        return None
    likeness = name_similarity(key, argument) if key else 0.0
    if likeness >= _LIKE:
        return 1 - likeness
    if isinstance(value, dict) or is_control(argument):
        return None
    is_number = isinstance(value, int | float) and bool(types(schema) & {"number", "integer"})
    if is_number and (key.lower() in GENERIC_KEYS or not key):
        return 0.5
    if is_number or isinstance(value, list):
        return 0.9
    has_choice = isinstance(schema.get("enum"), list)
    return 0.6 if has_choice else 1.6 if key.lower() in GENERIC_KEYS else None


def feasible_pairs(observations: list[Observation], scope: ExplorationScope) -> set[tuple[str, str]]:
    """Return the pairs of tools of which some seen answer of the first fits an argument of the second."""
    successes = [observation for observation in observations if observation.succeeded]
    ok = {observation.probe.tool.id.tool for observation in first_successes(observations)}
    return {
        link.pair
        for source in first_successes(successes)
        for link in links_from(source, scope.allowed, keeps=not scope.is_stateless)
        if link.tool.id.tool in ok
    }

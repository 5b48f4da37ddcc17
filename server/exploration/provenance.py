"""Where a value of a call came from: the earlier answer that named it before any call did.

A handle that a server gave out (a connection, an id) works only after the call that made it. Most
calls of an exploration are not chained on purpose, and still stand on such an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import JsonValue

from catalog.similarity import name_similarity
from server.exploration.arguments import is_handle
from server.exploration.observation import Observation, Origin, Probe
from server.exploration.values import KnownValues
from server.planning.leaves import Leaf, leaves_of_value

__all__ = ["Provenance"]

_SHORTEST: Final = 4
_LIKE: Final = 0.55


@dataclass
class Provenance:
    """Which answer first named each value, while one process lives; `known` tells what anybody tries."""

    known: KnownValues
    _named: dict[tuple[type, JsonValue], tuple[str, Origin]] = field(
        default_factory=dict[tuple[type, JsonValue], tuple[str, Origin]]
    )
    _given: set[tuple[type, JsonValue]] = field(default_factory=set[tuple[type, JsonValue]])

    def learn(self, observation: Observation) -> None:
        """Keep what a call was given, and what its answer named that none was given before."""
        self._given.update(_key(value) for value in _scalars(observation.probe.arguments))
        for leaf in leaves_of_value(observation.output):
            if _is_scalar(leaf.value) and (key := _key(leaf.value)) not in self._given:
                self._named.setdefault(key, (leaf.key, _origin(observation, leaf)))

    def traced(self, probe: Probe) -> Probe:
        """Return a probe with the origin of each value that can only have come from an answer."""
        found = {
            name: origin
            for name, value in probe.arguments.items()
            if name not in probe.origins and (origin := self._of(probe, name, value)) is not None
        }
        return replace(probe, origins={**probe.origins, **found}) if found else probe

    def forget(self) -> None:
        """Forget all: the process that gave the values out is gone."""
        self._named.clear()
        self._given.clear()

    def _of(self, probe: Probe, argument: str, value: JsonValue) -> Origin | None:
        if not _is_scalar(value) or _key(value) not in self._named:
            return None
        key, origin = self._named[_key(value)]
        if isinstance(value, str):
            is_told = len(value) < _SHORTEST or self.known.would_try(probe.tool, argument, value)
            return None if is_told else origin
        return origin if is_handle(key) and name_similarity(key, argument) >= _LIKE else None


def _origin(observation: Observation, leaf: Leaf) -> Origin:
    return Origin(observation.number, leaf.pointer)


def _scalars(value: JsonValue) -> Iterator[JsonValue]:
    match value:
        case dict():
            for part in value.values():
                yield from _scalars(part)
        case list():
            for part in value:
                yield from _scalars(part)
        case _:
            yield value


def _is_scalar(value: JsonValue) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _key(value: JsonValue) -> tuple[type, JsonValue]:
    return type(value), value

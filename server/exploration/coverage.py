"""How much of a server an exploration has seen: tools, pairs of tools, enum values, classes of errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from catalog.canonical import canonical_json
from server.exploration.arguments import argument_schemas
from server.exploration.breadth import first_successes
from server.exploration.depth import feasible_pairs
from server.exploration.observation import Observation, error_class
from server.exploration.probes import enum_values
from server.exploration.scope import ExplorationScope

__all__ = ["NOTHING_COVERED", "Coverage", "measure_coverage"]


class Coverage(BaseModel):
    """Counts of what was called, of what may be called. A call of any outcome counts as called."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: int
    """Tools that may be explored."""
    called: int
    succeeded: int
    """Tools of which at least one valid call succeeded."""
    withheld: int
    """Tools that were never called: what they do may not be repeated."""
    pairs: int
    """Pairs of tools of which a seen answer of one fits an argument of the other, by type and name."""
    joined: int
    """Pairs of which a call succeeded with the other's answer."""
    enum_values: int
    enum_values_tried: int
    errors: dict[str, int]
    """Failed calls by class."""
    never_succeeded: tuple[str, ...] = ()
    """Tools that were called and never succeeded."""


NOTHING_COVERED = Coverage(
    tools=0,
    called=0,
    succeeded=0,
    withheld=0,
    pairs=0,
    joined=0,
    enum_values=0,
    enum_values_tried=0,
    errors={},
)
"""Of a server that could not be reached."""


def measure_coverage(
    scope: ExplorationScope, observations: list[Observation], joined: Iterable[tuple[str, str]]
) -> Coverage:
    """Return the coverage of an exploration."""
    called = {observation.probe.tool.id.tool for observation in observations}
    succeeded = {observation.probe.tool.id.tool for observation in first_successes(observations)}
    pairs = feasible_pairs(observations, scope) | set(joined)
    values = {
        (tool.id.tool, name, canonical_json(value))
        for tool in scope.allowed
        for name, schema in argument_schemas(tool).items()
        for value in enum_values(schema)
    }
    tried = {
        (observation.probe.tool.id.tool, name, canonical_json(value))
        for observation in observations
        for name, value in observation.probe.arguments.items()
    }
    return Coverage(
        tools=len(scope.allowed),
        called=len(called),
        succeeded=len(succeeded),
        withheld=len(scope.withheld),
        pairs=len(pairs),
        joined=len(set(joined)),
        enum_values=len(values),
        enum_values_tried=len(values & tried),
        errors=dict(sorted(Counter(filter(None, map(error_class, observations))).items())),
        never_succeeded=tuple(sorted(called - succeeded)),
    )

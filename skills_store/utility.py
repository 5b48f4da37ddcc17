"""How well a skill did in use: counts, a smoothed rate, and how sure one can be of it.

World faults (timeout, unavailable) count as uses and say nothing about the skill. Deciding what
follows from a poor rate belongs to curation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["Interval", "Route", "Use", "UseCounts", "success_interval", "success_rate"]

Route = Literal["direct", "call", "seeded"]

TWO_SIDED_95_PERCENT = 1.959963984540054
"""Standard normal quantile of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a skill version. A `world_fault` is a failure the skill is not blamed for.

    Raises:
        ValueError: it succeeded and was stopped by the world at once.
    """

    skill: str
    version: int
    route: Route
    succeeded: bool
    world_fault: bool
    at: float
    """Unix seconds."""
    trace: str | None = None
    """Id of its trace, None when none was kept."""

    def __post_init__(self) -> None:
        if self.succeeded and self.world_fault:
            raise ValueError("a use that succeeded was not stopped by a world fault")


@dataclass(frozen=True, slots=True)
class UseCounts:
    """How often a skill was used, how often it succeeded, how often the world stood in the way.

    Raises:
        ValueError: the counts are no counts of the same uses.
    """

    uses: int = 0
    successes: int = 0
    world_faults: int = 0

    def __post_init__(self) -> None:
        if min(self.uses, self.successes, self.world_faults) < 0 or self.successes > self.judged:
            raise ValueError(f"impossible counts: {self}")

    @property
    def judged(self) -> int:
        """Uses that say something about the skill."""
        return self.uses - self.world_faults


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval inside [0, 1]."""

    low: float
    high: float


def success_rate(counts: UseCounts) -> float:
    """Return the smoothed success rate: 0.5 without evidence, never 0 or 1.

    Paper: FlowEvo (utility): success/use.
    Differs: one success and one failure are added (rule of succession), so that a single use
        neither crowns nor damns a skill; world faults are left out.
    """
    return (counts.successes + 1) / (counts.judged + 2)


def success_interval(counts: UseCounts, quantile: float = TWO_SIDED_95_PERCENT) -> Interval:
    """Return the Wilson score interval of the success rate, [0, 1] without evidence.

    Args:
        counts: uses so far.
        quantile: standard normal quantile of the confidence wanted, above 0.
    """
    trials = counts.judged
    if trials == 0:
        return Interval(0.0, 1.0)
    rate = counts.successes / trials
    square = quantile * quantile
    centre = rate + square / (2 * trials)
    reach = quantile * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials * trials))
    scale = 1 + square / trials
    low = 0.0 if counts.successes == 0 else max(0.0, (centre - reach) / scale)
    high = 1.0 if counts.successes == trials else min(1.0, (centre + reach) / scale)
    return Interval(low, high)

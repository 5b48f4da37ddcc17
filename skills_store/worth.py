"""What a skill is worth: how often it was right, by route, and what it saves against planning.

Explicit calls of a person or a client are counted apart: they were wanted whatever the skill is worth.
The world's faults count nowhere. Whether the skill harms is `contrast`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance

from skills_store.episodes import TaskEpisode
from skills_store.utility import Route, Use, UseCounts, success_interval, success_rate

__all__ = ["Cost", "Saving", "Worth", "cost_of", "worth_of"]

_QUANTILE = 1.959963984540054
_ASKED: Route = "call"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took."""

    tokens: float = 0
    calls: float = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Saving:
    """The mean saved by one use, with its 95 % interval; negative where it costs more."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Worth:
    """What a skill is worth."""

    unasked: UseCounts = field(default_factory=UseCounts)
    """Uses that the bank chose."""
    asked: UseCounts = field(default_factory=UseCounts)
    """Uses that somebody asked for by the skill's name."""
    by_route: tuple[tuple[Route, UseCounts], ...] = ()
    tokens: Saving | None = None
    """None without two costs of either kind to compare; the same for calls and seconds."""
    calls: Saving | None = None
    seconds: Saving | None = None
    compared: tuple[int, int] = (0, 0)
    """Uses and runs without the skill whose costs are compared."""

    @property
    def utility(self) -> float:
        """The smoothed success rate of all its uses, 0.5 without any."""
        return success_rate(self.all)

    @property
    def at_least(self) -> float:
        """Lower end of the 95 % interval of the success rate."""
        return success_interval(self.all).low

    @property
    def all(self) -> UseCounts:
        """Uses of every kind."""
        return UseCounts(
            self.unasked.uses + self.asked.uses,
            self.unasked.successes + self.asked.successes,
            self.unasked.world_faults + self.asked.world_faults,
        )


def worth_of(uses: Iterable[Use], own: Sequence[Cost], planned: Sequence[Cost]) -> Worth:
    """Return what a skill is worth.

    Paper: FlowEvo (utility): success/use, and tokens per solved task.
    Differs: smoothed with intervals; savings are means with intervals against what the family's runs
        without the skill took, and None where too little is known.

    Args:
        uses: of the skill.
        own: what its uses took.
        planned: what runs of its family without it took that came out right.
    """
    known = list(uses)
    routes: list[Route] = sorted({use.route for use in known})
    return Worth(
        unasked=_counted(use for use in known if use.route != _ASKED),
        asked=_counted(use for use in known if use.route == _ASKED),
        by_route=tuple((route, _counted(u for u in known if u.route == route)) for route in routes),
        tokens=_saving([cost.tokens for cost in own], [cost.tokens for cost in planned]),
        calls=_saving([cost.calls for cost in own], [cost.calls for cost in planned]),
        seconds=_saving([cost.seconds for cost in own], [cost.seconds for cost in planned]),
        compared=(len(own), len(planned)),
    )


def cost_of(episode: TaskEpisode) -> Cost:
    """Return what an episode took."""
    return Cost(episode.tokens, episode.calls, episode.seconds)


def _counted(uses: Iterable[Use]) -> UseCounts:
    known = list(uses)
    return UseCounts(len(known), sum(u.succeeded for u in known), sum(u.world_fault for u in known))


def _saving(own: Sequence[float], planned: Sequence[float]) -> Saving | None:
    """Return the difference of means with Welch's standard error."""
    if min(len(own), len(planned)) < 2:
        return None
    mean = fmean(planned) - fmean(own)
    reach = _QUANTILE * math.sqrt(variance(own) / len(own) + variance(planned) / len(planned))
    return Saving(mean, mean - reach, mean + reach)

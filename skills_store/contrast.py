"""Whether a skill does worse than its absence: a sequential test that may be looked at after every use.

A coin decides before each eligible episode whether the skill is withheld. If using it makes no
difference, or a good one, the outcomes tell nothing of how the coin fell, and whoever bets on the
coin given the outcome wins nothing in the long run. `Contrast.evidence` is the wealth of such a
bettor, who starts with 1: that it ever reaches 1/p has probability at most p (Ville). Only the coin
has to be fair: tasks may differ, get harder or repeat, and a look after every episode costs nothing.

Paper: FlowEvo (contrastive evaluation): 20 % of episodes withhold; suppress at a difference of rates
    below -0.1 with five guided and three unguided.
Differs: that rule is computed and shown and moves nothing, since it fires on most skills that make
    no difference; the coin is a hash, not a generator, and falls for the whole skill on every route;
    runs before admission size the bets, since no coin was thrown for them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from skills_store.episodes import TaskEpisode
from skills_store.utility import Interval, UseCounts, success_interval

__all__ = [
    "ERROR_RATE",
    "SHARE",
    "SUSPICION",
    "SUSPICIOUS_SHARE",
    "Contrast",
    "Trial",
    "contrast_of",
    "is_withheld",
    "share_for",
    "trials_of",
]

ERROR_RATE: Final = 0.01
"""Of a step against a skill that does no worse than its absence."""
SHARE: Final = 0.2
"""Part of the eligible episodes that does without the skill."""
SUSPICIOUS_SHARE: Final = 2 / 3
"""The same for a skill under suspicion: it is used less, and the question is settled sooner."""
SUSPICION: Final = 2.0
"""Evidence from which on a skill is under suspicion."""

_FAILURES_IN_A_ROW: Final = 2
_LEAST_WORSE: Final = 0.25
"""Smallest difference of rates that is bet on."""
_RATES: Final = tuple(0.05 + 0.1 * step for step in range(10))
_PAIRS: Final = tuple((g, c) for g in _RATES for c in _RATES if c - g >= _LEAST_WORSE - 1e-9)
"""Rates with the skill and without it that are thought possible where it harms."""
_PAPER_DELTA, _PAPER_GUIDED, _PAPER_UNGUIDED = -0.1, 5, 3


@dataclass(frozen=True, slots=True)
class Trial:
    """One episode of which a coin decided whether the skill was used.

    Raises:
        ValueError: the share is none that a coin has.
    """

    withheld: bool
    right: bool
    share: float
    """With which probability it was withheld."""
    stratum: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"a coin does not withhold with probability {self.share}")


@dataclass(frozen=True, slots=True)
class Contrast:
    """A skill beside its absence."""

    guided: UseCounts = field(default_factory=UseCounts)
    withheld: UseCounts = field(default_factory=UseCounts)
    before: UseCounts = field(default_factory=UseCounts)
    """Its family's episodes before it was admitted. They size the bets and decide nothing."""
    evidence: float = 1.0
    """Wealth of the bet that it harms; at `1 / error_rate` a step is taken."""
    most_evidence: float = 1.0
    """The most it ever was since the trials began: once enough is enough."""
    failures_in_a_row: int = 0
    error_rate: float = ERROR_RATE
    strata: tuple[tuple[str, UseCounts, UseCounts], ...] = ()
    """Trials with it and without it, by what makes them alike."""

    def after(self, trial: Trial) -> Contrast:
        """Return what is known one trial later."""
        with_it, without = _rates(self.guided, self.control)
        evidence = self.evidence * _odds(trial, with_it, without)
        known = {name: (guided, withheld) for name, guided, withheld in self.strata}
        pair = list(known.get(trial.stratum, (UseCounts(), UseCounts())))
        pair[trial.withheld] = _one_more(pair[trial.withheld], trial.right)
        known[trial.stratum] = (pair[0], pair[1])
        failed = not (trial.withheld or trial.right)
        return replace(
            self,
            guided=self.guided if trial.withheld else _one_more(self.guided, trial.right),
            withheld=_one_more(self.withheld, trial.right) if trial.withheld else self.withheld,
            evidence=evidence,
            most_evidence=max(self.most_evidence, evidence),
            failures_in_a_row=self.failures_in_a_row + failed if trial.withheld or failed else 0,
            strata=tuple((name, *both) for name, both in known.items()),
        )

    @property
    def delta(self) -> float | None:
        """Difference of rates within strata (Mantel-Haenszel), None before both arms have something."""
        total = weighted = 0.0
        for _, guided, withheld in self.strata:
            if guided.uses and withheld.uses:
                weight = guided.uses * withheld.uses / (guided.uses + withheld.uses)
                difference = guided.successes / guided.uses - withheld.successes / withheld.uses
                total, weighted = total + weight, weighted + weight * difference
        return weighted / total if total else None

    @property
    def is_worse(self) -> bool:
        """Whether it is shown to be worse than its absence, at the stated error rate."""
        return self.most_evidence >= 1 / self.error_rate

    @property
    def is_suspicious(self) -> bool:
        """Whether something speaks against it, which is no proof yet.

        One that was never wrong is not suspected, however the coin fell: that would cost its users most
        of its answers for nothing that it did.
        """
        has_failed = self.guided.successes < self.guided.uses
        return (has_failed and self.evidence >= SUSPICION) or self.failures_in_a_row >= _FAILURES_IN_A_ROW

    @property
    def control(self) -> UseCounts:
        """Episodes without it."""
        return UseCounts(
            self.withheld.uses + self.before.uses, self.withheld.successes + self.before.successes
        )

    @property
    def guided_interval(self) -> Interval:
        """The 95 % interval of its success rate in trials."""
        return success_interval(self.guided)

    @property
    def control_interval(self) -> Interval:
        """The 95 % interval of the success rate without it."""
        return success_interval(self.control)

    @property
    def paper_delta(self) -> float | None:
        """Guided rate less unguided rate, None below the paper's least counts."""
        if self.guided.uses < _PAPER_GUIDED or self.control.uses < _PAPER_UNGUIDED:
            return None
        return self.guided.successes / self.guided.uses - self.control.successes / self.control.uses

    @property
    def paper_would_suppress(self) -> bool:
        """What the paper's rule says; shown, and nothing follows from it."""
        return self.paper_delta is not None and self.paper_delta < _PAPER_DELTA


def contrast_of(
    trials: Iterable[Trial], before: Sequence[bool] = (), error_rate: float = ERROR_RATE
) -> Contrast:
    """Return what trials say of a skill.

    Args:
        trials: in the order they happened.
        before: of its family's episodes before it was admitted, whether each came out right.
        error_rate: probability of calling a harmless skill worse, in (0, 1).

    Raises:
        ValueError: no such error rate.
    """
    if not 0 < error_rate < 1:
        raise ValueError(f"an error rate is between 0 and 1, not {error_rate}")
    contrast = Contrast(before=UseCounts(len(before), sum(before)), error_rate=error_rate)
    for trial in trials:
        contrast = contrast.after(trial)
    return contrast


def share_for(contrast: Contrast, share: float = SHARE) -> float:
    """Return with which probability the next eligible episode withholds the skill; 0 withholds never."""
    return max(share, SUSPICIOUS_SHARE) if share > 0 and contrast.is_suspicious else share


def is_withheld(skill: str, version: int, number: int, task: str, share: float) -> bool:
    """Return how the coin falls for one episode: the same for the same arguments, like chance otherwise.

    Args:
        skill: its name.
        version: of the skill.
        number: of the episode among the skill's trials, from 0.
        task: in words.
        share: with which probability the skill is withheld.
    """
    said = f"{skill}@{version}\n{number}\n{task}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(said).digest()[:8]) < share * 2**64


def trials_of(episodes: Iterable[TaskEpisode]) -> list[Trial]:
    """Return the trials among a skill's episodes, the oldest first; the world's faults are none.

    Args:
        episodes: of one version, the newest first.
    """
    found = [
        Trial(episode.arm == "withheld", episode.outcome == "right", episode.share, episode.stratum)
        for episode in episodes
        if episode.arm is not None and episode.outcome != "world"
    ]
    return found[::-1]


def _odds(trial: Trial, with_it: float, without: float) -> float:
    """Return what a bet on the coin pays: fair, whatever the outcome, if the skill makes no difference."""
    chances = [rate if trial.right else 1 - rate for rate in (with_it, without)]
    return chances[trial.withheld] / ((1 - trial.share) * chances[0] + trial.share * chances[1])


def _rates(guided: UseCounts, control: UseCounts) -> tuple[float, float]:
    return _believed(guided.successes, guided.uses, control.successes, control.uses)


@lru_cache(maxsize=65_536)
def _believed(right: int, uses: int, control_right: int, control: int) -> tuple[float, float]:
    """Return the rates to bet on: those of a harmful skill, as far as is known."""
    logs = [
        right * math.log(g)
        + (uses - right) * math.log(1 - g)
        + control_right * math.log(c)
        + (control - control_right) * math.log(1 - c)
        for g, c in _PAIRS
    ]
    most = max(logs)
    weights = [math.exp(log - most) for log in logs]
    total = sum(weights)
    with_it = sum(w * g for w, (g, _) in zip(weights, _PAIRS, strict=True)) / total
    without = sum(w * c for w, (_, c) in zip(weights, _PAIRS, strict=True)) / total
    return with_it, without


def _one_more(counts: UseCounts, right: bool) -> UseCounts:
    return UseCounts(counts.uses + 1, counts.successes + right)

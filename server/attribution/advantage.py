"""The advantage of each step over a group of runs of one task: attribution and outcome, kept apart.

Paper: AgentEvolver (ADCA-GRPO, §3.3; facts §4.4). The attribution is standardised with every
trajectory weighing the same, the outcome over the group, both are summed with alpha, and a step has the
undiscounted sum of what follows. Differs: zero variance is neutral rather than divided by epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

__all__ = ["ALPHA", "Trajectory", "advantages", "standardised_attribution", "standardised_outcomes"]

ALPHA = 0.1
"""Weight of the attribution beside the outcome (paper: 0.10 to 0.20 best)."""
_EPSILON = 1e-8


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One run as training sees it: rewards of its steps (+1 good, -1 bad), and its outcome in [0, 1]."""

    rewards: tuple[float, ...]
    outcome: float


def advantages(group: Sequence[Trajectory], alpha: float = ALPHA) -> list[list[float]]:
    """Return the advantage of each step of each trajectory of one task.

    `A_ik = Σ_{j≥k} (alpha · attribution_ij + [j = K_i] · outcome_i)`, both standardised over the group.

    Raises:
        ValueError: a trajectory has no steps, or alpha is negative.
    """
    if alpha < 0 or any(not trajectory.rewards for trajectory in group):
        raise ValueError("advantages need steps in every trajectory and a weight of at least 0")
    attributed = standardised_attribution(group)
    outcomes = standardised_outcomes([trajectory.outcome for trajectory in group])
    found: list[list[float]] = []
    for steps, outcome in zip(attributed, outcomes, strict=True):
        composite = [alpha * step for step in steps]
        composite[-1] += outcome
        found.append(_suffix_sums(composite))
    return found


def standardised_attribution(group: Sequence[Trajectory]) -> list[list[float]]:
    """Return the step rewards standardised with equal trajectory weight; zeros where they do not vary."""
    if not group:
        return []
    mean = fmean(fmean(trajectory.rewards) for trajectory in group)
    variance = fmean(fmean((r - mean) ** 2 for r in trajectory.rewards) for trajectory in group)
    if variance <= _EPSILON:
        return [[0.0] * len(trajectory.rewards) for trajectory in group]
    deviation = math.sqrt(variance + _EPSILON)
    return [[(reward - mean) / deviation for reward in trajectory.rewards] for trajectory in group]


def standardised_outcomes(outcomes: Sequence[float]) -> list[float]:
    """Return outcomes standardised over the group; zeros where all are equal."""
    if not outcomes:
        return []
    mean = fmean(outcomes)
    deviation = math.sqrt(fmean((outcome - mean) ** 2 for outcome in outcomes))
    return [0.0 if deviation <= _EPSILON else (outcome - mean) / deviation for outcome in outcomes]


def _suffix_sums(values: Sequence[float]) -> list[float]:
    sums: list[float] = []
    total = 0.0
    for value in reversed(values):
        total += value
        sums.append(total)
    return sums[::-1]

"""The growth statistic of a search and the intensity that follows from it: numbers in, numbers out.

Paper: EvoFlux (growth and intensity; facts §1.5, from AdaEvolve). Differs: while the best score is 0 the
gain is the new score itself, every gain is clipped to [0, 1] (the public code divides by about nothing
and then sticks at the lowest intensity), and guidance waits for real stagnation: some generations
without a better candidate, never the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from server.evolution.options import SearchOptions

__all__ = ["Growth", "intensity"]


@dataclass(frozen=True, slots=True)
class Growth:
    """Where a search stands. Scores are in [0, 1]."""

    statistic: float = 0.0
    """G in [0, 1]: squared relative gains, smoothed."""
    best: float = 0.0
    """f*, the best score so far."""
    stale: int = 0
    """Generations since a better candidate."""
    cooldown: int = 0
    """Generations for which no guidance is given."""

    def scored(self, score: float, smoothing: float) -> Growth:
        """Return it after one more score.

        Args:
            score: in [0, 1].
            smoothing: weight of what was, in [0, 1].
        """
        gain = min(1.0, max(0.0, score if self.best <= 0 else (score - self.best) / self.best))
        statistic = smoothing * self.statistic + (1 - smoothing) * gain**2
        return replace(self, statistic=statistic, best=max(self.best, score))

    def passed(self, *, improved: bool) -> Growth:
        """Return it after a generation."""
        return replace(self, stale=0 if improved else self.stale + 1, cooldown=max(0, self.cooldown - 1))

    def guided(self, options: SearchOptions) -> Growth:
        """Return it after guidance was asked for: there is none again for a while."""
        return replace(self, cooldown=max(1, round(options.generations * options.cooldown)) + 1)

    def wants_guidance(self, options: SearchOptions) -> bool:
        """Return whether the search stagnates, and was not guided just before."""
        is_stagnant = self.stale >= max(1, options.stagnation_generations)
        return is_stagnant and self.cooldown == 0 and self.statistic < options.stagnation_threshold


def intensity(growth: Growth, options: SearchOptions) -> float:
    """Return the chance of exploring, within the bounds of the options; the faster the growth, the lower."""
    low, high = options.lowest_intensity, options.highest_intensity
    if not options.switches.growth_control:
        return (low + high) / 2
    return low + (high - low) / (1 + options.growth_weight * growth.statistic**0.5)

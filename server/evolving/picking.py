"""Which tasks a round practises: those of which the bank is least certain, user and synthetic ones mixed.

Paper: AgentEvolver (task-agent co-evolution, facts §4.2: mixture of original and synthetic tasks). Differs:
the ratio is of each round's picks; and a task is the more wanted the nearer its estimated success is to
one half, since what always succeeds or always fails says nothing about what to learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from server.evolving.practice import Instance, PracticeTask

__all__ = ["Standing", "pick"]


@dataclass
class Standing:
    """A task and how the bank has fared with it so far."""

    task: PracticeTask
    attempts: int = 0
    right: int = 0
    is_taught: bool = False
    """Whether its reference was learned from, or could not be."""
    examined: bool | None = None
    """Whether its exam came right; None: it was not held yet."""

    @property
    def estimate(self) -> float:
        """Estimated success in (0, 1); one half while nothing is known (rule of succession)."""
        return (self.right + 1) / (self.attempts + 2)

    @property
    def next_instance(self) -> Instance:
        """The practised instance whose turn it is."""
        return self.task.practised[self.attempts % len(self.task.practised)]

    @property
    def distance(self) -> float:
        """How far the estimate is from one half, in [0, 0.5)."""
        return abs(self.estimate - 0.5)


def pick(standings: Sequence[Standing], count: int, mix: float) -> list[Standing]:
    """Return the tasks of a round, user ones first; equal ones in the order they came, least tried first.

    Args:
        standings: all tasks there are.
        count: how many are wanted.
        mix: share of them that shall be the user's, in [0, 1].
    """
    ordered = sorted(standings, key=lambda one: (round(one.distance, 9), one.attempts))
    user = [one for one in ordered if not one.task.is_synthetic]
    synthetic = [one for one in ordered if one.task.is_synthetic]
    of_user = min(len(user), round(count * mix)) if synthetic else count
    of_user = max(of_user, min(len(user), count - len(synthetic)))
    chosen = user[:of_user]
    return [*chosen, *synthetic[: count - len(chosen)]]

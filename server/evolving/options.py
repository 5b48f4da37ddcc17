"""How a bank evolves: rounds, budget, tasks of each round, and how user tasks are mixed in."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["EvolveOptions"]


@dataclass(frozen=True, slots=True)
class EvolveOptions:
    """What a person decides about it."""

    rounds: int = 3
    budget_calls: int = 1_200
    """Calls in all rounds: exploring, checking, solving, teaching. What admission replays is beside it."""
    tasks: int = 6
    """Tasks picked in a round, and wanted of one server's exploration in a round."""
    attempts: int = 2
    """Attempts at each picked task in a round, each with other values as far as there are some."""
    mix: float = 0.5
    """Share of picked tasks that are the user's, in [0, 1]; where one kind has too few, the other fills."""
    seconds: float = 15.0
    """Of one attempt."""
    seed: int = 0
    """Of made-up values; each round explores with the next one."""
    calls_per_second: float = 50.0
    """Rate limit towards each server while it is explored."""
    call_timeout_seconds: float = 15.0
    """A call of exploring without an answer for so long counts as hung."""

    def __post_init__(self) -> None:
        if min(self.rounds, self.budget_calls, self.tasks, self.attempts) < 1:
            raise ValueError("rounds, calls, tasks and attempts are at least one each")
        if not 0 <= self.mix <= 1:
            raise ValueError(f"the share of user tasks is in [0, 1], not {self.mix}")
        for said, number in (
            ("seconds of an attempt", self.seconds),
            ("calls per second", self.calls_per_second),
            ("seconds of a call", self.call_timeout_seconds),
        ):
            if not 0 < number < math.inf:
                raise ValueError(f"{said} are a positive number, not {number}")

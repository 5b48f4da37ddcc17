"""How an exploration is carried out: budget, rate, kind of tasks, seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Difficulty", "ExplorationOptions"]

Difficulty = Literal[1, 2, 3]
"""1 one call; 2 several that do not depend on each other; 3 later ones stand on what earlier ones did.

Paper: AgentEvolver (relation_difficulty of the environment profile; facts §4.1).
"""


@dataclass(frozen=True, slots=True)
class ExplorationOptions:
    """What a person decides about an exploration."""

    budget_calls: int = 400
    """Calls in all: exploring and checking the tasks that come of it."""
    tasks: int = 12
    """Tasks wanted at most."""
    difficulty: Difficulty = 3
    """Of the hardest tasks; easier ones come too."""
    style: str = ""
    """How tasks shall be worded, for a model; without one it is not used, and that is said."""
    seed: int = 0
    calls_per_second: float = 50.0
    """Rate limit towards the server."""
    call_timeout_seconds: float = 15.0
    chain_length: int = 4
    """Calls of the longest chain that is tried."""

    most_calls: int | None = None
    """In one task, None: what its chain needs."""
    most_entities: int | None = None
    """That the tools of one task are about, None: any number."""
    background: str = ""
    """Who asks, for a model that words tasks; empty: anybody."""
    meanings: Mapping[str, str] = field(default_factory=dict[str, str])
    """What arguments mean, by name, in a person's words: examples in them are tried first."""

    def __post_init__(self) -> None:
        if self.budget_calls < 1 or self.tasks < 0:
            raise ValueError("an exploration needs at least one call and no negative tasks")
        if not 0 < self.calls_per_second < math.inf:
            raise ValueError(f"calls per second are a positive number, not {self.calls_per_second}")
        if not 0 < self.call_timeout_seconds < math.inf:
            raise ValueError(
                f"a call needs more than zero seconds and an end, not {self.call_timeout_seconds}"
            )

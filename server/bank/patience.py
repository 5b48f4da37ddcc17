"""How long a use case waits for servers before it goes on with what is stored of them.

A server that is slow, stuck or dead holds up nobody who does not need it: the tools it listed last
stand in, and it goes on connecting meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["FOR_ALL", "FOR_A_FIRST_LOOK", "FOR_A_LOOK", "Patience", "for_search"]

_STORED_SECONDS = 2.0
_UNKNOWN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds to wait for servers, by what is known of them."""

    stored: float = math.inf
    """For one whose tools are stored."""
    unknown: float = math.inf
    """For one that was never listed."""
    needed: float = math.inf
    """For one that must be there, whatever is stored."""
    servers: frozenset[str] = frozenset()
    """The ones that must be there."""

    def of(self, server: str, *, is_stored: bool) -> float:
        """Return how long to wait for a server."""
        if server in self.servers:
            return self.needed
        return self.stored if is_stored else self.unknown


FOR_ALL = Patience()
"""Each server is waited for until it is there or cannot be had."""

FOR_A_LOOK = Patience(stored=0.0, unknown=0.05)
"""For an answer from what is stored, with a moment for a server that was just added."""

FOR_A_FIRST_LOOK = Patience(unknown=_UNKNOWN_SECONDS)
"""For an answer where nothing is stored yet."""


def for_search(budget_seconds: float, needed: Collection[str] = ()) -> Patience:
    """Return the patience of a search that may take so long.

    Args:
        budget_seconds: what the search may take in all.
        needed: servers that its base plan calls.
    """
    return Patience(
        stored=min(_STORED_SECONDS, budget_seconds / 2),
        unknown=min(_UNKNOWN_SECONDS, budget_seconds / 2),
        needed=budget_seconds,
        servers=frozenset(needed),
    )

"""The seam of a search: a strategy says which candidates it wants and is told what became of them.

A strategy is synchronous and pure: no clock, no dice of its own, no I/O. Given the same options and
the same tells it asks for the same, so a search is taken up again by telling it its record. Carrying
out an order (asking a proposer, building, evaluating) is `server.evolution.driver`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from server.evolution.candidate import Candidate, Mode, Record

__all__ = ["Order", "Strategy"]


@dataclass(frozen=True, slots=True)
class Order:
    """One candidate that a strategy wants evaluated."""

    number: int
    """Counted from 0 within its strategy; names the order in a record and seeds what is drawn for it."""
    mode: Mode
    candidate: Candidate | None = None
    """Built already; None: proposers are asked for edits of the parent."""
    parent: Record | None = None
    """None only where `candidate` is given."""
    others: tuple[Record, ...] = ()
    """Further records the proposer may look at: whose edits are taken over, or what went worst."""
    generation: int = 0
    growth: float = 0.0
    """G as the order was given, in [0, 1]."""
    intensity: float = 0.0
    """I as the order was given, in [0, 1]."""
    seed: str = ""
    """For a generator of random numbers of this order's own."""


class Strategy(Protocol):
    """Ask/tell. Every order that was asked for is told exactly once, in any order."""

    @property
    def name(self) -> str:
        """One word, as it stands in a record."""
        ...

    def take(self, record: Record) -> None:
        """Take in a candidate that was evaluated before this strategy began, the base first."""
        ...

    def ask(self, count: int) -> Sequence[Order]:
        """Return up to `count` orders; none when it has nothing more to try, or waits to be told."""
        ...

    def tell(self, order: Order, record: Record | None) -> None:
        """Take in what became of an order; None: no new candidate came of it."""
        ...

"""What a search writes down as it goes, and what it knows of an earlier one: the seam to its record.

`server.evolution.record` keeps it in a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from server.evolution.candidate import Made, Record
from server.evolution.offspring import Child
from server.evolution.strategy import Order

__all__ = ["Journal", "NoJournal"]


class Journal(Protocol):
    """Keeps a search. What was written is safe when this returns; nothing is written twice."""

    def write(self, record: Record) -> bool:
        """Keep one candidate; return whether it was there already, from the search that is taken up."""
        ...

    def fruitless(self, made: Made, parent: Record | None, problems: Sequence[str]) -> None:
        """Keep an order that no candidate came of, and why."""
        ...

    def child(self, strategy: str, order: Order) -> Child | None:
        """Return what came of an order in the search that is taken up; None: it was not reached."""
        ...

    def ended(self, strategy: str) -> int | None:
        """Return after how many records a strategy made way in the search that is taken up, if it did."""
        ...


class NoJournal:
    """Keeps nothing."""

    def write(self, record: Record) -> bool:
        """Return False."""
        del record
        return False

    def fruitless(self, made: Made, parent: Record | None, problems: Sequence[str]) -> None:
        """Keep nothing."""
        del made, parent, problems

    def child(self, strategy: str, order: Order) -> Child | None:
        """Return None."""
        del strategy, order
        return None

    def ended(self, strategy: str) -> int | None:
        """Return None."""
        del strategy
        return None

"""Running the base again, as it is: what no repair at all comes to. For comparison only."""

from __future__ import annotations

from dataclasses import dataclass, field

from server.evolution.building import base_candidate
from server.evolution.candidate import Record
from server.evolution.options import SearchOptions
from server.evolution.strategy import Order
from skills_store.workflow.model import Workflow

__all__ = ["RetryOnly"]


@dataclass
class RetryOnly:
    """A `Strategy` that asks for the base a bounded number of times.

    Answers of free tools come from memory where it is on, and what is not free is never repeated: only
    what the world did can come out otherwise.
    """

    base: Workflow
    options: SearchOptions = field(default_factory=SearchOptions)
    name: str = "retry"
    _asked: int = 0
    _waits: bool = False

    def take(self, record: Record) -> None:
        """Count the base as run."""
        if record.candidate.parent is None:
            self._asked = max(1, self._asked)

    def ask(self, count: int) -> list[Order]:
        """Return the base, one order at a time."""
        if self._waits or not count or self._asked > self.options.retries:
            return []
        number, self._asked, self._waits = self._asked, self._asked + 1, True
        return [Order(number, "retry" if number else "base", base_candidate(self.base))]

    def tell(self, order: Order, record: Record | None) -> None:
        """Go on with the next."""
        del order, record
        self._waits = False

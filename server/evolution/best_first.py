"""The ladder: edits chosen by what is wrong, the likeliest first. Synchronous, no clock, no dice.

Best first by the sum of edit costs and the distance still to go. Paper: EvoFlux (Algorithm 2).
Differs: deterministic proposals ordered by evidence instead of random ones; a candidate is built
only when its turn comes, exact duplicates never twice; one whose faults are only the world's is
not "repaired".
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from server.evolution.building import base_candidate, build_candidate
from server.evolution.candidate import Candidate, Record, fittest
from server.evolution.options import SearchOptions
from server.evolution.proposal import Proposal
from server.evolution.strategy import Order
from skills_store.workflow.edits import EditRefused
from skills_store.workflow.model import Workflow

__all__ = ["BestFirst", "Proposes"]

Proposes = Callable[[Record], Sequence[Proposal]]
"""From an evaluated candidate to edits that answer its faults, the cheapest first."""


@dataclass(frozen=True, slots=True)
class _Expansion:
    """An evaluated candidate whose proposals were not asked for yet."""

    record: Record


@dataclass(frozen=True, slots=True)
class _Child:
    """A candidate that was proposed and not built yet."""

    parent: Record
    proposal: Proposal


@dataclass
class BestFirst:
    """A `Strategy` over typed edits of one base workflow."""

    base: Workflow
    propose: Proposes
    options: SearchOptions = field(default_factory=SearchOptions)
    name: str = "ladder"
    records: list[Record] = field(default_factory=list[Record])
    _queue: list[tuple[float, int, _Expansion | _Child]] = field(
        default_factory=list[tuple[float, int, _Expansion | _Child]]
    )
    _seen: set[str] = field(default_factory=set[str])
    _pushed: int = 0
    _asked: int = 0

    def take(self, record: Record) -> None:
        """Build upon what was evaluated before, unless it is right already."""
        self._seen.add(record.candidate.id)
        self.records.append(record)
        is_right = record.evaluation.status == "verified"
        if not is_right and record.candidate.depth < self.options.max_depth:
            self._push(self._priority(record, 0.0), _Expansion(record))

    def ask(self, count: int) -> list[Order]:
        """Return up to `count` orders of built candidates, none when the space is exhausted."""
        if not self._asked and not self.records:
            return [self._ordered(base_candidate(self.base), None)] if count else []
        picked: list[Order] = []
        while self._queue and len(picked) < count:
            _, _, entry = heapq.heappop(self._queue)
            match entry:
                case _Expansion():
                    self._expand(entry.record)
                case _Child():
                    child = _built(entry)
                    if child is not None and child.id not in self._seen:
                        picked.append(self._ordered(child, entry.parent))
        return picked

    def tell(self, order: Order, record: Record | None) -> None:
        """Take in what became of an order."""
        del order
        if record is not None:
            self.take(record)

    def _ordered(self, candidate: Candidate, parent: Record | None) -> Order:
        self._seen.add(candidate.id)
        number, self._asked = self._asked, self._asked + 1
        return Order(number, "ladder" if parent else "base", candidate, parent, generation=candidate.depth)

    def _expand(self, record: Record) -> None:
        for proposal in self.propose(record):
            priority = self._priority(record, proposal.cost, anew=proposal.anew)
            self._push(priority, _Child(record, proposal))

    def _priority(self, record: Record, cost: float, *, anew: bool = False) -> float:
        left = 0.0 if anew else max(0.0, record.evaluation.unmet - 1.0)
        return record.candidate.cost + cost + self.options.distance_weight * left

    def _push(self, priority: float, entry: _Expansion | _Child) -> None:
        self._pushed += 1
        heapq.heappush(self._queue, (priority, self._pushed, entry))

    @property
    def best(self) -> Record:
        """The fittest record so far, the cheapest edits and then the earliest among equals.

        Raises:
            ValueError: nothing was told yet.
        """
        return fittest(self.records)


def _built(entry: _Child) -> Candidate | None:
    """Return the candidate, or None when an edit is refused."""
    try:
        return build_candidate(entry.parent.candidate, entry.proposal)
    except EditRefused:
        return None

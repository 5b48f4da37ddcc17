"""The search: ask for candidates, tell what became of them. Synchronous, no clock, no dice.

Best first by the sum of edit costs and the distance still to go. Paper: EvoFlux (Algorithm 2).
Differs: deterministic proposals ordered by evidence instead of random ones; a candidate is built
only when its turn comes, exact duplicates never twice; one whose faults are only the world's is
not "repaired".
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from server.evolution.candidate import Candidate, Evaluation
from server.evolution.proposal import Proposal
from skills_store.workflow.edits import EditRefused, apply_edit
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow

__all__ = ["BestFirst", "Proposer", "Record", "SearchOptions"]


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Bounds of the search that do not depend on the budget.

    `distance_weight` trades edit cost (nats) against one unmet node; measured on damaged plans.
    """

    distance_weight: float = 0.4
    max_depth: int = 12


@dataclass(frozen=True, slots=True)
class Record:
    """One evaluated candidate."""

    candidate: Candidate
    evaluation: Evaluation


Proposer = Callable[[Record], Sequence[Proposal]]
"""From an evaluated candidate to edits that answer its faults, the cheapest first."""


@dataclass(frozen=True, slots=True)
class _Expansion:
    """An evaluated candidate whose proposals were not asked for yet."""

    record: Record


@dataclass(frozen=True, slots=True)
class _Child:
    """A candidate that was proposed and not built yet."""

    parent: Candidate
    proposal: Proposal


@dataclass
class BestFirst:
    """Ask/tell over typed edits of one base workflow. Deterministic given the tells."""

    base: Workflow
    propose: Proposer
    options: SearchOptions = field(default_factory=SearchOptions)
    records: list[Record] = field(default_factory=list[Record])
    _queue: list[tuple[float, int, _Expansion | _Child]] = field(
        default_factory=list[tuple[float, int, _Expansion | _Child]]
    )
    _seen: set[str] = field(default_factory=set[str])
    _pushed: int = 0

    def first(self) -> Candidate:
        """Return the base as the candidate to begin with."""
        candidate = Candidate(content_hash(self.base), self.base)
        self._seen.add(candidate.id)
        return candidate

    def ask(self, count: int) -> list[Candidate]:
        """Return up to `count` candidates to evaluate next, none when the space is exhausted."""
        picked: list[Candidate] = []
        while self._queue and len(picked) < count:
            _, _, entry = heapq.heappop(self._queue)
            match entry:
                case _Expansion():
                    self._expand(entry.record)
                case _Child():
                    child = _built(entry)
                    if child is not None and child.id not in self._seen:
                        self._seen.add(child.id)
                        picked.append(child)
        return picked

    def tell(self, candidate: Candidate, evaluation: Evaluation, *, final: bool = False) -> None:
        """Take in what became of a candidate; a final one is not built upon."""
        record = Record(candidate, evaluation)
        self.records.append(record)
        if not final and candidate.depth < self.options.max_depth:
            self._push(self._priority(record, 0.0), _Expansion(record))

    def _expand(self, record: Record) -> None:
        for proposal in self.propose(record):
            self._push(self._priority(record, proposal.cost), _Child(record.candidate, proposal))

    def _priority(self, record: Record, cost: float) -> float:
        left = max(0.0, record.evaluation.unmet - 1.0)
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
        if not self.records:
            raise ValueError("no candidate was evaluated yet")
        places = range(len(self.records))
        return self.records[max(places, key=self._rank)]

    def _rank(self, place: int) -> tuple[object, ...]:
        record = self.records[place]
        return (record.evaluation.fitness, -record.candidate.cost, -place)


def _built(entry: _Child) -> Candidate | None:
    """Return the candidate, or None when an edit is refused."""
    parent, workflow = entry.parent, entry.parent.workflow
    try:
        for edit in entry.proposal.edits:
            workflow = apply_edit(workflow, edit)
    except EditRefused:
        return None
    return Candidate(
        id=content_hash(workflow),
        workflow=workflow,
        edits=(*parent.edits, *entry.proposal.edits),
        last=entry.proposal.edits,
        parent=parent.id,
        cost=parent.cost + entry.proposal.cost,
        depth=parent.depth + 1,
    )

"""The search: ask for candidates, tell what became of them. Synchronous, no clock, no dice.

Best first by the sum of edit costs and the distance still to go. Paper: EvoFlux (Algorithm 2).
Differs: deterministic proposals ordered by evidence instead of random ones; exact duplicates are
never built twice; a candidate whose faults are only the world's is not "repaired".
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from server.evolution.candidate import Candidate, Evaluation
from server.evolution.proposal import Proposal
from skills_store.workflow.edits import EditRefused, apply_edit
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow

__all__ = ["BestFirst", "Record", "SearchOptions"]


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Bounds of the search that do not depend on the budget.

    `distance_weight` trades edit cost (nats) against one unmet node; measured on damaged plans.
    """

    distance_weight: float = 0.7
    max_depth: int = 12
    max_children: int = 160


@dataclass(frozen=True, slots=True)
class Record:
    """One evaluated candidate."""

    candidate: Candidate
    evaluation: Evaluation


@dataclass
class BestFirst:
    """Ask/tell over typed edits of one base workflow. Deterministic given the tells."""

    base: Workflow
    options: SearchOptions = field(default_factory=SearchOptions)
    records: list[Record] = field(default_factory=list[Record])
    _queue: list[tuple[float, int, Candidate]] = field(default_factory=list[tuple[float, int, Candidate]])
    _seen: set[str] = field(default_factory=set[str])
    _pushed: int = 0

    def __post_init__(self) -> None:
        self._push(Candidate(content_hash(self.base), self.base), 0.0)

    def ask(self, count: int) -> list[Candidate]:
        """Return up to `count` candidates to evaluate next, none when the space is exhausted."""
        picked: list[Candidate] = []
        while self._queue and len(picked) < count:
            picked.append(heapq.heappop(self._queue)[2])
        return picked

    def tell(self, candidate: Candidate, evaluation: Evaluation, proposals: Sequence[Proposal]) -> None:
        """Take in what became of a candidate and the proposals that answer its faults."""
        self.records.append(Record(candidate, evaluation))
        if candidate.depth >= self.options.max_depth:
            return
        for proposal in proposals[: self.options.max_children]:
            child = self._child(candidate, proposal)
            if child is not None:
                left = max(0.0, evaluation.unmet - 1.0)
                self._push(child, child.cost + self.options.distance_weight * left)

    def _child(self, parent: Candidate, proposal: Proposal) -> Candidate | None:
        workflow = parent.workflow
        try:
            for edit in proposal.edits:
                workflow = apply_edit(workflow, edit)
        except EditRefused:
            return None
        return Candidate(
            id=content_hash(workflow),
            workflow=workflow,
            edits=(*parent.edits, *proposal.edits),
            last=proposal.edits,
            parent=parent.id,
            cost=parent.cost + proposal.cost,
            depth=parent.depth + 1,
        )

    def _push(self, candidate: Candidate, priority: float) -> None:
        if candidate.id in self._seen:
            return
        self._seen.add(candidate.id)
        self._pushed += 1
        heapq.heappush(self._queue, (priority, self._pushed, candidate))

    @property
    def best(self) -> Record:
        """The fittest record so far, the cheapest edits and then the earliest among equals.

        Raises:
            ValueError: nothing was told yet.
        """
        if not self.records:
            raise ValueError("no candidate was evaluated yet")
        order = [
            ((record.evaluation.fitness, -record.candidate.cost, -place), record)
            for place, record in enumerate(self.records)
        ]
        return max(order, key=lambda pair: pair[0])[1]

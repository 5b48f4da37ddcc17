"""The seam of proposing: from an order and what may be seen of its parent to edits.

Whoever implements it sees a `View`, never an assertion's literals, and draws from the generator it is
given. Which proposer answers which order is `Proposers`; building and checking what they propose is
the driver's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from server.evolution.building import build_candidate
from server.evolution.evaluate import Hints
from server.evolution.proposal import Proposal
from server.evolution.propose import propose
from server.evolution.strategy import Order
from server.planning.view import View
from skills_store.workflow.edits import Edit, EditRefused

__all__ = [
    "Asked",
    "CrossingProposer",
    "FaultProposer",
    "HintProposer",
    "Offer",
    "Proposer",
    "Proposers",
]


@dataclass(frozen=True)
class Asked:
    """What a proposer is asked: edits of the parent of an order."""

    order: Order
    """Its parent is there."""
    view: View
    """Of the parent. Without evidence (an ablation) it has no faults and no answers of tools."""
    draw: Random
    """The order's own; nothing else may be drawn from."""
    tabu: tuple[str, ...] = ()
    """Readable edits that were tried on this parent already and did not make it right."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a proposer came up with."""

    proposals: Sequence[Proposal] = ()
    """The most promising first; the first that makes a new candidate is taken."""
    tokens: int = 0
    """Of a model, spent on it."""
    problems: tuple[str, ...] = ()
    """Why there are none, or what was wrong with some: for the record."""
    failure: str | None = None
    """What kept the proposer itself from working, such as a model that is not there; None: nothing."""


class Proposer(Protocol):
    """Proposes edits.

    Expected failure is an empty offer with its problems; a model that cannot answer is one. Every
    proposal is typed by the schemas there are, keeps checks and declared outputs, and gives no tool an
    argument that its schema does not declare (`server.evolution.soundness` says so of any edits).
    """

    @property
    def name(self) -> str:
        """One word, as it stands in a record."""
        ...

    async def propose(self, asked: Asked) -> Offer:
        """Return edits of the order's parent."""
        ...


@dataclass(frozen=True)
class Proposers:
    """Who answers which kind of order: each is asked in turn until one makes a new candidate."""

    explore: Sequence[Proposer] = ()
    exploit: Sequence[Proposer] = ()
    cross: Sequence[Proposer] = ()
    meta: Sequence[Proposer] = ()

    def of(self, order: Order) -> Sequence[Proposer]:
        """Return who is asked for an order that is not built yet."""
        match order.mode:
            case "explore":
                return self.explore
            case "cross":
                return (*self.cross, *self.exploit)
            case "meta":
                return self.meta
            case _:
                return (*self.exploit, *self.explore)


@dataclass(frozen=True, slots=True)
class FaultProposer:
    """Deterministic edits by fault class: the ladder's, one parent at a time."""

    name: str = "faults"

    async def propose(self, asked: Asked) -> Offer:
        """Return the ladder's proposals for the parent, the likeliest first."""
        found = propose(asked.view)
        return Offer(found, problems=() if found else ("no fault that an edit answers",))


@dataclass(frozen=True, slots=True)
class HintProposer:
    """Edits that experience suggests."""

    hints: Hints
    name: str = "experience"

    async def propose(self, asked: Asked) -> Offer:
        """Return what experience says, as it ranks it."""
        found = tuple(self.hints.edits(asked.view))
        return Offer(found, problems=() if found else ("no experience of anything like it",))


@dataclass(frozen=True, slots=True)
class CrossingProposer:
    """Edits of another survivor that can be made on the parent too."""

    cost: float = 1.0
    name: str = "crossover"

    async def propose(self, asked: Asked) -> Offer:
        """Return the other's whole list of edits, as far as each can be made."""
        parent = asked.order.parent
        assert parent is not None
        taken: list[Proposal] = []
        for other in asked.order.others:
            candidate, kept = parent.candidate, list[Edit]()
            for edit in other.candidate.edits:
                try:
                    candidate = build_candidate(candidate, Proposal((edit,), 0.0))
                except EditRefused:
                    continue
                kept.append(edit)
            if kept:
                taken.append(Proposal(tuple(kept), self.cost))
        return Offer(taken, problems=() if taken else ("none of the other's edits can be made",))

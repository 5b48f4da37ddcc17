"""Carrying out an order that is not built yet: proposers are asked in turn for a child nobody has seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random

from server.evolution.building import build_candidate
from server.evolution.candidate import Candidate, Record
from server.evolution.credit import credited
from server.evolution.evaluate import Evaluator
from server.evolution.options import Switches
from server.evolution.proposal import Proposal
from server.evolution.proposer import Asked, Offer, Proposers
from server.evolution.soundness import brought_faults, undeclared_arguments
from server.evolution.strategy import Order
from skills_store.workflow.edits import EditRefused, render_edit

__all__ = ["Child", "Offspring"]

_TABU = 6
"""Latest attempts on a parent that a proposer is told of."""


@dataclass(frozen=True, slots=True)
class Child:
    """What came of an order: a candidate to evaluate, or why there is none."""

    candidate: Candidate | None
    by: str = ""
    tokens: int = 0
    problems: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    """What kept proposers themselves from working."""
    replayed: bool = False
    """Whether it is known from an earlier search, and its tokens were spent then."""


@dataclass
class Offspring:
    """Makes children for one search; no workflow is made twice."""

    evaluator: Evaluator
    proposers: Proposers
    switches: Switches
    seen: set[str] = field(default_factory=set[str])
    """Ids of all candidates there are."""
    tried: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Readable edits by the parent they were tried on."""
    records: list[Record] = field(default_factory=list[Record])
    """What was evaluated, in order: who credits edits looks at it."""

    def note(self, record: Record) -> None:
        """Remember what was evaluated."""
        candidate = record.candidate
        self.records.append(record)
        self.seen.add(candidate.id)
        if candidate.parent is not None and record.evaluation.status != "verified":
            said = "; ".join(render_edit(edit) for edit in candidate.last)
            self.tried.setdefault(candidate.parent, []).append(said)

    async def offers(self, order: Order) -> list[tuple[str, Offer]]:
        """Return what proposers offer for an order, until one offers something that could be built.

        Nothing is claimed yet, so that several orders can be asked for at once.
        """
        found: list[tuple[str, Offer]] = []
        for proposer in self.proposers.of(order):
            offer = self._ordered(order, await proposer.propose(self._asked(order)))
            found.append((proposer.name, offer))
            if self._first(order, offer.proposals)[0] is not None:
                break
        return found

    def _ordered(self, order: Order, offer: Offer) -> Offer:
        """Return an offer with the edits first that credit speaks for, where it is on; draws stay draws."""
        if not self.switches.attribution or order.mode != "exploit" or order.parent is None:
            return offer
        moved = credited(offer.proposals, order.parent, self.records)
        return replace(offer, proposals=sorted(moved, key=lambda proposal: proposal.cost))

    def claimed(self, order: Order, offers: Iterable[tuple[str, Offer]]) -> Child:
        """Return the first child of an order's offers that nobody has seen, which is seen from now on."""
        tokens, problems, names, failures = 0, list[str](), list[str](), list[str]()
        for name, offer in offers:
            tokens += offer.tokens
            names.append(name)
            failures += [offer.failure] if offer.failure else []
            candidate, why = self._first(order, offer.proposals)
            problems += [f"{name}: {problem}" for problem in (*offer.problems, *why)]
            if candidate is not None:
                self.seen.add(candidate.id)
                return Child(candidate, name, tokens, tuple(problems), tuple(failures))
        return Child(None, "+".join(names), tokens, tuple(problems), tuple(failures))

    def _asked(self, order: Order) -> Asked:
        assert order.parent is not None
        parent = order.parent
        view = self.evaluator.view(parent.candidate, parent.evaluation, evidence=self.switches.evidence)
        tabu = tuple(self.tried.get(parent.candidate.id, ())[-_TABU:])
        return Asked(order, view, Random(order.seed), tabu if self.switches.evidence else ())

    def _first(self, order: Order, proposals: Iterable[Proposal]) -> tuple[Candidate | None, list[str]]:
        """Return the first new candidate, and why those before it were refused."""
        assert order.parent is not None
        refused: list[str] = []
        for proposal in proposals:
            try:
                candidate = build_candidate(order.parent.candidate, proposal)
            except EditRefused as error:
                refused.append(str(error))
                continue
            if candidate.id in self.seen:
                continue
            if fault := self._refusal(order, candidate):
                refused.append(fault)
                continue
            return candidate, refused
        return None, refused

    def _refusal(self, order: Order, candidate: Candidate) -> str | None:
        """Return what a child may not bring; one that explores may not bring any new static fault."""
        assert order.parent is not None
        look = brought_faults if order.mode == "explore" else undeclared_arguments
        found = look(
            order.parent.candidate.workflow,
            candidate.workflow,
            self.evaluator.world.snapshot,
            self.evaluator.signatures,
        )
        return found[0].message if found else None

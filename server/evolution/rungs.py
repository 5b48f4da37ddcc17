"""What a search is made of, by its options: which strategies in which order, and who proposes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from server.backends.backend import Backend
from server.evolution.best_first import BestFirst
from server.evolution.candidate import Record
from server.evolution.credit import credited
from server.evolution.evaluate import Evaluator, Hints
from server.evolution.guidance import ModelReplanner, Replanner
from server.evolution.journal import Journal
from server.evolution.model_edits import ModelProposer
from server.evolution.options import SearchOptions
from server.evolution.population import Greedy, Population
from server.evolution.proposal import Proposal
from server.evolution.propose import propose
from server.evolution.proposer import CrossingProposer, FaultProposer, HintProposer, Proposers
from server.evolution.random_edits import RandomProposer
from server.evolution.retry import RetryOnly
from server.evolution.strategy import Strategy
from server.planning.conversation import MeteredBackend
from server.requests import Budget
from skills_store.workflow.model import Workflow

__all__ = ["Rung", "proposers_of", "rungs_of"]


@dataclass(frozen=True)
class Rung:
    """One strategy of a search, and how much of each budget is spent when it must make way."""

    strategy: Strategy
    share: float = 1.0
    limit: int | None = None
    """Records after which it makes way, as it did in the search that is taken up again; None: no bound."""


def rungs_of(
    base: Workflow, evaluator: Evaluator, options: SearchOptions, journal: Journal, *, has_editor: bool
) -> list[Rung]:
    """Return the strategies of a search, each beginning with the records of those before it."""

    def proposes(record: Record) -> Sequence[Proposal]:
        evidence = options.switches.evidence
        view = evaluator.view(record.candidate, record.evaluation, evidence=evidence)
        told = evaluator.hints.edits(view) if evaluator.hints is not None and evidence else ()
        found = [*told, *propose(view)]
        return credited(found, record, ladder.records) if options.switches.attribution else found

    bred: list[Rung] = []
    match options.strategy:
        case "retry":
            return [Rung(RetryOnly(base, options))]
        case "population":
            bred = [Rung(Population(base, options))]
        case "greedy":
            bred = [Rung(Greedy(base, options))]
        case "auto":
            bred = [Rung(Population(base, options))] if has_editor else []
        case "ladder":
            pass
    if bred and not options.ladder_first:
        return bred
    share = options.ladder_share if bred else 1.0
    limit = journal.ended("ladder") if bred else None
    ladder = BestFirst(base, proposes, options)
    return [Rung(ladder, share, limit), *bred]


def proposers_of(
    evaluator: Evaluator,
    options: SearchOptions,
    budget: Budget,
    editor: Backend | None,
    hints: Hints | None,
) -> Proposers:
    """Return who answers which kind of order: what experience and a model say before what rules say."""
    drawn = RandomProposer(options.explored_edits)
    exploiting = [HintProposer(hints)] if hints is not None else []
    guiding = [Replanner()]
    if editor is None or not budget.tokens:
        return Proposers(
            explore=(drawn,),
            exploit=(*exploiting, FaultProposer(), drawn),
            cross=(CrossingProposer(),),
            meta=(*guiding, drawn),
        )
    model = MeteredBackend(editor, budget.tokens)
    return Proposers(
        explore=(drawn,),
        exploit=(*exploiting, ModelProposer(model, evaluator, options), FaultProposer(), drawn),
        cross=(CrossingProposer(),),
        meta=(ModelReplanner(model, evaluator), *guiding, drawn),
    )

"""The driver of a search: carries out what strategies order, within a budget, and tells them.

Paper: EvoFlux (execution-guided search). Differs: finished calls are never repeated, several
candidates are evaluated at once, the deterministic ladder goes before the population, and the first
verified candidate is tidied before it is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio

from server.backends.backend import Backend
from server.evolution.candidate import Evaluation, Made, Record, fittest
from server.evolution.evaluate import Evaluator, Hints
from server.evolution.journal import Journal, NoJournal
from server.evolution.offspring import Child, Offspring
from server.evolution.options import SearchOptions
from server.evolution.proposer import Offer
from server.evolution.removals import propose_unasked_removals
from server.evolution.rungs import Rung, proposers_of, rungs_of
from server.evolution.strategy import Order, Strategy
from server.evolution.tidy import tidied
from server.requests import Budget
from skills_store.workflow.faults import Denied
from skills_store.workflow.model import Workflow

__all__ = ["Progress", "SearchResult", "search"]

_SECOND_THOUGHTS = 100
"""Candidates still looked at once one verified that drops an input."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a search stands: for a progress line, not for decisions."""

    candidates: int
    calls: int
    best_score: float
    """Reported score of the best so far, in [0, 1]."""
    faults_left: int
    trying: str
    strategy: str = "ladder"
    generation: int | None = None
    """None where a strategy has none."""
    intensity: float | None = None
    tokens: int = 0


@dataclass(frozen=True)
class SearchResult:
    """The best candidate with the whole record. `stopped` names the budget that ended the search."""

    best: Record
    base: Record
    records: tuple[Record, ...]
    calls: int
    stopped: str | None = None
    tokens: int = 0
    """Of a model, spent on proposals."""
    replayed: int = 0
    """Records that were taken over from an earlier search and not evaluated again."""
    problems: tuple[str, ...] = ()
    """What kept a model from proposing, each once."""


@dataclass
class _Search:
    base: Workflow
    evaluator: Evaluator
    budget: Budget
    rungs: Sequence[Rung]
    offspring: Offspring
    listener: Callable[[Progress], None]
    journal: Journal
    width: int
    started: float = 0.0
    calls_before: int = 0
    records: list[Record] = field(default_factory=list[Record])
    tokens: int = 0
    problems: dict[str, None] = field(default_factory=dict[str, None])
    verified_at: float = math.inf
    """Candidates evaluated when the first one verified."""
    replayed: int = 0
    _best: Record | None = None

    @property
    def spent_calls(self) -> int:
        return self.evaluator.episode.calls - self.calls_before

    @property
    def spent_candidates(self) -> int:
        return len(self.records) - self.replayed

    @property
    def best(self) -> Record:
        if self._best is None:
            raise ValueError("no candidate was evaluated yet")
        return self._best

    def spent(self, share: float = 1.0) -> str | None:
        """Return which budget is spent to a share in (0, 1], None while all last."""
        if anyio.current_time() >= self.started + share * self.budget.seconds:
            return "seconds"
        if self.spent_calls >= share * self.budget.calls:
            return "calls"
        return "candidates" if self.spent_candidates >= share * self.budget.candidates else None

    async def run(self) -> SearchResult:
        self.evaluator.call_limit = self.calls_before + self.budget.calls
        stopped: str | None = None
        with anyio.move_on_at(self.started + self.budget.seconds) as scope:
            stopped = await self._until_done()
        if scope.cancelled_caught:
            stopped = "seconds"
        if not self.records:
            raise TimeoutError("the budget ended before the original could be evaluated")
        return SearchResult(
            best=self.best,
            base=self.records[0],
            records=tuple(self.records),
            calls=self.spent_calls,
            stopped=stopped,
            tokens=self.tokens,
            replayed=self.replayed,
            problems=tuple(self.problems),
        )

    async def _until_done(self) -> str | None:
        stopped: str | None = None
        for rung in self.rungs:
            for record in self.records:
                rung.strategy.take(record)
            stopped = await self._climbed(rung)
            if self._is_settled() or self._is_hopeless() or self.spent():
                break
        if self.best.evaluation.status != "verified":
            return stopped
        await self._tidy()
        return None

    async def _climbed(self, rung: Rung) -> str | None:
        """Return which budget ended a rung, None when it ended by itself."""
        while not self.records or not (self._is_settled() or self._is_hopeless()):
            if self.records and (spent := self.spent(rung.share)):
                return spent
            if rung.limit is not None and len(self.records) >= rung.limit:
                return None
            left = max(1, self.budget.candidates - self.spent_candidates)
            orders = rung.strategy.ask(min(self.width, left))
            if not orders:
                return None
            await self._round(rung.strategy, orders)
        return None

    def _is_settled(self) -> bool:
        """Return whether the best is right, or has been for a while without keeping every input in use.

        An answer that no longer depends on an input may be right by chance.
        """
        best = self.best.evaluation
        if best.status != "verified":
            return False
        self.verified_at = min(self.verified_at, len(self.records))
        return best.fitness.keeps_inputs or len(self.records) - self.verified_at >= _SECOND_THOUGHTS

    def _is_hopeless(self) -> bool:
        """Return whether only the world or the policy stands in the way, which no edit mends.

        What the policy holds back in a node that an edit brought is that edit's fault, and what a plan
        may do without can be left out.
        """
        best = self.best
        faults = best.evaluation.faults
        planned = {(node.id, node.tool) for node in self.base.nodes}
        is_hopeless = bool(faults) and all(
            fault.evidence == "world" or (isinstance(fault, Denied) and (fault.node, fault.tool) in planned)
            for fault in faults
        )
        return is_hopeless and not any(
            propose_unasked_removals(self.evaluator.view(best.candidate, best.evaluation))
        )

    async def _round(self, strategy: Strategy, orders: Sequence[Order]) -> None:
        """Make and evaluate what was ordered, all at once, and tell it in the order it was asked for."""
        children = await self._children(strategy, orders)
        found: dict[int, Evaluation] = {}

        async def evaluate(order: Order) -> None:
            candidate = children[order.number].candidate
            assert candidate is not None
            found[order.number] = await self.evaluator.evaluate(candidate)

        built = [(o, c) for o in orders if (c := children[o.number].candidate) is not None]
        alone = [order for order, made in built if not self.evaluator.may_repeat(made.workflow)]
        async with anyio.create_task_group() as group:
            for order, _ in built:
                if order not in alone:
                    group.start_soon(evaluate, order)
        for order in alone:  # which of two would make a call that happens once is not left to chance
            await evaluate(order)
        for order in orders:
            self._tell(strategy, order, children[order.number], found.get(order.number))

    async def _children(self, strategy: Strategy, orders: Sequence[Order]) -> dict[int, Child]:
        offers: dict[int, list[tuple[str, Offer]]] = {}

        async def ask(order: Order) -> None:
            offers[order.number] = await self.offspring.offers(order)

        children: dict[int, Child] = {}
        async with anyio.create_task_group() as group:
            for order in orders:
                if order.candidate is not None:
                    children[order.number] = Child(order.candidate)
                elif (known := self.journal.child(strategy.name, order)) is not None:
                    children[order.number] = known
                    self.offspring.seen.update([known.candidate.id] if known.candidate else ())
                else:
                    group.start_soon(ask, order)
        for order in orders:  # claimed one after the other, so that two never make the same child
            if order.number not in children:
                children[order.number] = self.offspring.claimed(order, offers[order.number])
        return children

    def _tell(self, strategy: Strategy, order: Order, child: Child, evaluation: Evaluation | None) -> None:
        self.tokens += 0 if child.replayed else child.tokens
        self.problems |= dict.fromkeys(child.failures)
        made = Made(
            number=order.number,
            strategy=strategy.name,
            mode=order.mode,
            by=child.by,
            generation=order.generation,
            growth=order.growth,
            intensity=order.intensity,
            tokens=child.tokens,
        )
        if child.candidate is None or evaluation is None:
            self.journal.fruitless(made, order.parent, child.problems)
            strategy.tell(order, None)
            return
        record = Record(child.candidate, evaluation, made)
        self.evaluator.remember(child.candidate, evaluation)
        self._keep(record)
        strategy.tell(order, record)

    def _keep(self, record: Record) -> None:
        self.records.append(record)
        self._best = record if self._best is None else fittest([self._best, record])
        self.offspring.note(record)
        if self.journal.write(record):
            self.replayed += 1
        best, made = self.best.evaluation, record.made
        trying = "; ".join(edit.because or edit.kind for edit in record.candidate.last)
        is_bred = made.mode not in ("base", "ladder", "retry", "tidy")
        self.listener(
            Progress(
                candidates=len(self.records),
                calls=self.spent_calls,
                best_score=best.score,
                faults_left=len(best.faults),
                trying=trying or "the workflow as given",
                strategy=made.strategy,
                generation=made.generation if is_bred else None,
                intensity=made.intensity if is_bred else None,
                tokens=self.tokens,
            )
        )

    async def _tidy(self) -> None:
        best = self.best
        if self.spent() or not best.candidate.edits:
            return
        known = {record.candidate.id for record in self.records}
        async for record in tidied(best, self.base, self.evaluator, known):
            self._keep(record)
            if self.spent():
                return


async def search(
    base: Workflow,
    evaluator: Evaluator,
    budget: Budget,
    *,
    listener: Callable[[Progress], None] = lambda _: None,
    width: int = 3,
    options: SearchOptions | None = None,
    editor: Backend | None = None,
    hints: Hints | None = None,
    journal: Journal | None = None,
) -> SearchResult:
    """Return the best workflow reachable from a base by typed edits within a budget.

    The base is always evaluated, as far as the budget of calls lets it run. Cancelling it cancels the
    calls under way; what was evaluated until then is in the journal.

    Args:
        base: what every candidate is an edit of.
        evaluator: of its task. Its episode shares memory and ledger between all candidates.
        budget: seconds, calls, candidates and a model's tokens; tokens spent end no search, they only
            leave the model out from then on.
        listener: told after every candidate.
        width: candidates evaluated at once.
        options: strategy, seed, constants and what is switched off; None: all at their defaults.
        editor: a model that proposes edits; None: none does.
        hints: what experience suggests; None: what the evaluator has of it.
        journal: keeps every candidate, and knows what an earlier search has done already; None: nowhere.

    Raises:
        TimeoutError: the budget of seconds ended before the base was evaluated.
    """
    chosen, kept = options or SearchOptions(), journal or NoJournal()
    running = _Search(
        base=base,
        evaluator=evaluator,
        budget=budget,
        rungs=rungs_of(base, evaluator, chosen, kept, has_editor=editor is not None),
        offspring=Offspring(
            evaluator,
            proposers_of(evaluator, chosen, budget, editor, hints or evaluator.hints),
            chosen.switches,
        ),
        listener=listener,
        journal=kept,
        width=width,
        started=anyio.current_time(),
        calls_before=evaluator.episode.calls,
    )
    return await running.run()

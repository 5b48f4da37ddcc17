"""The driver of a search: evaluates what the strategy asks for, within a budget, and tells it.

Paper: EvoFlux (execution-guided search). Differs: finished calls are never repeated, several
candidates are evaluated at once, and the first verified one is tidied before it is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio

from server.evolution.candidate import Candidate, Evaluation
from server.evolution.evaluate import Evaluator
from server.evolution.proposal import Proposal
from server.evolution.propose import propose
from server.evolution.strategy import BestFirst, Record, SearchOptions
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
    """Rule score of the best so far, in [0, 1]."""
    faults_left: int
    trying: str


@dataclass(frozen=True)
class SearchResult:
    """The best candidate with the whole record. `stopped` names the budget that ended the search."""

    best: Record
    base: Record
    records: tuple[Record, ...]
    calls: int
    stopped: str | None = None


@dataclass
class _Search:
    evaluator: Evaluator
    budget: Budget
    strategy: BestFirst
    listener: Callable[[Progress], None]
    width: int
    deadline: float = 0.0
    calls_before: int = 0
    records: list[Record] = field(default_factory=list[Record])
    verified_at: float = math.inf
    """Candidates evaluated when the first one verified."""

    @property
    def spent_calls(self) -> int:
        return self.evaluator.episode.calls - self.calls_before

    def spent(self) -> str | None:
        """Return which budget is spent, None while all last."""
        if anyio.current_time() >= self.deadline:
            return "seconds"
        if self.spent_calls >= self.budget.calls:
            return "calls"
        return "candidates" if len(self.records) >= self.budget.candidates else None

    async def run(self) -> SearchResult:
        self.evaluator.call_limit = self.calls_before + self.budget.calls
        stopped: str | None = None
        with anyio.move_on_at(self.deadline) as scope:
            stopped = await self._until_done()
        if scope.cancelled_caught:
            stopped = "seconds"
        if not self.records:
            raise TimeoutError("the budget ended before the original could be evaluated")
        return SearchResult(
            self.strategy.best, self.records[0], tuple(self.records), self.spent_calls, stopped
        )

    async def _until_done(self) -> str | None:
        await self._round([self.strategy.first()])
        stopped = await self._until_settled()
        if self.strategy.best.evaluation.status != "verified":
            return stopped
        await self._tidy()
        return None

    async def _until_settled(self) -> str | None:
        """Return which budget ended the search, None when it ended by itself."""
        while not self._is_settled() and not self._is_hopeless():
            if spent := self.spent():
                return spent
            batch = self.strategy.ask(min(self.width, self.budget.candidates - len(self.records)))
            if not batch:
                return None
            await self._round(batch)
        return None

    def _is_settled(self) -> bool:
        """Return whether the best is right, or has been for a while without keeping every input in use.

        An answer that no longer depends on an input may be right by chance.
        """
        best = self.strategy.best.evaluation
        if best.status != "verified":
            return False
        self.verified_at = min(self.verified_at, len(self.records))
        return best.fitness.keeps_inputs or len(self.records) - self.verified_at >= _SECOND_THOUGHTS

    def _is_hopeless(self) -> bool:
        """Return whether only the world or the policy stands in the way, which no edit mends.

        What the policy holds back in a node that an edit brought is that edit's fault.
        """
        best = self.strategy.best
        planned = {(node.id, node.tool) for node in self.strategy.base.nodes}
        return bool(best.evaluation.faults) and all(
            fault.evidence == "world" or (isinstance(fault, Denied) and (fault.node, fault.tool) in planned)
            for fault in best.evaluation.faults
        )

    async def _round(self, batch: list[Candidate]) -> None:
        found: dict[str, Evaluation] = {}

        async def evaluate(candidate: Candidate) -> None:
            found[candidate.id] = await self.evaluator.evaluate(candidate)

        alone = [candidate for candidate in batch if not self.evaluator.may_repeat(candidate.workflow)]
        async with anyio.create_task_group() as group:
            for candidate in batch:
                if candidate not in alone:
                    group.start_soon(evaluate, candidate)
        for candidate in alone:  # which of two would make a call that happens once is not left to chance
            await evaluate(candidate)
        for candidate in batch:
            self._tell(candidate, found[candidate.id])

    def _tell(self, candidate: Candidate, evaluation: Evaluation) -> None:
        self.records.append(Record(candidate, evaluation))
        self.evaluator.remember(candidate, evaluation)
        self.strategy.tell(candidate, evaluation, final=evaluation.status == "verified")
        best = self.strategy.best.evaluation
        trying = "; ".join(edit.because or edit.kind for edit in candidate.last) or "the workflow as given"
        self.listener(
            Progress(len(self.records), self.spent_calls, best.fitness.rule_score, len(best.faults), trying)
        )

    async def _tidy(self) -> None:
        best = self.strategy.best
        if self.spent() or not best.candidate.edits:
            return
        known = {record.candidate.id for record in self.records}
        async for record in tidied(best, self.strategy.base, self.evaluator, known):
            self.records.append(record)
            self.strategy.tell(record.candidate, record.evaluation, final=True)
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
) -> SearchResult:
    """Return the best workflow reachable from a base by typed edits within a budget.

    The base is always evaluated, as far as the budget of calls lets it run.

    Raises:
        TimeoutError: the budget of seconds ended before the base was evaluated.
    """

    def proposer(record: Record) -> Sequence[Proposal]:
        return propose(evaluator.view(record.candidate, record.evaluation))

    running = _Search(
        evaluator=evaluator,
        budget=budget,
        strategy=BestFirst(base, proposer, options or SearchOptions()),
        listener=listener,
        width=width,
        deadline=anyio.current_time() + budget.seconds,
        calls_before=evaluator.episode.calls,
    )
    return await running.run()

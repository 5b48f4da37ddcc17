"""Climbing the ladder of a solve with a model: cheap first, one level after the other.

Paper: FlowEvo (adaptive escalation; facts §3). Differs: see `server.planning.escalation`. A level
begins only while something of every budget is left; a model that cannot answer is left out from
then on and told in the report, and the planner without a model takes over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import anyio

from server.backends.backend import Backend
from server.backends.errors import BackendError
from server.bank.context import Context
from server.bank.episode.plan_search import first_right, is_right, rank_of
from server.bank.episode.repairing import Repaired, search_from
from server.evolution.evaluate import Evaluator
from server.planning.choosing import by_promise
from server.planning.conversation import MeteredBackend, TokensSpent
from server.planning.escalation import LEVELS, MODEL_LEVELS, Level, LevelReport
from server.planning.model_planner import ModelPlanner
from server.planning.needless import without_needless
from server.planning.plan_reading import PlanReading
from server.planning.prompt import describe_faults
from server.planning.sequence import in_sequence
from server.planning.view import View
from server.progress import Progress
from server.requests import Budget
from skills_store.trace import Status
from skills_store.workflow.check import check_workflow
from skills_store.workflow.faults import Fault
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow

__all__ = ["Climb", "report_of"]

_MODEL_SHARE = 0.7
"""Part of the seconds left that one answer of a model may take."""
_SAMPLES = 2
_TEMPERATURE = 0.5
_REPAIR_CANDIDATES = 120
"""Candidates of one plan's deterministic repair, before a model is asked again."""
_REPAIR_SHARE = 0.35


@dataclass
class Climb:
    """One task's way up the ladder. `climb` runs it; the rest is what came of it."""

    planner: ModelPlanner
    model: MeteredBackend
    """What the planner asks, with the budget of tokens as its limit."""
    evaluator: Evaluator
    budget: Budget
    context: Context
    without_model: Sequence[Workflow] = ()
    """Plans made without a model, the most promising first: more bases for evolution."""
    is_planned: bool = False
    """Whether the episode has a base plan already."""
    levels: list[LevelReport] = field(default_factory=list[LevelReport])
    best: Repaired | None = None
    solved_by: Level | None = None
    problem: str | None = None
    """What kept the model from answering."""
    calls: int = 0
    candidates: int = 0
    _plans: list[Workflow] = field(default_factory=list[Workflow])
    _seen: set[str] = field(default_factory=set[str])
    _unread: tuple[Fault, ...] = ()
    _deadline: float = 0.0

    async def climb(self) -> None:
        """Try level after level until a plan is right, a budget is spent, or nothing is left to try."""
        self._deadline = anyio.current_time() + self.budget.seconds
        steps: dict[Level, Callable[[], Awaitable[int]]] = {
            "plan": self._plan,
            "repair": self._repair,
            "sample": self._sample,
            "evolve": self._evolve,
            "reflect": self._reflect,
        }
        for level in LEVELS:
            await self._level(level, steps[level])
            if self.best is not None and is_right(self.best.report):
                self.solved_by = level
                return
            if self._is_hopeless():
                return

    async def _level(self, level: Level, step: Callable[[], Awaitable[int]]) -> None:
        if note := self._left_out(level):
            self.levels.append(LevelReport(level=level, status=self._status, note=note))
            return
        self.context.progress(Progress("plan", _DOING[level]))
        started, turns = anyio.current_time(), len(self.model.turns)
        calls, candidates, plans, note = self.calls, self.candidates, 0, ""
        try:
            plans = await step()
        except TokensSpent as error:
            note = str(error)
        except BackendError as error:
            self.problem = note = str(error)
        answered = self.model.turns[turns:]
        prices = [turn.completion.cost_usd for turn in answered]
        self.levels.append(
            LevelReport(
                level=level,
                status=self._status,
                plans=plans,
                tokens=sum(turn.completion.usage.total for turn in answered),
                calls=self.calls - calls,
                candidates=self.candidates - candidates,
                seconds=anyio.current_time() - started,
                cost_usd=sum(p for p in prices if p is not None) if prices and None not in prices else None,
                note=note,
            )
        )

    def _left_out(self, level: Level) -> str:
        """Return why a level is not begun, empty when it is."""
        if self.spent:
            return f"the budget of {self.spent} is spent"
        if level in MODEL_LEVELS and self.problem is not None:
            return "the model does not answer"
        if level == "repair" and not self._plans:
            return "there is no plan to repair"
        if level == "reflect" and self.best is None and not self._plans:
            return "there is no plan to reflect on"
        return ""

    @property
    def spent(self) -> str | None:
        """Which budget is spent, None while all last."""
        left = self._left
        parts = {"seconds": left.seconds, "calls": left.calls, "candidates": left.candidates}
        return next((name for name, amount in parts.items() if amount <= 0), None)

    @property
    def unread_message(self) -> str:
        """What was wrong with the last answer that held no plan, empty when none was."""
        return f"the model gave no plan: {describe_faults(self._unread)}" if self._unread else ""

    @property
    def _left(self) -> Budget:
        return Budget(
            seconds=max(0.0, self._deadline - anyio.current_time()),
            calls=max(0, self.budget.calls - self.calls),
            candidates=max(0, self.budget.candidates - self.candidates),
            tokens=max(0, self.budget.tokens - self.model.usage.total),
        )

    @property
    def _status(self) -> Status | None:
        return self.best.report.status if self.best is not None else None

    @property
    def _seconds_to_answer(self) -> float:
        return max(0.1, _MODEL_SHARE * self._left.seconds)

    def _is_hopeless(self) -> bool:
        """Return whether only the world, or a person's leave, stands in the way."""
        if self.best is None:
            return False
        faults = self.best.report.faults
        is_world = bool(faults) and all(fault.evidence == "world" for fault in faults)
        return is_world or self.best.report.status == "needs_approval"

    async def _plan(self) -> int:
        return await self._tried("plan", await self.planner.propose(deadline_seconds=self._seconds_to_answer))

    async def _repair(self) -> int:
        await self._search("repair", self._plans[0], _part(self._left))
        return 0

    async def _sample(self) -> int:
        readings = await self.planner.propose(
            temperature=_TEMPERATURE,
            n=_SAMPLES,
            deadline_seconds=self._seconds_to_answer,
            faults=self._unread,
        )
        before = len(self._plans)
        plans = await self._tried("sample", readings)
        for plan in self._plans[before:]:
            if self.best is None or not is_right(self.best.report):
                await self._search("sample", plan, _part(self._left))
        return plans

    async def _evolve(self) -> int:
        """Search from every plan, those made without a model too; something is kept for a reflection."""
        bases = [*by_promise(self._plans, self.evaluator.world, self.planner.wanted), *self.without_model]
        if not bases:
            return 0
        self._begin(bases[0])
        share = self._left if self.problem is not None else _most(self._left)
        editor = None if self.problem is not None else await self._editor()
        found, calls, candidates = await first_right(
            bases, self.evaluator, share, self.context, "evolve", editor=editor
        )
        self.calls, self.candidates = self.calls + calls, self.candidates + candidates
        self._take(found)
        return 0

    async def _editor(self) -> Backend | None:
        """Return the model that edits: the planner's own, metered with it, unless another is configured."""
        models = self.context.models
        if models.spec("editor") == models.spec("planner"):
            return self.model
        try:
            return await models.backend("editor")
        except BackendError as error:
            self.context.progress(Progress("repair", f"no model edits: {error}"))
            return None

    async def _reflect(self) -> int:
        readings = await self.planner.reflect(self._failed(), deadline_seconds=self._seconds_to_answer)
        before = len(self._plans)
        plans = await self._tried("reflect", readings)
        for plan in self._plans[before:]:
            if self.best is None or not is_right(self.best.report):
                await self._search("reflect", plan, self._left)
        return plans

    async def _tried(self, level: Level, readings: Sequence[PlanReading]) -> int:
        """Run plans as they are, the most promising first, until one is right; return how many there were."""
        world, wanted = self.evaluator.world, self.planner.wanted
        given = [reading.workflow for reading in readings if reading.workflow is not None]
        read = [in_sequence(without_needless(plan, world), world) for plan in given]
        self._unread = tuple(fault for reading in readings for fault in reading.faults)
        fresh: list[Workflow] = []
        for plan in by_promise(read, world, wanted):
            identity = content_hash(plan)
            if identity not in self._seen:
                self._seen.add(identity)
                fresh.append(plan)
        self._plans += fresh
        for plan in fresh:
            if self._left.seconds <= 0 or self._left.calls <= 0:
                break
            await self._search(level, plan, replace(self._left, candidates=1))
            if self.best is not None and is_right(self.best.report):
                break
        return len(read)

    async def _search(self, level: Level, plan: Workflow, budget: Budget) -> None:
        if min(budget.seconds, budget.calls, budget.candidates) <= 0:
            return
        self._begin(plan)
        found = await search_from(plan, self.evaluator, budget, self.context, level)
        self.calls += found.report.calls
        self.candidates += found.report.candidates
        self._take(found)

    def _begin(self, plan: Workflow) -> None:
        """Name the base plan of the episode, before the first candidate."""
        if not self.is_planned:
            self.is_planned = True
            self.evaluator.episode.set_plan(plan, self.context.skill_workflow)

    def _take(self, found: Repaired) -> None:
        if self.best is None or rank_of(found.report) > rank_of(self.best.report):
            self.best = found

    def _failed(self) -> View:
        """Return the best plan so far as a proposer may see it."""
        world = self.evaluator.world
        report = self.best.report if self.best is not None else None
        workflow = Workflow.model_validate(report.workflow) if report and report.workflow else self._plans[0]
        faults = report.faults if report else tuple(check_workflow(workflow, world.snapshot))
        outputs = (
            {step.node: step.output for step in report.trace if step.outcome == "succeeded"} if report else {}
        )
        return View(world, workflow, outputs=outputs, faults=faults)


def report_of(climb: Climb) -> Repaired | None:
    """Return the best plan with what each level cost, None when nothing was run."""
    if climb.best is None:
        return None
    report = climb.best.report.model_copy(
        update={
            "calls": climb.calls,
            "candidates": climb.candidates,
            "tokens": climb.model.usage.total,
            "solved_by": climb.solved_by,
            "levels": tuple(climb.levels),
            "budget_spent": None if climb.solved_by else climb.spent,
        }
    )
    return replace(climb.best, report=report)


def _most(left: Budget) -> Budget:
    """Return what evolution may spend: three quarters, so that something is left for a reflection."""
    seconds, calls, candidates = 0.75 * left.seconds, -(-left.calls * 3 // 4), -(-left.candidates * 3 // 4)
    return replace(left, seconds=seconds, calls=calls, candidates=candidates, tokens=left.tokens * 3 // 4)


def _part(left: Budget) -> Budget:
    """Return what one plan's deterministic repair may spend."""
    return replace(
        left,
        seconds=left.seconds * _REPAIR_SHARE,
        calls=-(-left.calls // 3),
        candidates=min(-(-left.candidates // 3), _REPAIR_CANDIDATES),
    )


_DOING: dict[Level, str] = {
    "plan": "asking the model for a plan",
    "repair": "repairing its plan",
    "sample": "asking the model for other plans",
    "evolve": "searching from every plan",
    "reflect": "showing the model what failed",
}

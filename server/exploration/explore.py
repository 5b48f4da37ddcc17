"""One exploration from scope to tasks: breadth, details, depth, distilling, feasibility, health.

Paper: AgentEvolver (self-questioning; §3.1, facts §4.2). Differs: deterministic without a model;
every part is bounded by one budget of calls, of which a share is kept for checking tasks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from catalog.tools import Tool
from server.backends.errors import BackendError
from server.curation.replaying import Replayer
from server.execution.run import Run
from server.exploration.breadth import explore_breadth, probe_details
from server.exploration.coverage import Coverage, measure_coverage
from server.exploration.depth import DepthSearch
from server.exploration.distilling import Draft
from server.exploration.drafting import Drafting
from server.exploration.feasibility import Feasibility
from server.exploration.health.calls import call_findings, check_finding
from server.exploration.health.findings import HealthReport, by_severity, not_called
from server.exploration.health.listing import listing_findings
from server.exploration.options import ExplorationOptions
from server.exploration.proposing import propose_calls
from server.exploration.session import BudgetSpent, ExplorationSession
from server.exploration.states import StateSearch
from server.exploration.tasks import ExploredTask
from server.exploration.wording import reword
from server.planning.conversation import MeteredBackend, converse

__all__ = ["Explored", "Explorer", "Solved"]

_FOR_EXPLORING: Final = 0.6
"""Share of the budget for calls of the exploration itself; the rest checks tasks."""
_FOR_BREADTH: Final = 0.7
"""Of that, for breadth and details where depth still has something to join."""
_SLOWEST: Final = 5

Said = Callable[[str, int], None]
"""Told what is being done, and how many calls were made."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A kept task with the runs that proved it: on its own inputs first, then on held-out ones."""

    task: ExploredTask
    runs: tuple[Run, ...]


@dataclass
class Explored:
    """What an exploration came to."""

    coverage: Coverage
    health: HealthReport
    solved: list[Solved]
    drafts: int
    dropped: Mapping[str, int]
    """Drafts that became no task, by reason."""
    calls: int
    stopped: str | None
    """Why it ended early, None where it came to its end."""
    model: str | None = None
    model_problem: str | None = None


@dataclass
class Explorer:
    """Explores one server. `problems` and `quarantined` are what its listing showed."""

    session: ExplorationSession
    replayer: Replayer
    options: ExplorationOptions
    problems: Sequence[str] = ()
    quarantined: Mapping[str, str] = field(default_factory=dict[str, str])
    model: MeteredBackend | None = None
    say: Said = lambda message, calls: None  # noqa: ARG005
    entities: Mapping[str, str] = field(default_factory=dict[str, str])
    """What tools are about, by name."""
    made: Sequence[ExploredTask] = ()
    """Tasks there are already, which are not made again."""
    _model_problem: str | None = None
    _states: StateSearch = field(init=False)
    _checking: Feasibility = field(init=False)

    def __post_init__(self) -> None:
        self._states = StateSearch(self.session)
        checking = Feasibility(self.replayer, self.session)
        self._checking = replace(checking, replayer=replace(self.replayer, lost=checking.note))

    async def explore(self) -> Explored:
        """Explore until there is nothing left to try or the budget ends; never raises for the server."""
        depth = DepthSearch(self.session)
        stopped = await self._until_spent(lambda: self._look_around(depth))
        depth.joined.update(depth.pairs_seen())
        scope, shown = self.session.scope, self._states.shown
        drafting = Drafting(self.session.observations, shown, scope, self.options, self.entities)
        drafts = list(drafting.drafts(self.made))
        solved: list[Solved] = []
        dropped: dict[str, int] = {}
        if self.options.tasks:
            spent = await self._until_spent(lambda: self._solve(drafts, solved, dropped))
            stopped = stopped or spent
        return Explored(
            coverage=measure_coverage(self.session.scope, self.session.observations, depth.joined),
            health=self._health(),
            solved=solved,
            drafts=len(drafts),
            dropped=dropped,
            calls=self.session.spent,
            stopped=stopped or self._cut_short(),
            model=self.model.name if self.model is not None else None,
            model_problem=self._model_problem,
        )

    def _cut_short(self) -> str | None:
        """Return which parts there were too few calls for, None where all came to their end."""
        if not self.session.cut:
            return None
        parts = " and ".join(dict.fromkeys(self.session.cut))
        return f"the calls there were for {parts} are spent; more of them (--budget-calls) would go on there"

    async def _until_spent(self, work: Callable[[], Awaitable[None]]) -> str | None:
        try:
            await work()
        except BudgetSpent as spent:
            return spent.reason
        return None

    async def _look_around(self, depth: DepthSearch) -> None:
        allowed = math.ceil(self.options.budget_calls * (_FOR_EXPLORING if self.options.tasks else 1.0))
        with self.session.limited(allowed, "breadth"):
            self.say("breadth: every tool once", self.session.spent)
            await explore_breadth(self.session)
        with self.session.limited(int(allowed * _FOR_BREADTH), "details"):
            self.say("details: enum values, boundaries, wrong arguments", self.session.spent)
            await probe_details(self.session)
        if self.session.scope.changing:
            spent = self.session.spent
            with self.session.limited(spent + (allowed - spent) * 2 // 3, "states"):
                self.say("states: what changes it, and what then answers otherwise", spent)
                await self._states.run()
        with self.session.limited(allowed, "depth"):
            await self._proposed()
            self.say("depth: answers into arguments", self.session.spent)
            await depth.run(allowed)

    async def _proposed(self) -> None:
        """Make the calls that a model proposes, where there is one."""
        if self.model is None:
            return
        session = self.session
        asking = propose_calls(
            session.scope.allowed,
            session.observations,
            self.options.seed,
            session.scope.changing,
            session.number,
        )
        try:
            probes = await converse(self.model, asking)
        except BackendError as error:
            self._model_problem = str(error)
            return
        for probe in probes:
            observation = await self.session.call(probe)
            if observation.succeeded:
                read = observation.probe.origins
                self.session.known.learn_success(probe.arguments, observation.output, read)

    async def _solve(self, drafts: Sequence[Draft], solved: list[Solved], dropped: dict[str, int]) -> None:
        """Check drafts until enough are tasks; what only a judge can tell fills up what is left."""
        judged: list[Solved] = []
        try:
            for draft in drafts:
                if len(solved) >= self.options.tasks:
                    return
                self.say(f"checking a task of {' then '.join(draft.chain.tools)}", self.session.spent)
                checked = await self._checking.check(draft, self._name(len(solved)))
                if checked.task is None:
                    reason = checked.reason.split(":")[0]
                    dropped[reason] = dropped.get(reason, 0) + 1
                    continue
                one = Solved(await self._reworded(checked.task), checked.runs)
                (judged if checked.task.check == "judge" else solved).append(one)
        finally:
            for one in judged[: self.options.tasks - len(solved)]:
                renamed = one.task.model_copy(update={"id": self._name(len(solved))})
                solved.append(Solved(renamed, one.runs))

    def _name(self, place: int) -> str:
        return f"{self.session.scope.server}-{place + 1:02d}"

    async def _reworded(self, task: ExploredTask) -> ExploredTask:
        """Return the task in a model's words, where there is one that keeps every value."""
        if self.model is None or self._model_problem is not None:
            return task
        try:
            said = await converse(self.model, reword(task.task, task.inputs, self.options))
        except BackendError as error:
            self._model_problem = str(error)
            return task
        return task if said is None else task.model_copy(update={"task": said, "worded_by": "model"})

    def _health(self) -> HealthReport:
        observations, scope = self.session.observations, self.session.scope
        noticed = {re.sub(r"\d+", "#", said): said for said in (*self.session.problems, *self.problems)}
        listed = listing_findings(self._listed_tools(), [*noticed.values()], self.quarantined)
        called = call_findings(observations, scope.changing)
        flakes = self._checking.flakes
        checked = [check_finding(one) for one in flakes]
        slowest: dict[str, float] = {}
        for observation in observations:
            name = observation.probe.tool.id.tool
            slowest[name] = round(max(slowest.get(name, 0.0), observation.outcome.seconds), 3)
        ranked = sorted(slowest.items(), key=lambda entry: -entry[1])[:_SLOWEST]
        names = [*(tool.id.tool for tool in self._listed_tools()), *self.quarantined]
        return HealthReport(
            server=scope.server,
            findings=by_severity([*listed, *called, *checked]),
            tools=len(scope.allowed) + len(scope.withheld),
            called=len({o.probe.tool.id.tool for o in observations}),
            calls=len(observations),
            crashes=self.session.lost + sum(one.rule != "flaky" for one in flakes),
            slowest=dict(ranked),
            listed=tuple(dict.fromkeys(names)),
            skipped=not_called(names, slowest, {**scope.withheld, **self.quarantined}),
        )

    def _listed_tools(self) -> list[Tool]:
        return list(self.replayer.snapshot.of_server(self.session.scope.server))

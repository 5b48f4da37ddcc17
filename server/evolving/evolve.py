"""The driver of rounds: explore, pick, solve, teach what failed, examine; all within one budget of calls.

Paper: AgentEvolver (task-agent co-evolution). Differs: no weights are trained; what a round learns are
skills by the normal admission and lessons, and an instance that was never practised measures it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from catalog.errors import ServerUnavailable
from server.bank.curation.observing import outcome_of
from server.bank.upstreams.exploration import Exploration
from server.evolving.options import EvolveOptions
from server.evolving.picking import Standing, pick
from server.evolving.practice import Instance, PracticeTask, practice_of
from server.evolving.report import EvolveReport, RoundReport, TaskStanding
from server.exploration.errors import NothingToExplore
from server.exploration.options import ExplorationOptions
from server.exploration.report import ExplorationReport, Taught
from server.exploration.tasks import ExploredTask
from server.reports import RepairReport, SkillsReport
from server.reports.experience import ExperienceReport
from server.requests import Budget, SolveRequest
from server.verification import Checks
from server.verification.reference_judge import ReferenceVerdict
from skills_store.episodes import Outcome

__all__ = ["EvolvingBank", "Say", "evolve"]

_FOR_EXPLORING = 0.5
"""Share of a round's calls for exploring and checking tasks; the rest is for solving and teaching."""
_LEAST_FOR_EXPLORING = 10
_CALLS_OF_ATTEMPT = 60

Say = Callable[[str], None]
"""Told what is being done."""


class EvolvingBank(Protocol):
    """What evolving asks of a bank; nobody is to be asked for consent by it."""

    def keep_to(self, servers: Sequence[str]) -> None: ...
    async def explore(self, exploration: Exploration) -> ExplorationReport: ...
    async def solve(self, task: str, request: SolveRequest) -> RepairReport: ...
    async def can_judge(self) -> bool: ...
    async def judge_explored(self, task: ExploredTask, report: RepairReport) -> ReferenceVerdict: ...
    async def teach(self, task: ExploredTask, reserved: int = 0) -> Taught: ...
    async def list_skills(self) -> SkillsReport: ...
    async def list_experience(self) -> ExperienceReport: ...


@dataclass
class _Evolution:
    """The state of one evolution."""

    bank: EvolvingBank
    servers: Sequence[str]
    options: EvolveOptions
    say: Say
    standings: list[Standing]
    judges: bool = False
    """Whether a model can tell what no check tells."""
    made: list[ExploredTask] = field(default_factory=list[ExploredTask])
    calls: int = 0
    judged: int = 0
    """Attempts that the model told of."""

    @property
    def left(self) -> int:
        return max(0, self.options.budget_calls - self.calls)

    async def round(self, number: int) -> RoundReport:
        """Hold one round and return what it brought."""
        started, calls, judged = anyio.current_time(), self.calls, self.judged
        skills, lessons = await self._skills(), await self._lessons()
        allowed = self.left // (self.options.rounds - number + 1)
        explored, problems = await self._explore(number, int(allowed * _FOR_EXPLORING))
        picked = pick(self.standings, self.options.tasks, self.options.mix)
        counted = [await self._attempt(one) for one in picked for _ in range(self.options.attempts)]
        told = [found for found in counted if found is not None]
        taught = [await self._teach(one) for one in picked if self._wants_teaching(one)]
        exams = [right for one in picked if (right := await self._examine(one)) is not None]
        return RoundReport(
            number=number,
            explored=explored,
            problems=problems,
            picked_user=sum(not one.task.is_synthetic for one in picked),
            picked_synthetic=sum(one.task.is_synthetic for one in picked),
            attempts=len(told),
            solved=sum(outcome == "right" for outcome, _ in told),
            by_skill=sum(outcome == "right" and route == "direct" for outcome, route in told),
            judged=self.judged - judged,
            stopped_by_world=sum(outcome == "world" for outcome, _ in told),
            taught=tuple(one.task for one in taught if not one.reason),
            not_taught={one.task: one.reason for one in taught if one.reason},
            skills=tuple(sorted(await self._skills() - skills)),
            lessons=await self._lessons() - lessons,
            examined=len(exams),
            examined_right=sum(exams),
            calls=self.calls - calls,
            seconds=anyio.current_time() - started,
        )

    async def _explore(self, number: int, allowed: int) -> tuple[dict[str, int], dict[str, str]]:
        """Make tasks of each server with its part of the calls; what cannot be explored is reported."""
        made: dict[str, int] = {}
        problems: dict[str, str] = {}
        for place, server in enumerate(self.servers):
            share = allowed // (len(self.servers) - place)
            if share < _LEAST_FOR_EXPLORING:
                problems[server] = f"{share} calls are too few to explore with"
                continue
            try:
                report = await self._explored(server, number, share)
            except NothingToExplore as error:
                problems[server] = str(error)
                continue
            if report.unreachable or report.withheld:
                problems[server] = report.unreachable or report.withheld
                continue
            allowed -= report.calls
            made[server] = self._take(report, number)
        return made, problems

    async def _explored(self, server: str, number: int, share: int) -> ExplorationReport:
        self.say(f"round {number}: exploring {server} with up to {share} calls")
        options = ExplorationOptions(
            budget_calls=share,
            tasks=self.options.tasks,
            seed=self.options.seed + number - 1,
            calls_per_second=self.options.calls_per_second,
            call_timeout_seconds=self.options.call_timeout_seconds,
        )
        earlier = tuple(task for task in self.made if server in task.servers)
        report = await self.bank.explore(Exploration(server, options, learn=False, made=earlier))
        self.calls += report.calls
        return report

    def _take(self, report: ExplorationReport, number: int) -> int:
        """Take the tasks of an exploration; return how many can be practised."""
        named = [task.model_copy(update={"id": f"r{number}-{task.id}"}) for task in report.tasks]
        self.made.extend(named)
        practised = [practice_of(task) for task in named if task.assertions or self.judges]
        self.standings.extend(Standing(task) for task in practised)
        return len(practised)

    async def _attempt(self, one: Standing) -> tuple[str, str | None] | None:
        """Solve a task's next instance and count it; None where no call is left for it."""
        self.say(f"solving {one.task.id}")
        report = await self._solve(one.next_instance)
        if report is None:
            return None
        outcome = await self._outcome(one, report)
        if outcome != "world":
            one.attempts += 1
            one.right += outcome == "right"
        return outcome, report.route

    async def _outcome(self, one: Standing, report: RepairReport) -> Outcome:
        """Return what an attempt came to; where no check can tell, what the judge says, if anything."""
        task = one.task.reference
        if task is None or task.check != "judge" or outcome_of(report) == "wrong":
            return outcome_of(report)
        verdict = await self.bank.judge_explored(task, report)
        if verdict.score is None:
            return "world"
        self.judged += 1
        return "right" if verdict.is_right else "wrong"

    async def _solve(self, instance: Instance) -> RepairReport | None:
        if not self.left:
            return None
        budget = Budget(seconds=self.options.seconds, calls=min(_CALLS_OF_ATTEMPT, self.left))
        checks = Checks(assertions=instance.assertions)
        report = await self.bank.solve(instance.task, SolveRequest(checks=checks, budget=budget))
        self.calls += report.calls
        return report

    def _wants_teaching(self, one: Standing) -> bool:
        """Return whether attempts at a task failed that has a reference, which nobody learned from yet."""
        task = one.task.reference
        if task is None or not task.assertions or one.is_taught or one.right == one.attempts:
            return False
        return self.left >= len(task.reference.nodes) * len(task.instances)

    async def _teach(self, one: Standing) -> Taught:
        task = one.task.reference
        if task is None:
            raise ValueError(f"{one.task.id} has no reference")
        self.say(f"teaching {one.task.id}")
        one.is_taught = True
        try:
            taught = await self.bank.teach(task, 0 if one.task.exam is None else 1)
        except (NothingToExplore, ServerUnavailable) as error:
            return Taught(task=task.id, reason=str(error))
        self.calls += taught.calls
        return taught

    async def _examine(self, one: Standing) -> bool | None:
        """Try the instance that was kept for it, once; None where there is none or it was tried."""
        if one.task.exam is None or one.examined is not None:
            return None
        self.say(f"examining {one.task.id}")
        report = await self._solve(one.task.exam)
        if report is None or outcome_of(report) == "world":
            return None
        one.examined = outcome_of(report) == "right"
        return one.examined

    async def _skills(self) -> frozenset[str]:
        listed = (await self.bank.list_skills()).skills
        return frozenset(skill.name for skill in listed if skill.state == "active")

    async def _lessons(self) -> int:
        return len((await self.bank.list_experience()).units)


async def evolve(
    bank: EvolvingBank,
    servers: Sequence[str],
    options: EvolveOptions,
    user_tasks: Sequence[PracticeTask] = (),
    say: Say = lambda message: None,  # noqa: ARG005
) -> EvolveReport:
    """Hold rounds until they are over, the budget is spent, or there is nothing to practise.

    Args:
        bank: answers nobody's questions for consent, so that what writes is refused; kept to the servers.
        servers: explored in each round; tasks are solved with them alone.
        options: how.
        user_tasks: mixed in by `options.mix`.
        say: told what is being done.
    """
    started = anyio.current_time()
    bank.keep_to(servers)
    standings, judges = [Standing(task) for task in user_tasks], await bank.can_judge()
    evolution = _Evolution(bank, servers, options, say, standings, judges)
    rounds: list[RoundReport] = []
    stopped = None
    for number in range(1, options.rounds + 1):
        rounds.append(await evolution.round(number))
        if not evolution.standings:
            stopped = "there is no task to practise"
        elif not evolution.left:
            stopped = f"the budget of {options.budget_calls} calls is spent"
        if stopped is not None:
            break
    return EvolveReport(
        servers=tuple(servers),
        rounds=tuple(rounds),
        tasks=tuple(map(_told, evolution.standings)),
        made=tuple(evolution.made),
        mix=options.mix,
        calls=evolution.calls,
        budget_calls=options.budget_calls,
        seconds=anyio.current_time() - started,
        stopped=stopped,
    )


def _told(one: Standing) -> TaskStanding:
    return TaskStanding(
        id=one.task.id,
        task=one.task.practised[0].task,
        is_synthetic=one.task.is_synthetic,
        attempts=one.attempts,
        right=one.right,
        estimate=round(one.estimate, 4),
        examined=one.examined,
    )

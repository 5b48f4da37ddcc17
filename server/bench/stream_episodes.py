"""One task of a stream after the other: what the bank answered, what it cost, and whether it was right.

Right is what Python computed. A skill's own answer is read from the trace of its run, so that a wrong
one counts against the direct route even where a check sends the task on to a plan.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, JsonValue

from catalog.similarity import words
from server.bank import Bank
from server.bench.stream_shown import show
from server.bench.stream_tasks import StreamTask
from server.bench.stream_world import Way, approve_all
from server.reports import RepairReport
from server.requests import SolveRequest
from server.verification import Checks

__all__ = ["Answer", "Memory", "Played", "PlayedLines", "play", "solved"]

_TRACES_READ = 200
_MOST_REMEMBERED = 3
_LIKE = 0.3


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one task."""

    task: StreamTask
    right: bool
    direct: bool
    """Whether a skill was run before anything was planned."""
    direct_right: bool
    """Whether what that skill answered was right, whatever followed."""
    route: str
    withheld: bool
    labelled: bool
    """Whether the bank was told the truth about its answer."""
    tokens: int
    calls: int
    seconds: float
    direct_tools: tuple[str, ...] = ()
    """What that skill called, as `SERVER/TOOL`."""


@dataclass
class Memory:
    """Tasks that came out right, in words: what is remembered where there are no skills.

    Paper: FlowEvo (Table 4, ExpeL row): the last insights are put into the prompt. Differs: those of
        the most alike tasks are.
    """

    lines: list[tuple[frozenset[str], str]] = field(default_factory=list[tuple[frozenset[str], str]])

    def keep(self, task: str, report: RepairReport) -> None:
        """Remember how a task was solved."""
        nodes = report.workflow.get("nodes")
        calls = [cast("dict[str, JsonValue]", node) for node in nodes] if isinstance(nodes, list) else []
        self._keep(task, [(_tool(call), call.get("arguments")) for call in calls])

    def keep_shown(self, task: StreamTask) -> None:
        """Remember how a client worked a task out."""
        plan = task.family.plan
        self._keep(task.task, [(call.tool.partition("/")[2], dict(call.arguments)) for call in plan])

    def _keep(self, task: str, calls: Sequence[tuple[str, JsonValue]]) -> None:
        said = "; then ".join(f"call {tool} with {arguments}" for tool, arguments in calls)
        if said:
            self.lines.append((frozenset(words(task)), f"When asked: {task}\nWhat was right: {said}"))

    def like(self, task: str) -> tuple[str, ...]:
        """Return what is remembered of the most alike tasks, the newest of equals first."""
        asked = frozenset(words(task))
        scored = [
            (len(asked & said) / len(asked | said), place, line)
            for place, (said, line) in enumerate(self.lines)
        ]
        near = sorted((one for one in scored if one[0] >= _LIKE), reverse=True)
        return tuple(line for _, _, line in near[:_MOST_REMEMBERED])


def _tool(call: dict[str, JsonValue]) -> str:
    tool = call.get("tool")
    return str(tool.get("tool")) if isinstance(tool, dict) else "a skill"


@dataclass(frozen=True, slots=True)
class Played:
    """A stream that was played: answers to what was asked in order, and active skills after each quarter."""

    answers: Sequence[Answer]
    bank: tuple[int, ...]


class _AnswerLine(BaseModel):
    model_config = ConfigDict(frozen=True)

    task: int
    """Its number in the stream."""
    right: bool
    direct: bool
    direct_right: bool
    route: str
    withheld: bool
    labelled: bool
    tokens: int
    calls: int
    seconds: float
    direct_tools: tuple[str, ...] = ()


class PlayedLines(BaseModel):
    """A stream that was played, without its tasks: what a run that goes on keeps of it."""

    model_config = ConfigDict(frozen=True)

    answers: tuple[_AnswerLine, ...]
    bank: tuple[int, ...]

    @classmethod
    def of(cls, played: Played) -> PlayedLines:
        """Return what is kept of a played stream."""
        lines = [_AnswerLine(task=one.task.number, **_fields(one)) for one in played.answers]
        return cls(answers=tuple(lines), bank=played.bank)

    def played(self, stream: Sequence[StreamTask]) -> Played:
        """Return the played stream, whose tasks are these."""
        by_number = {task.number: task for task in stream}
        given = [(by_number[line.task], line.model_dump(exclude={"task"})) for line in self.answers]
        return Played([Answer(task=task, **rest) for task, rest in given], self.bank)


def _fields(answer: Answer) -> dict[str, Any]:
    return {one.name: getattr(answer, one.name) for one in fields(Answer) if one.name != "task"}


async def play(stream: Sequence[StreamTask], way: Way, bank: Bank, memory: Memory | None = None) -> Played:
    """Return what a bank answers to a stream.

    Args:
        stream: the tasks.
        way: how the bank is asked.
        bank: it learns from what it solves, as it is set up.
        memory: what is known at the beginning, for a way that remembers; None: nothing.
    """
    dice, sizes = Random("labels"), list[int]()
    answers: list[Answer] = []
    memory = memory or Memory()
    quarter = max(1, len(stream) // 4)
    for number, task in enumerate(stream, 1):
        flipped = dice.random() < way.noise
        if not task.is_shown:
            answers.append(await solved(task, way, bank, memory, flipped=flipped))
        elif way.learning != "off":
            await show(task, bank)
        elif way.remembers:
            memory.keep_shown(task)
        if not way.gated:
            approve_all(bank)
        if number % quarter == 0 and len(sizes) < 4:
            sizes.append(sum(head.state == "active" for head in bank.context.store.heads()))
    return Played(answers, tuple(sizes))


async def solved(
    task: StreamTask, way: Way, bank: Bank, memory: Memory | None = None, *, flipped: bool = False
) -> Answer:
    """Return what a bank answers to one task.

    Args:
        task: the task.
        way: how the bank is asked.
        bank: the bank.
        memory: read and added to by a way that remembers.
        flipped: whether the check says the opposite of the truth.
    """
    label = f"!({task.assertion})" if flipped else task.assertion
    remembered = memory.like(task.task) if memory is not None and way.remembers else ()
    checks = Checks((label,)) if way.checked and task.is_checked else Checks()
    request = SolveRequest(checks=checks, budget=way.budget, route=way.route, experiences=remembered)
    store = bank.context.store
    known = {trace.id for trace in store.traces(_TRACES_READ)}
    started = time.perf_counter()
    report = await bank.solve(task.task, request)
    seconds = time.perf_counter() - started
    await bank.context.afterwards.settled()  # what curates beside an answer has minutes in real use
    new = [trace for trace in store.traces(_TRACES_READ) if trace.id not in known]
    first = new[-1] if new else None
    is_direct = first is not None and first.route == "direct"
    right = task.is_answered_by(cast("JsonValue", report.outputs))
    is_known_right = right and way.checked and task.is_checked and not flipped
    if memory is not None and way.remembers and is_known_right:
        memory.keep(task.task, report)
    return Answer(
        task=task,
        right=right,
        direct=is_direct,
        direct_right=is_direct and first is not None and task.is_answered_by(first.outputs),
        route=report.route or "dynamic",
        withheld=any("left out of this one" in reason for reason in report.route_reasons),
        labelled=not flipped,
        tokens=report.tokens,
        calls=report.calls,
        seconds=seconds,
        direct_tools=tuple(str(step.tool) for step in first.steps) if first is not None and is_direct else (),
    )

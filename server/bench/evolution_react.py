"""ReAct: a model calls tools one at a time and reads each answer, instead of planning; to compare with.

Paper: EvoFlux (the baseline: Thought, Action, Action Input, Finish). Differs: bounded like a search is,
and every call goes through the same effect policy.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue

from catalog.effects import Activity
from catalog.errors import SchemaRejected
from catalog.result import CallSuccess
from catalog.schema import problems
from catalog.tools import Tool
from server.backends.backend import Backend, Message, Request
from server.backends.errors import BackendError
from server.bank import Bank
from server.bench.evolution_plans import Place
from server.bench.evolution_report import REACT_SOURCE, PlanOutcome
from server.bench.evolution_world import part_of
from server.bench.planning_tape import NotRecorded
from server.execution.calls import Caller, CallRequest
from server.execution.episode import Episode
from server.planning.catalog_view import view_catalog
from server.planning.conversation import MeteredBackend, TokensSpent
from server.planning.wanted import wanted_outputs
from skills_store.workflow.assertions import check_assertion

__all__ = ["REACT", "ReactBudget", "read_action", "run_react"]

REACT = "ReAct with the model"
_VIEW_TOKENS = 1_500
_SHOWN = 500
_RULES = """You solve a task by calling tools, one at a time. Answer in one of these two forms, then stop.

Thought: what to do next
Action: the name of a tool
Action Input: its arguments as a JSON object

Thought: why the task is done
Finish: a JSON object with the outputs

Tools:
"""


@dataclass(frozen=True, slots=True)
class ReactBudget:
    """What one task may cost."""

    steps: int = 10
    """Calls at most. Paper: 25; ours are tasks of two to eight."""
    unreadable: int = 3
    """Answers that may be in neither form."""
    tokens: int = 30_000
    answer_tokens: int = 250
    deadline_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class Action:
    """A call that a model wants, or what it ends with. `name` None: it ends."""

    name: str | None
    arguments: dict[str, JsonValue]


@dataclass
class _Run:
    place: Place
    tools: dict[str, Tool]
    caller: Caller
    budget: ReactBudget
    messages: list[Message]
    finished: dict[str, JsonValue] | None = None
    steps: int = 0
    unreadable: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list[str])

    @property
    def goes_on(self) -> bool:
        is_patient = self.unreadable <= self.budget.unreadable
        return self.finished is None and self.steps < self.budget.steps and is_patient

    async def take(self, text: str) -> None:
        """Do what an answer says, and note what came of it for the next."""
        self.messages.append(Message("assistant", text))
        action = read_action(text)
        if action is None:
            self.unreadable += 1
            self._observe("neither form; answer with Action and Action Input, or with Finish")
        elif action.name is None:
            self.finished = action.arguments
        else:
            self.steps += 1
            self._observe(await self._called(action.name, action.arguments))

    async def _called(self, name: str, arguments: dict[str, JsonValue]) -> str:
        tool = self.tools.get(name)
        if tool is None:
            return self._refused(f"there is no tool {name!r}")
        try:
            wrong = [problem.message for problem in problems(tool.input_schema, arguments)]
        except SchemaRejected as error:
            wrong = [str(error)]
        if wrong:
            return self._refused(f"{name}: {wrong[0]}")
        answer = await self.caller.call(CallRequest(f"step{self.steps}", None, tool.id, arguments))
        match answer.outcome:
            case CallSuccess() as success:
                return _shown(success.output)
            case failure:
                self.faults.append(f"{failure.kind}: {failure.message}"[:240])
                return f"error: {failure.message}"[:_SHOWN]

    def _refused(self, why: str) -> str:
        self.refused += 1
        self.faults.append(f"refused: {why}"[:240])
        return f"error: {why}"[:_SHOWN]

    def _observe(self, text: str) -> None:
        self.messages.append(Message("user", f"Observation: {text}"))


def read_action(text: str) -> Action | None:
    """Return what an answer says to do, None when it is in neither form."""
    said = re.split(r"\n\s*Observation:", text, maxsplit=1)[0]
    if found := re.search(r"Finish:\s*(\{.*)", said, re.DOTALL):
        outputs = _object(found[1])
        return None if outputs is None else Action(None, outputs)
    if found := re.search(r"Action:\s*([^\n]+?)\s*\n+\s*Action Input:\s*(\{.*)", said, re.DOTALL):
        arguments = _object(found[2])
        return None if arguments is None else Action(found[1].strip("`\"' "), arguments)
    return None


def _object(text: str) -> dict[str, JsonValue] | None:
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None
    return cast("dict[str, JsonValue]", value) if isinstance(value, dict) else None


def _shown(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


async def run_react(
    place: Place, bank: Bank, backend: Backend, budget: ReactBudget | None = None
) -> PlanOutcome:
    """Return what a model comes to that calls tools one at a time.

    Raises:
        NotRecorded: the model's first answer is not on the tape and nobody can be asked.
    """
    allowed = budget or ReactBudget()
    context, world = bank.context, place.world()
    model = MeteredBackend(backend, allowed.tokens)
    view = await view_catalog(world, model.count_tokens, _VIEW_TOKENS, whole_up_to=_VIEW_TOKENS)
    episode = Episode(context.connections, place.effects, place.catalog, context.consent)
    wanted = wanted_outputs(place.checks)
    messages = [Message("system", _RULES + view.text), Message("user", _asked(place, wanted))]
    started, stopped = time.perf_counter(), None
    async with episode.candidate(Activity.FIRST_RUN) as caller:
        run = _Run(place, view.by_label, caller, allowed, messages)
        while run.goes_on:
            try:
                completion = await model.complete(_request(run.messages, allowed))
            except TokensSpent:
                stopped = "tokens"
                break
            except NotRecorded:
                if not model.turns:
                    raise
                stopped = "recording"
                break
            except BackendError as error:
                stopped = str(error)
                break
            await run.take(completion.text)
    return _outcome(run, wanted, episode.calls, model).model_copy(
        update={"stopped": stopped, "seconds": time.perf_counter() - started}
    )


def _asked(place: Place, wanted: tuple[str, ...]) -> str:
    inputs = json.dumps(dict(place.task.inputs), ensure_ascii=False)
    names = ", ".join(json.dumps(name) for name in wanted)
    return f"Task: {place.task.task}\nValues: {inputs}\nFinish with the keys: {names}"


def _request(messages: list[Message], budget: ReactBudget) -> Request:
    return Request(
        messages=tuple(messages),
        temperature=0.0,
        max_output_tokens=budget.answer_tokens,
        deadline_seconds=budget.deadline_seconds,
    )


def _outcome(run: _Run, wanted: tuple[str, ...], calls: int, model: MeteredBackend) -> PlanOutcome:
    task, finished = run.place.task, run.finished
    is_complete = finished is not None and all(finished.get(name) is not None for name in wanted)
    checked = [
        check_assertion(expression, output=finished, inputs=task.inputs, nodes={})
        for expression in task.assertions
    ]
    return PlanOutcome(
        task=task.id,
        part=part_of(task.id),
        source=REACT_SOURCE,
        condition=REACT,
        simulated=False,
        readable=run.unreadable <= run.budget.unreadable,
        static_ok=run.refused == 0 and run.unreadable == 0,
        executed_ok=is_complete,
        verified=is_complete and all(one.passed for one in checked),
        calls=calls,
        search_tokens=model.usage.total,
        faults=(*run.faults, *(one.message[:240] for one in checked if not one.passed)),
    )

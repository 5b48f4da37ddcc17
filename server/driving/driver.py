"""The ReAct driver: think, call, observe, until the model finishes, goes in circles or a budget ends.

Paper: AgentEvolver (environment interaction, facts §4.5), EvoFlux (the ReAct baseline). Differs: values are
passed on by reference, so that what was driven is a workflow; every call goes through the same policy,
checks and records as a workflow's.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import anyio
from pydantic import JsonValue

from server.backends.backend import Request
from server.backends.errors import BackendError
from server.context.events import (
    EventLog,
    Experience,
    Instruction,
    ModelTurn,
    Note,
    Plan,
    Problem,
    Recalled,
    Result,
    Task,
)
from server.context.render import asks_to_tidy
from server.context.snapshots import Snapshot, SnapshotRecorder
from server.driving.counts import TokenCounts
from server.driving.loops import LoopWatch
from server.driving.offered import Offered
from server.driving.options import DriveOptions
from server.driving.steps import FINISH, RECALL, RULES, Step, read_step, step_schema
from server.driving.tidying import read_selection, tidy_request
from server.driving.values import as_references, located, parts_of_wholes, preview, reads, recalled, resolved
from server.planning.conversation import MeteredBackend, TokensSpent
from skills_store.workflow.model import Node
from skills_store.workflow.references import ExpressionError, Unresolved

__all__ = ["Drive", "DriveEnd", "DriveTask", "Taken", "drive"]

DriveEnd = Literal["finished", "steps", "seconds", "tokens", "context", "loop", "unreadable", "model"]


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of one call: its output, or in words what was wrong."""

    output: JsonValue = None
    problem: str | None = None


@dataclass(frozen=True)
class DriveTask:
    """What is to be done, with what."""

    text: str
    inputs: Mapping[str, JsonValue]
    wanted: tuple[str, ...]
    """Names of the outputs; empty: the model chooses."""
    offered: Offered
    call: Callable[[Node], Awaitable[Taken]]
    """Makes one call; its node has literal arguments."""
    redact: Callable[[JsonValue], JsonValue] = lambda value: value
    """Takes secrets out of what the model is shown."""
    experiences: Sequence[tuple[str, str]] = ()
    """Rules of thumb with the unit that each is."""
    seconds: float = 60.0


@dataclass
class Drive:
    """One drive as it went."""

    log: EventLog = field(default_factory=EventLog)
    recorder: SnapshotRecorder = field(default_factory=SnapshotRecorder)
    nodes: list[Node] = field(default_factory=list[Node])
    """Calls that succeeded, arguments by reference."""
    outputs: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What those calls gave, by node."""
    finish: dict[str, JsonValue] | None = None
    """The task's outputs as references into them; None: the model never got so far."""
    ended: DriveEnd = "steps"
    steps: int = 0
    problem: str | None = None
    """What kept the model from answering."""
    fits: bool = True
    """Whether every prompt stayed within its budget."""
    estimates_tokens: bool = False
    """Whether the model's own tokenizer could not be asked."""


async def drive(
    task: DriveTask,
    model: MeteredBackend,
    options: DriveOptions,
    listener: Callable[[str], None] | None = None,
) -> Drive:
    """Drive a task.

    Args:
        task: what is to be done.
        model: answers step by step, within its limit of tokens.
        options: bounds and context.
        listener: told what is done now.
    """
    driver = _Driver(task, model, options, listener or _silent)
    with anyio.move_on_after(task.seconds) as scope:
        await driver.run()
    if scope.cancelled_caught:
        driver.drive.ended = "seconds"
    driver.drive.estimates_tokens = driver.counts.is_estimated
    return driver.drive


def _silent(message: str) -> None:
    del message


class _Driver:
    def __init__(
        self, task: DriveTask, model: MeteredBackend, options: DriveOptions, listener: Callable[[str], None]
    ) -> None:
        self.task, self.model, self.options, self.listener = task, model, options, listener
        self.drive = Drive()
        self.counts = TokenCounts(model)
        self.loops = LoopWatch(options.repeats)
        self.unreadable = 0
        self.tidied: set[str] = set()
        self.with_thought = options.policy.template == "reasoned"
        self.repeated: str | None = None
        thought = '"thought": "one short sentence", ' if self.with_thought else ""
        self.drive.log.add(Instruction(RULES.format(thought=thought) + "\n" + task.offered.text))
        self.drive.log.add(Task(_asked(task)))
        for unit, text in task.experiences:
            self.drive.log.add(Experience(unit, text))

    async def run(self) -> None:
        while self.drive.steps < self.options.steps:
            try:
                await self._tidy()
                text = await self._answer()
            except TokensSpent:
                self.drive.ended = "tokens"
                return
            except BackendError as error:
                self.drive.ended, self.drive.problem = "model", str(error)
                return
            if text is None:
                self.drive.ended = "context"
                return
            self.drive.steps += 1
            if ended := await self._take(text):
                self.drive.ended = ended
                return

    async def _answer(self) -> str | None:
        """Return what the model says next; None where even what must stay does not fit any more."""
        shown = await self.counts.rendered(self.drive.log, self.options.policy)
        self.drive.fits = self.drive.fits and shown.fits
        limit = self.model.context_tokens
        if limit is not None and shown.tokens + self.options.answer_tokens > limit:
            return None
        request = Request(
            messages=tuple(one.message for one in shown.messages),
            schema=step_schema(
                self.task.offered.labels, with_thought=self.with_thought, without=self.repeated
            ),
            schema_name="step",
            max_output_tokens=self.options.answer_tokens,
            deadline_seconds=self.options.deadline_seconds,
        )
        completion = await self.model.complete(request)
        snapshot = Snapshot(
            shown.messages, completion.text, self.task.offered.schemas, step=self.drive.steps + 1
        )
        self.drive.recorder.keep(snapshot)
        return completion.text

    async def _tidy(self) -> None:
        """Have the model choose which results stay, once for each of them."""
        waiting = asks_to_tidy(self.drive.log, self.options.policy, self.counts)
        names = [name for name in waiting if name not in self.tidied]
        if not names:
            return
        self.tidied.update(names)
        shown = await self.counts.rendered(self.drive.log, self.options.policy)
        request = tidy_request(shown.messages, names, self.options)
        completion = await self.model.complete(request)
        self.drive.recorder.keep(Snapshot(shown.messages, completion.text, is_trainable=False))
        self.drive.log.add(read_selection(completion.text, names))

    async def _take(self, text: str) -> DriveEnd | None:
        step = read_step(text)
        if isinstance(step, str):
            self.unreadable += 1
            self.drive.log.add(ModelTurn(text[:400]))
            self.drive.log.add(Problem(f"this is no step: {step}"))
            return "unreadable" if self.unreadable >= self.options.unreadable else None
        self.unreadable = 0
        arguments = {key: as_references(value) for key, value in step.arguments.items()}
        if step.plan:
            self.drive.log.add(Plan(json.dumps({"plan": step.plan}, ensure_ascii=False)))
        self.drive.log.add(ModelTurn(step.action, step.thought, reads(arguments)))
        self.listener(f"step {self.drive.steps}: {step.tool}")
        match step.tool:
            case "finish":
                return "finished" if self._finished(arguments) else self._stuck(step, "refused")
            case "recall":
                outcome = self._recalled(arguments)
            case _:
                outcome = await self._called(step, arguments)
        return self._stuck(step, outcome)

    def _stuck(self, step: Step, outcome: JsonValue) -> DriveEnd | None:
        """Tell a model that does what it did before; what it called is not offered to its next answer."""
        name = self.drive.nodes[-1].id if self.drive.nodes else ""
        earlier = self.loops.note([step.tool, step.arguments], outcome, name)
        self.repeated = None
        if earlier is None:
            return None
        known = ""
        if earlier and step.tool not in (FINISH, RECALL):
            self.repeated = step.tool
            known = (
                f"; its answer is {earlier}, and where the task asks for that, {self._finish_with(earlier)}"
            )
        self.drive.log.add(Problem(f"you did this before, and it came to the same{known}: go on from there"))
        return "loop" if self.loops.is_stuck else None

    def _finish_with(self, name: str) -> str:
        output = self.drive.outputs.get(name)
        key = f"#/{next(iter(output))}" if isinstance(output, dict) and len(output) == 1 else ""
        arguments = dict.fromkeys(self.task.wanted or ("result",), f"${name}{key}")
        return json.dumps({"tool": FINISH, "arguments": arguments})

    async def _called(self, step: Step, arguments: dict[str, JsonValue]) -> JsonValue:
        """Make one call; return what came of it, for the watch on loops."""
        name = self.drive.log.next_name()
        node = self.task.offered.node(step.tool, name, arguments)
        if node is None:
            there = ", ".join(self.task.offered.labels)
            return self._wrong(f"there is no tool {step.tool!r}; there are {there}")
        try:
            literal = resolved(arguments, self.task.inputs, self.drive.outputs)
        except (Unresolved, ExpressionError) as error:
            return self._wrong(str(error))
        taken = await self.task.call(node.model_copy(update={"arguments": literal}))
        if taken.problem is not None:
            parts = ", ".join(parts_of_wholes(arguments, self.drive.outputs))
            return self._wrong(
                f"{taken.problem}\nParts of what you passed on: {parts}" if parts else taken.problem
            )
        self.drive.nodes.append(node)
        self.drive.outputs[name] = taken.output
        shown = self._shown(taken.output)
        size = len(json.dumps(taken.output, ensure_ascii=False))
        keys = tuple(taken.output) if isinstance(taken.output, dict) else ()
        self.drive.log.add(Result(name, shown, size, keys))
        return taken.output

    def _recalled(self, arguments: dict[str, JsonValue]) -> JsonValue:
        name, pointer = str(arguments.get("result", "")).removeprefix("$"), str(arguments.get("pointer", ""))
        try:
            value = recalled(self.drive.outputs, name, pointer)
        except (Unresolved, ExpressionError) as error:
            return self._wrong(str(error))
        place = f"{name}#{pointer}" if pointer else name
        self.drive.log.add(Recalled(place, self._shown(value)))
        return value

    def _finished(self, arguments: dict[str, JsonValue]) -> bool:
        """Take the outputs where each comes from a call; else tell the model which does not."""
        missing = [name for name in self.task.wanted if name not in arguments]
        if missing or not arguments:
            self._wrong(f"finish needs the outputs {', '.join(missing) or 'of the task'}")
            return False
        order = [node.id for node in self.drive.nodes]
        chosen: dict[str, JsonValue] = {}
        for name, value in arguments.items():
            try:
                given = resolved({"value": value}, self.task.inputs, self.drive.outputs)["value"]
            except (Unresolved, ExpressionError) as error:
                self._wrong(f"output {name}: {error}")
                return False
            source = value if reads({name: value}) else located(given, self.drive.outputs, order)
            if source is None:
                shown = preview(self.task.redact(given), 200)
                self._wrong(f"output {name}: no call gave {shown}; refer to one, such as $r1#/key")
                return False
            chosen[name] = source
        self.drive.finish = chosen
        self.drive.log.add(Note("finished"))
        return True

    def _shown(self, value: JsonValue) -> str:
        return preview(self.task.redact(value), self.options.preview)

    def _wrong(self, message: str) -> str:
        self.drive.log.add(Problem(message))
        return message


def _asked(task: DriveTask) -> str:
    inputs = {f"$inputs.{name}": value for name, value in task.inputs.items()}
    told = f"\nInputs: {json.dumps(inputs, ensure_ascii=False)}" if inputs else ""
    wanted = f"\nFinish with the outputs {', '.join(task.wanted)}." if task.wanted else ""
    return f"Task: {task.text}{told}{wanted}"

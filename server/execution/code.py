"""Runs the code of a node in the engine it was verified in, and makes the calls that were granted to it.

Its calls go the way of all calls, through the run's `Caller`, where the one effect policy decides.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

import anyio

from catalog.canonical import JsonValue
from catalog.result import CallSuccess
from catalog.schema import problems
from catalog.tools import ToolId
from server.execution.calls import CallRequest
from server.execution.environment import Environment
from server.execution.failures import Place, PlannedCall, faults_of
from server.sandbox.engine import (
    CodeOutcome,
    CodeRequest,
    GrantedTool,
    Raised,
    Returned,
    SandboxUnavailable,
    Stopped,
    ToolRefused,
)
from server.sandbox.sandbox import Sandbox
from skills_store.trace import Step
from skills_store.workflow.faults import (
    Fault,
    OutputSchemaMismatch,
    OverLimit,
    ServerUnavailableFault,
    ToolError,
)
from skills_store.workflow.model import Code, Node

__all__ = ["CodeRun", "Granted", "engine_problem", "find_engine", "run_code"]


@dataclass(frozen=True, slots=True)
class CodeRun:
    """What came of one call of a function. `value` means something only without a fault."""

    value: JsonValue
    seconds: float
    fault: Fault | None = None


def engine_problem(code: Code, sandbox: Sandbox | None) -> str | None:
    """Return what keeps code from running in the engine it was verified in, None if nothing does."""
    engine = sandbox.engine(code.engine) if sandbox is not None else None
    if engine is None:
        return f"there is no engine {code.engine!r} here"
    if engine.version != code.engine_version:
        return f"it was verified with {code.engine_version}, here is {engine.version}"
    return None


def find_engine(environment: Environment, code: Code, place: Place) -> Fault | None:
    """Return the fault of code that cannot run here, None where it can."""
    problem = engine_problem(code, environment.options.sandbox)
    return None if problem is None else _unavailable(code, place, problem)


def _unavailable(code: Code, place: Place, problem: str) -> Fault:
    return ServerUnavailableFault(
        message=f"python {code.entry}: {problem}",
        node=place.node,
        pointer=place.at("code"),
        item=place.item,
        tool=_tool_of(code),
    )


def _tool_of(code: Code) -> ToolId:
    return ToolId("sandbox", code.entry)


@dataclass(frozen=True, slots=True)
class Granted:
    """The tools that one run of code may call, and the steps its calls became."""

    environment: Environment
    node: Node
    code: Code
    place: Place
    steps: list[Step] = field(default_factory=list[Step])
    refused: list[Fault] = field(default_factory=list[Fault])
    """What its failed calls came to, in their order."""

    def tools(self) -> dict[str, GrantedTool]:
        """Return what is called, by the name the code calls it under."""
        return {name: functools.partial(self._call, name, tool) for name, tool in self.code.tools.items()}

    async def _call(self, name: str, tool: ToolId, arguments: dict[str, JsonValue]) -> JsonValue:
        known = self.environment.snapshot.get(tool)
        if known is None:
            raise ToolRefused(f"no tool {tool} is known")
        if wrong := problems(known.input_schema, arguments):
            raise ToolRefused("; ".join(f"{one.pointer or '/'}: {one.message}" for one in wrong))
        async with self.environment.limiter:
            answer = await self.environment.caller.call(self._request(name, tool, arguments))
        self.environment.tally.calls += answer.calls
        outcome, recorder = answer.outcome, self.environment.recorder
        step = Step(
            node=self.node.id,
            item=self.place.item,
            tool=tool,
            arguments=await recorder.large_values(arguments),
            outcome="failed",
            seconds=outcome.seconds,
            effect=answer.effect,
            from_memory=answer.from_memory,
        )
        if not isinstance(outcome, CallSuccess):
            call = PlannedCall(tool, known.input_schema, arguments)
            faults = faults_of(outcome, call, self.place, needs_approval=answer.needs_approval)
            self.refused.extend(faults)
            self.steps.append(step.model_copy(update={"fault": recorder.fault(faults[0])}))
            raise ToolRefused(outcome.message)
        kept = await recorder.large_value(outcome.output)
        shown = {"outcome": "succeeded", "output": kept.value, "output_digest": kept.digest}
        self.steps.append(step.model_copy(update=shown))
        return outcome.output

    def _request(self, name: str, tool: ToolId, arguments: dict[str, JsonValue]) -> CallRequest:
        around = self.environment.items
        mapped = around if self.place.item is None else (*around, self.place.item)
        return CallRequest(
            node=".".join((*self.environment.path, self.node.id, name)),
            item=len(self.steps),
            tool=tool,
            arguments=arguments,
            timeout_seconds=self.node.timeout_seconds or self.environment.options.timeout_seconds,
            items=(*mapped, len(self.steps)),
        )

    def faults(self, own: Fault | None) -> tuple[Fault, ...]:
        """Return what a run came to: its own fault, or the refusal or the world that stood behind it.

        A refused call is told whatever the code made of it, so that somebody can consent.
        """
        denied = [fault for fault in self.refused if fault.evidence == "policy"]
        if denied or own is None:
            return tuple(denied)
        return tuple(fault for fault in self.refused if fault.evidence == "world") or (own,)


async def run_code(
    code: Code, arguments: Mapping[str, JsonValue], granted: Granted, sandbox: Sandbox | None
) -> CodeRun:
    """Return what came of one call of a function."""
    started = anyio.current_time()
    engine = sandbox.engine(code.engine) if sandbox is not None else None
    if engine is None:
        fault = _unavailable(code, granted.place, f"there is no engine {code.engine!r} here")
        return CodeRun(None, 0.0, fault)
    try:
        outcome = await engine.run(CodeRequest(code.source, code.entry, arguments, granted.tools()))
    except SandboxUnavailable as error:
        return CodeRun(None, anyio.current_time() - started, _unavailable(code, granted.place, str(error)))
    fault = _fault(outcome, code, granted.place)
    value = outcome.value if isinstance(outcome, Returned) else None
    return CodeRun(value, outcome.seconds, fault)


def _fault(outcome: CodeOutcome, code: Code, place: Place) -> Fault | None:
    said, tool = f"python {code.entry}", _tool_of(code)
    match outcome:
        case Returned(value=value):
            wrong = problems(code.gives, value)
            if not wrong:
                return None
            message = "; ".join(f"{one.pointer or '/'}: {one.message}" for one in wrong)
            fault: Fault = OutputSchemaMismatch(message=f"{said} returned {message}", tool=tool)
        case Raised(kind=kind, message=message):
            fault = ToolError(message=f"{said} raised {kind}: {message}", tool=tool)
        case Stopped(message=message):
            fault = OverLimit(message=f"{said} was stopped: {message}")
        case _:
            assert_never(outcome)
    return fault.model_copy(update={"node": place.node, "pointer": place.at("code"), "item": place.item})

"""Running a skill where nobody waits for the answer: fresh processes, nothing remembered.

Starting a process is what costs, so runs whose tools all are free may share one between them
(`Replayer.sharing`); one that failed is never run in again. Every run is an episode of its own with
activity `replay`: what costs and cannot be reset is refused there, by the one policy, and answered
from what was recorded where a test has the call.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import JsonValue

from catalog.connections import Connections
from catalog.effects import Activity, Effect, EffectTable, Reset
from catalog.labels import LabelTable
from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind
from catalog.schema import problems
from catalog.tools import Snapshot, ToolId
from server.curation.differences import differences
from server.execution.calls import Answer, Caller, CallRequest
from server.execution.consent import NoConsent
from server.execution.episode import Episode
from server.execution.options import RunOptions
from server.execution.run import Run, execute_workflow
from server.execution.servers import ServerProcess
from skills_store.evidence import ReplayResult
from skills_store.skill import RecordedCall, ReplayTest, Signature, Skill
from skills_store.workflow.faults import Denied
from skills_store.workflow.model import Workflow

__all__ = ["Lost", "Replayer", "was_stopped_by_the_world"]


Lost = Callable[[ToolId, Mapping[str, JsonValue], CallFailure], None]
"""Told of a call that got no answer: its tool, its arguments, and what became of it."""
_LOST: Final = frozenset({FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE})


@dataclass(frozen=True)
class _Fresh:
    """The tool servers, of which some that are not configured as resettable are started anew."""

    inner: Connections
    fresh: frozenset[str]
    lost: Lost | None = None

    async def call(
        self, tool: ToolId, arguments: dict[str, JsonValue], *, timeout_seconds: float | None = None
    ) -> CallOutcome:
        """Return the outcome of a call on the shared connection."""
        return await self.inner.call(tool, arguments, timeout_seconds=timeout_seconds)

    @asynccontextmanager
    async def isolated(self, server: str) -> AsyncGenerator[ServerProcess]:
        """Open a fresh process of a server."""
        async with self.inner.isolated(server, Reset.PROCESS if server in self.fresh else None) as process:
            yield process if self.lost is None else _Watched(process, server, self.lost)


@dataclass(frozen=True)
class _Watched:
    """A process of which is told what it gave no answer to, though the call may be made again."""

    inner: ServerProcess
    server: str
    lost: Lost

    async def call(
        self, tool: str, arguments: dict[str, JsonValue], *, timeout_seconds: float
    ) -> CallOutcome:
        """Return the outcome of one call."""
        outcome = await self.inner.call(tool, arguments, timeout_seconds=timeout_seconds)
        if isinstance(outcome, CallFailure) and outcome.kind in _LOST:
            self.lost(ToolId(self.server, tool), arguments, outcome)
        return outcome


@dataclass(frozen=True)
class _Shared:
    """Fresh processes that several runs use, opened where first needed; those that cost are never shared."""

    inner: _Fresh
    opened: dict[str, tuple[AbstractAsyncContextManager[ServerProcess], ServerProcess]] = field(
        default_factory=dict[str, tuple[AbstractAsyncContextManager[ServerProcess], ServerProcess]]
    )

    async def call(
        self, tool: ToolId, arguments: dict[str, JsonValue], *, timeout_seconds: float | None = None
    ) -> CallOutcome:
        """Return the outcome of a call on the shared connection."""
        return await self.inner.call(tool, arguments, timeout_seconds=timeout_seconds)

    @asynccontextmanager
    async def isolated(self, server: str) -> AsyncGenerator[ServerProcess]:
        """Open a process of a server, or give out the one that is open."""
        if server not in self.inner.fresh:
            async with self.inner.isolated(server) as own:
                yield own
            return
        if server not in self.opened:
            entered = self.inner.isolated(server)
            self.opened[server] = (entered, await entered.__aenter__())
        yield self.opened[server][1]

    async def close(self) -> None:
        """End the processes; the next run gets new ones."""
        while self.opened:
            _, (entered, _) = self.opened.popitem()
            await entered.__aexit__(None, None, None)


@dataclass(frozen=True)
class _Recorded:
    """A caller that answers from a test's recorded calls what may never run again.

    A node that was recorded itself takes no other node's answer: what a tool that writes says depends on
    what was written before, so that the same words at another place of the workflow prove nothing.
    """

    inner: Caller
    effects: EffectTable
    recorded: Sequence[RecordedCall]

    async def call(self, request: CallRequest) -> Answer:
        """Return the inner answer, or the recorded one of an equal call that costs."""
        effect = self.effects.effect(request.tool)
        if effect.is_free or self.effects.reset_mode(request.tool.server) is not Reset.NONE:
            return await self.inner.call(request)
        own = [call for call in self.recorded if (call.node, call.tool) == (request.node, request.tool)]
        for call in own or self.recorded:
            if call.tool == request.tool and call.arguments == request.arguments and not _is_cut(call):
                outcome = CallSuccess(structured=call.output, content=[], seconds=0.0)
                return Answer(outcome, effect, from_memory=True, calls=0)
        return await self.inner.call(request)


def _is_cut(call: RecordedCall) -> bool:
    """Return whether only the digest and a preview of an output were recorded."""
    return isinstance(call.output, dict) and call.output.keys() == {"$digest", "size", "preview"}


@dataclass(frozen=True)
class _Paced:
    """A caller that waits before each call."""

    inner: Caller
    pace: Callable[[], Awaitable[None]]

    async def call(self, request: CallRequest) -> Answer:
        """Return the inner answer, in time."""
        await self.pace()
        return await self.inner.call(request)


@dataclass(frozen=True)
class Replayer:
    """Runs skills again, each time as if for the first time.

    `fresh` names the servers whose tools all are free and that can be started anew: they run in
    processes of their own too, so that no state of a shared one can stand in.
    """

    servers: Connections
    effects: EffectTable
    snapshot: Snapshot
    options: RunOptions
    fresh: frozenset[str] = frozenset()
    signatures: Mapping[str, Signature] = field(default_factory=dict[str, Signature])
    """Of the skills that the replayed one calls, by `name@version`."""
    labels: LabelTable = field(default_factory=LabelTable)
    """What the operator says of labels and granted flows."""
    together: _Shared | None = None
    """The processes that its runs share; None: each run has its own."""
    pace: Callable[[], Awaitable[None]] | None = None
    """Awaited before each call, for a rate that is kept to; None: none is."""
    lost: Lost | None = None
    """Told of each call to a fresh process that got no answer, also where it was then made again."""

    @asynccontextmanager
    async def sharing(self) -> AsyncGenerator[Replayer]:
        """Yield a replayer whose runs share fresh processes, which are gone afterwards."""
        together = _Shared(_Fresh(self.servers, self.fresh, self.lost))
        try:
            yield replace(self, together=together)
        finally:
            await together.close()

    async def run(
        self, skill: Skill, inputs: Mapping[str, JsonValue], recorded: Sequence[RecordedCall] = ()
    ) -> Run:
        """Return one run of a skill with nothing remembered from any other.

        Args:
            skill: its workflow is run, whatever its state.
            inputs: by its signature.
            recorded: calls whose answers stand in where the tool may never run again.
        """
        return await self.run_workflow(skill.workflow, inputs, recorded)

    async def run_workflow(
        self,
        workflow: Workflow,
        inputs: Mapping[str, JsonValue],
        recorded: Sequence[RecordedCall] = (),
    ) -> Run:
        """Return one run of a workflow that is no skill yet, as `run` does."""
        effects = self._doubting()
        servers = self.together or _Fresh(self.servers, self.fresh, self.lost)
        episode = Episode(servers, effects, self.snapshot, NoConsent(), principal="replay")
        episode.set_plan(workflow, self.options.skills)
        async with episode.candidate(Activity.REPLAY) as unpaced:
            caller = unpaced if self.pace is None else _Paced(unpaced, self.pace)
            ran = await execute_workflow(
                workflow,
                dict(inputs),
                _Recorded(caller, effects, recorded),
                snapshot=self.snapshot,
                options=self.options,
            )
        if self.together is not None and ran.faults:
            await self.together.close()
        return ran

    def _doubting(self) -> EffectTable:
        """Return the effects under which nothing is believed pure: a fresh process has to show it."""
        reset = {**dict.fromkeys(self.fresh, Reset.PROCESS), **self.effects.reset}
        classes = {
            server: {
                pattern: Effect.READ if effect is Effect.PURE else effect for pattern, effect in of.items()
            }
            for server, of in self.effects.effects.items()
        }
        return EffectTable(effects=classes, reset=reset)

    async def replay(self, skill: Skill, test: ReplayTest) -> ReplayResult:
        """Return whether a test's inputs give its outputs again, volatile places left out."""
        started = time.perf_counter()
        run = await self.run(skill, test.inputs, test.recorded)
        seconds = time.perf_counter() - started
        detail = _difference(test, run)
        is_refused = any(isinstance(fault, Denied) for fault in run.faults)
        return ReplayResult(
            test=test.name,
            inputs=test.inputs,
            passed=detail == "",
            detail=detail,
            seconds=seconds,
            isolated=True,
            possible=not (is_refused or was_stopped_by_the_world(run)),
        )

    def fault_of_output(self, skill: Skill, run: Run) -> str:
        """Return what keeps a run from being a success by the skill's own signature, empty if nothing."""
        if run.faults:
            return "; ".join(fault.message for fault in run.faults)
        if run.result is None:
            return "no outputs"
        wrong = problems(skill.signature.output_schema, dict(run.result))
        return "; ".join(f"{problem.pointer}: {problem.message}" for problem in wrong)


def was_stopped_by_the_world(run: Run) -> bool:
    """Return whether a run failed by nothing but the world, and so says nothing of the skill."""
    return bool(run.faults) and all(fault.evidence == "world" for fault in run.faults)


def _difference(test: ReplayTest, run: Run) -> str:
    """Return how a run's outputs differ from a test's, empty when they are equal."""
    if run.faults:
        return "; ".join(fault.message for fault in run.faults)
    places = differences(test.outputs, run.trace.outputs or {}, apart_from=test.volatile)
    return f"outputs differ at {', '.join(place or 'the top' for place in places)}" if places else ""

"""Running a skill where nobody waits for the answer: fresh processes, nothing remembered.

Every run is an episode of its own with activity `replay`: what costs and cannot be reset is
refused there, by the one policy.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.connections import Connections
from catalog.effects import Activity, EffectTable, Reset
from catalog.result import CallOutcome
from catalog.schema import problems
from catalog.tools import Snapshot, ToolId
from server.execution.consent import NoConsent
from server.execution.episode import Episode
from server.execution.options import RunOptions
from server.execution.run import Run, execute_workflow
from server.execution.servers import ServerProcess
from skills_store.evidence import ReplayResult
from skills_store.skill import ReplayTest, Skill
from skills_store.workflow.faults import Denied

__all__ = ["Replayer", "volatile_pointers"]


@dataclass(frozen=True)
class _Fresh:
    """The tool servers, of which some that are not configured as resettable are started anew."""

    inner: Connections
    fresh: frozenset[str]

    async def call(
        self, tool: ToolId, arguments: dict[str, JsonValue], *, timeout_seconds: float | None = None
    ) -> CallOutcome:
        """Return the outcome of a call on the shared connection."""
        return await self.inner.call(tool, arguments, timeout_seconds=timeout_seconds)

    def isolated(self, server: str) -> AbstractAsyncContextManager[ServerProcess]:
        """Open a fresh process of a server."""
        return self.inner.isolated(server, Reset.PROCESS if server in self.fresh else None)


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

    async def run(self, skill: Skill, inputs: Mapping[str, JsonValue]) -> Run:
        """Return one run of a skill with nothing remembered from any other."""
        reset = {**dict.fromkeys(self.fresh, Reset.PROCESS), **self.effects.reset}
        effects = EffectTable(effects=self.effects.effects, reset=reset)
        servers = _Fresh(self.servers, self.fresh)
        episode = Episode(servers, effects, self.snapshot, NoConsent(), principal="replay")
        episode.set_plan(skill.workflow, self.options.skills)
        async with episode.candidate(Activity.REPLAY) as caller:
            return await execute_workflow(
                skill.workflow, dict(inputs), caller, snapshot=self.snapshot, options=self.options
            )

    async def replay(self, skill: Skill, test: ReplayTest) -> ReplayResult:
        """Return whether a test's inputs give its outputs again, volatile places left out."""
        started = time.perf_counter()
        run = await self.run(skill, test.inputs)
        seconds = time.perf_counter() - started
        detail = difference(test, run)
        impossible = any(isinstance(f, Denied) or f.evidence == "world" for f in run.faults)
        return ReplayResult(
            test=test.name,
            inputs=test.inputs,
            passed=detail == "",
            detail=detail,
            seconds=seconds,
            isolated=True,
            possible=not impossible,
        )

    def fault_of_output(self, skill: Skill, run: Run) -> str:
        """Return what keeps a run from being a success by the skill's own signature, empty if nothing."""
        if run.faults:
            return "; ".join(fault.message for fault in run.faults)
        if run.trace.outputs is None:
            return "no outputs"
        wrong = problems(skill.signature.output_schema, dict(run.trace.outputs))
        return "; ".join(f"{problem.pointer}: {problem.message}" for problem in wrong)


def difference(test: ReplayTest, run: Run) -> str:
    """Return how a run's outputs differ from a test's, empty when they are equal."""
    if run.faults:
        return "; ".join(fault.message for fault in run.faults)
    places = [
        place
        for place in volatile_pointers(test.outputs, run.trace.outputs or {})
        if not any(place == known or place.startswith(f"{known}/") for known in test.volatile)
    ]
    return f"outputs differ at {', '.join(places)}" if places else ""


def volatile_pointers(one: JsonValue, two: JsonValue, pointer: str = "") -> list[str]:
    """Return the places at which two values differ, the smallest that hold each difference."""
    if one == two and type(one) is type(two):
        return []
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        return [place for key in one for place in volatile_pointers(one[key], two[key], f"{pointer}/{key}")]
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        parts = enumerate(zip(one, two, strict=True))
        return [place for i, (a, b) in parts for place in volatile_pointers(a, b, f"{pointer}/{i}")]
    if isinstance(one, int | float) and isinstance(two, int | float) and one == two:
        return []
    return [pointer or "/"]

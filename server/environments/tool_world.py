"""A world of configured tool servers: each episode in processes of its own, its answer checked.

Run as `python -m server.environments.tool_world CONFIG STORE`. What a tool may do is the effect
policy's word (`catalog.effects.decide`): an agent in training is nobody's approval, so a call that
is not free needs a server that can be reset, or standing consent in the configuration.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
from pydantic import JsonValue

from catalog.config import Config
from catalog.connection import Connection
from catalog.connections import Connections, open_connections
from catalog.effects import Activity, Reset, decide
from catalog.effects import Verdict as PolicyVerdict
from catalog.errors import ServerUnavailable
from catalog.result import CallOutcome, CallSuccess, FailureKind
from catalog.tools import Tool, ToolId
from server.environments.task import EnvironmentTask
from server.environments.world import Answered, Begun, CalledBack, JsonObject, answer_requests
from server.settings import Settings, read_settings
from skills_store.workflow.assertions import check_assertion

__all__ = ["ToolWorld", "open_tool_world"]

_CALL_SECONDS = 60.0
_ERROR_TYPES: Mapping[FailureKind, str] = {
    FailureKind.UNKNOWN_TOOL: "tool_not_found",
    FailureKind.INVALID_ARGUMENT: "invalid_args",
    FailureKind.TIMEOUT: "timeout",
    FailureKind.SERVER_UNAVAILABLE: "transport_error",
    FailureKind.DENIED: "denied",
}
"""Words of the wire; any other failure is an `execution_error`."""


@asynccontextmanager
async def open_tool_world(settings: Settings) -> AsyncGenerator[ToolWorld]:
    """Yield a world over the configured servers, none started.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    config = settings.load_config().keeping(settings.open_secrets())
    async with open_connections(config, environment=settings.environment) as connections:
        world = ToolWorld(config, connections)
        try:
            yield world
        finally:
            await world.close()


class ToolWorld:
    """One episode at a time over fresh processes of the task's servers."""

    def __init__(self, config: Config, connections: Connections) -> None:
        self._config = config
        self._connections = connections
        self._stack = AsyncExitStack()
        self._live: dict[str, Connection] = {}
        self._task: EnvironmentTask | None = None
        self._outputs: dict[str, JsonValue] = {}

    async def close(self) -> None:
        """End the processes of the episode."""
        self._live = {}
        await self._stack.aclose()

    async def reset(self, task: JsonObject, seed: int | None) -> Begun:
        """Start the task's servers anew. Tool servers take no seed: it is the client's own."""
        del seed
        begun = self.begin(task)
        await self.start(begun.servers)
        reference: JsonObject = {"answer": begun.answer, "workflow": begun.workflow}
        return Begun(instruction_of(begun), self.tools(begun.servers), reference if begun.answer else {})

    def begin(self, task: JsonObject) -> EnvironmentTask:
        """Make a task the one that is played, whatever runs."""
        self._task = EnvironmentTask.model_validate(task)
        self._outputs = {}
        return self._task

    async def runs(self, servers: Sequence[str]) -> bool:
        """Return whether all of these are started and answer."""
        for name in servers:
            if name not in self._live or not await self._live[name].ready():
                return False
        return True

    async def start(self, servers: Sequence[str]) -> None:
        """Have a fresh process of each server, and none of those before.

        Raises:
            ServerUnavailable: one is not configured, or cannot be started.
        """
        await self.close()
        self._stack = AsyncExitStack()
        for server in servers:
            if server not in self._config.servers:
                raise ServerUnavailable(server, "no such server is configured: skillbank add it")
            mode = self._config.effects.reset_mode(server)
            fresh = self._connections.isolated(server, Reset.PROCESS if mode is Reset.NONE else mode)
            self._live[server] = await self._stack.enter_async_context(fresh)
        async with anyio.create_task_group() as group:
            for connection in self._live.values():
                group.start_soon(connection.ready)
        for server, connection in self._live.items():
            if not await connection.ready():
                raise ServerUnavailable(server, "; ".join(connection.problems) or "it did not start")

    def tools(self, servers: Sequence[str]) -> tuple[JsonObject, ...]:
        """Return the tools of these servers as agents see them."""
        listed = [tool for server in servers for tool in self._live[server].tools]
        return tuple(
            {
                "name": _shown_name(tool.id, listed),
                "description": tool.description,
                "input_schema": cast("JsonValue", dict(tool.input_schema)),
            }
            for tool in listed
        )

    async def call(self, tool: str, arguments: JsonObject) -> CalledBack:
        """Make one call of the agent, where the effect policy lets it."""
        found = self._find(tool)
        if isinstance(found, str):
            return _refused("tool_not_found", found)
        effects = self._config.effects
        decision = decide(
            effects.effect(found),
            effects.reset_mode(found.server),
            Activity.FIRST_RUN,
            consented=effects.allows(found),
        )
        if decision.verdict in (PolicyVerdict.ASK, PolicyVerdict.REFUSE):
            return _refused(
                "denied",
                f"{found} may not be called here: {decision.reason}. Whoever serves this environment says"
                f" otherwise: skillbank effects set {found.server} --reset process, or"
                f" skillbank effects set {found} --allow",
            )
        outcome = await self.call_live(found, arguments)
        if isinstance(outcome, CallSuccess):
            self._outputs[f"c{len(self._outputs) + 1}"] = outcome.output
        return shown(outcome)

    async def call_live(self, tool: ToolId, arguments: JsonObject) -> CallOutcome:
        """Make a call of the environment itself."""
        bound = self._config.servers[tool.server].timeout_seconds or _CALL_SECONDS
        return await self._live[tool.server].call(tool.tool, arguments, timeout_seconds=bound)

    async def submit(self, answer: JsonValue) -> Answered:
        """Return whether the answer passes every assertion of the task."""
        if self._task is None:
            raise LookupError("nothing was reset")
        if self._task.check == "judge":
            return Answered(None, "this task's answers are volatile: only a judge can tell")
        output: JsonObject = answer if isinstance(answer, dict) else {"answer": answer}
        checked = [
            check_assertion(text, output=output, inputs=self._task.inputs, nodes=self._outputs)
            for text in self._task.assertions
        ]
        failed = [one.message for one in checked if not one.passed]
        return Answered(0.0 if failed else 1.0, "; ".join(failed) or f"{len(checked)} checks hold")

    async def score(self) -> Answered:
        """Return 0: without an answer nothing is solved."""
        return Answered(0.0, "no answer was submitted", done=False)

    def _find(self, name: str) -> ToolId | str:
        task = self._task
        listed = [t for s in (task.servers if task else ()) for t in self._live[s].tools]
        fitting = [one.id for one in listed if name in (one.id.tool, str(one.id))]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            return f"{name!r} is of several servers: {', '.join(map(str, fitting))}"
        known = ", ".join(_shown_name(one.id, listed) for one in listed[:20])
        return f"there is no tool {name!r}; there are {known}"


def instruction_of(task: EnvironmentTask) -> str:
    """Return what an agent is told: the task, and the values it is given beside its words."""
    if not task.inputs:
        return task.task
    given = "\n".join(f"- {name}: {value!r}" for name, value in task.inputs.items())
    return f"{task.task}\n\nGiven:\n{given}"


def shown(outcome: CallOutcome) -> CalledBack:
    """Return an outcome as clients of the environment see it."""
    if isinstance(outcome, CallSuccess):
        return CalledBack(outcome.content, outcome.output, outcome.structured)
    kind = _ERROR_TYPES.get(outcome.kind, "execution_error")
    return _refused(kind, f"{outcome.kind.value}: {outcome.message}")


def _refused(kind: str, message: str) -> CalledBack:
    return CalledBack([{"type": "text", "text": message}], message, None, is_error=True, error_type=kind)


def _shown_name(tool: ToolId, listed: Sequence[Tool]) -> str:
    """Return the tool's own name, with its server before it where another has the same."""
    return tool.tool if sum(one.id.tool == tool.tool for one in listed) == 1 else str(tool)


async def _main(config: str, store: str) -> None:
    async with open_tool_world(read_settings(config=Path(config), store=Path(store))) as world:
        await answer_requests(world)


if __name__ == "__main__":
    anyio.run(_main, sys.argv[1], sys.argv[2])

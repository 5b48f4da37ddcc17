"""A world of other packages as an MCP server on stdio: all its tools, in the state of one task at a time.

Run as `python -m server.environments.tool_server NAME [ARGUMENT...]` with `bfcl` or `textworld`; the
arguments are the world's own. The file that SKILLBANK_WORLD_TASK names says which task it is
(`WorldTask`): it is read before each call, and other words in it begin anew, so that whoever runs the
server resets it without a tool that an agent could call, and a fresh process of it begins in the same state.
What was called since is beside the file, a JSON object a line (`calls_of`): on it a checker can be asked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import mcp.types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from server.environments.definitions import Definition, built_in
from server.environments.errors import BadRequest, WorkerFailed
from server.environments.limits import Limits
from server.environments.worker import Worker, start_worker
from server.environments.world import JsonObject
from server.progress import ignore_progress
from server.provisioning.errors import ProvisioningError
from server.settings import read_settings

__all__ = [
    "SERVED",
    "TASK_VARIABLE",
    "ServedWorld",
    "WorldTask",
    "begin_world_task",
    "calls_of",
    "open_served_world",
    "read_world_task",
]

SERVED = ("bfcl", "textworld")
"""Environments whose tools are no MCP server of themselves."""
TASK_VARIABLE = "SKILLBANK_WORLD_TASK"
_MISUSE = 2
_Answer = TypeVar("_Answer")
_content = TypeAdapter(list[types.ContentBlock])


class WorldTask(BaseModel):
    """What the file of a served world says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """Of a task of the environment."""
    seed: int | None = None
    """Of what the world draws, where it draws anything."""
    before: tuple[tuple[JsonObject, ...], ...] = ()
    """Turns that are over: calls with `tool_name` and `arguments`, made before anybody calls."""
    attempt: int = 0
    """Another number begins the same task again."""


@dataclass
class ServedWorld:
    """One world in a worker process, in the state that its file says."""

    definition: Definition
    task_file: Path
    workers: anyio.abc.TaskGroup
    limits: Limits = field(default_factory=Limits)
    _worker: Worker | None = None
    _begun: WorldTask | None = None
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    async def tools(self) -> list[JsonObject]:
        """Return every tool the world has, whatever its task.

        Raises:
            WorkerFailed: the world cannot be started.
        """
        async with self._turn:
            listed = await self._ask("tasks", {}, self.limits.reset_seconds)
        return cast("list[JsonObject]", listed["tools"])

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> JsonObject:
        """Make one call in the state that the file says.

        Raises:
            BadRequest: the file cannot be read, or there is no such task.
            WorkerFailed: the world is gone; the next call starts another, in the state of the file.
        """
        async with self._turn:
            await self._begin(read_world_task(self.task_file))
            call: JsonObject = {"tool_name": tool, "arguments": dict(arguments)}
            with _calls_file(self.task_file).open("a", encoding="utf-8") as calls:
                calls.write(json.dumps(call) + "\n")
            return await self._call(call)

    async def close(self) -> None:
        """End the world's process."""
        if self._worker is not None:
            await self._worker.end()

    async def _begin(self, task: WorldTask) -> None:
        if task == self._begun and self._worker is not None and not self._worker.has_failed:
            return
        self._begun = None
        given: JsonObject = {"task": {"id": task.id}, "seed": task.seed}
        await self._ask("reset", given, self.limits.reset_seconds)
        for turn in task.before:
            for call in turn:
                await self._call(call)
            await self._ask("submit", {"answer": None}, self.limits.step_seconds)
        _calls_file(self.task_file).write_text("", encoding="utf-8")
        self._begun = task

    async def _call(self, call: JsonObject) -> JsonObject:
        given: JsonObject = {"tool": call["tool_name"], "arguments": call["arguments"]}
        return await self._ask("call", given, self.limits.step_seconds)

    async def _ask(self, operation: str, given: JsonObject, seconds: float) -> JsonObject:
        if self._worker is None or self._worker.has_failed:
            self._begun = None
            self._worker = await start_worker(
                self.definition.command,
                dict(self.definition.variables),
                self.limits.message_bytes,
                self.workers,
            )
        return await self._worker.ask(operation, given, seconds)


def read_world_task(path: Path) -> WorldTask:
    """Return what the file of a served world says.

    Raises:
        BadRequest: it cannot be read; says what is wrong.
    """
    try:
        return WorldTask.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}: write the task there first") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(map(str, first["loc"])) or "the whole"
        raise BadRequest(f"{path} is no task of a world: {place}: {first['msg']}") from error


def begin_world_task(path: Path, task: WorldTask) -> None:
    """Write the file of a served world: the next call there begins the task, and no call was made in it."""
    _calls_file(path).unlink(missing_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(task.model_dump_json(), encoding="utf-8")
    partial.replace(path)


def calls_of(task_file: Path) -> list[JsonObject]:
    """Return the calls that were made since the task of the file began, in order; failed ones too."""
    path = _calls_file(task_file)
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _calls_file(task_file: Path) -> Path:
    return task_file.with_name(f"{task_file.name}.calls")


@asynccontextmanager
async def open_served_world(definition: Definition, task_file: Path) -> AsyncGenerator[ServedWorld]:
    """Yield a world that is started with its first question; leaving it ends its process."""
    async with anyio.create_task_group() as workers:
        world = ServedWorld(definition, task_file, workers)
        try:
            yield world
        finally:
            with anyio.CancelScope(shield=True):
                await world.close()
            workers.cancel_scope.cancel()


def _server(world: ServedWorld) -> Server[dict[str, object]]:
    async def list_tools(
        ctx: ServerRequestContext[dict[str, object], object], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del ctx, params
        tools = await _or_error(world.tools())
        return types.ListToolsResult(tools=[_shown(tool) for tool in tools])

    async def call_tool(
        ctx: ServerRequestContext[dict[str, object], object], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        del ctx
        answer = await _or_error(world.call(params.name, params.arguments or {}))
        structured = answer.get("structured")
        return types.CallToolResult(
            content=_content.validate_python(answer["content"]),
            structured_content=structured if isinstance(structured, dict) else None,
            is_error=bool(answer.get("is_error")),
        )

    return Server(world.definition.name, version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def _or_error(asked: Awaitable[_Answer]) -> _Answer:
    try:
        return await asked
    except (BadRequest, WorkerFailed) as error:
        raise MCPError(types.INTERNAL_ERROR, str(error)) from error


def _shown(tool: JsonObject) -> types.Tool:
    return types.Tool(
        name=str(tool["name"]),
        description=str(tool["description"]),
        input_schema=cast("dict[str, Any]", tool["input_schema"]),
    )


async def _serve(definition: Definition, task_file: Path) -> None:
    async with open_served_world(definition, task_file) as world:
        server = _server(world)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


def main(arguments: list[str]) -> int:
    """Serve a world until standard input ends, and return the exit code."""
    if not arguments or arguments[0] not in SERVED:
        sys.stderr.write(f"which world? there are {', '.join(SERVED)}\n")
        return _MISUSE
    settings = read_settings()
    if not (task_file := settings.environment.get(TASK_VARIABLE)):
        sys.stderr.write(f"{TASK_VARIABLE} has to name the file that says the task\n")
        return _MISUSE
    try:
        definition = built_in(arguments[0], settings, ignore_progress)
    except (BadRequest, ProvisioningError) as error:
        sys.stderr.write(f"{error}\n")
        return _MISUSE
    command = (*definition.command, *arguments[1:])
    anyio.run(_serve, replace(definition, command=command), Path(task_file))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

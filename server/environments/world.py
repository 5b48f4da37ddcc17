"""What a worker process answers: the operations of a world, one JSON object a line.

The loop for worlds of our own; those of other packages run `foreign.loop` in their own interpreter.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol, cast

from anyio import to_thread
from pydantic import JsonValue

from catalog.errors import CatalogError
from server.provisioning.errors import ProvisioningError

__all__ = ["Answered", "Begun", "CalledBack", "JsonObject", "World", "answer_requests"]

JsonObject = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Begun:
    """An episode begun: what the agent is told and given."""

    instruction: str
    tools: tuple[JsonObject, ...]
    """Each with name, description and input_schema."""
    reference: JsonObject = field(default_factory=dict[str, JsonValue])
    """A solution where one is known: `turns` of calls, `answer`. Never shown to an agent."""


@dataclass(frozen=True, slots=True)
class CalledBack:
    """What a call gave, as the wire to clients shows it."""

    content: list[JsonValue]
    data: JsonValue
    structured: JsonValue = None
    is_error: bool = False
    error_type: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of an episode. `reward` in [0, 1], None where nothing can tell."""

    reward: float | None
    detail: str
    done: bool = True


class World(Protocol):
    """One world with one episode at a time."""

    async def reset(self, task: JsonObject, seed: int | None) -> Begun:
        """Begin a task in a state that nothing has touched.

        Raises:
            LookupError: it has no such task.
            CatalogError: a server of it cannot be started.
        """
        ...

    async def call(self, tool: str, arguments: JsonObject) -> CalledBack:
        """Make one call; its trouble is a value."""
        ...

    async def submit(self, answer: JsonValue) -> Answered:
        """End the episode with an answer."""
        ...

    async def score(self) -> Answered:
        """Return what it is worth as it stands, without an answer."""
        ...


async def answer_requests(world: World) -> None:
    """Answer on standard output until standard input ends; what else is printed goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    async for line in _lines():
        request = cast("JsonObject", json.loads(line))
        answer = {"id": request["id"], **await _answered(world, request)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


async def _lines() -> AsyncIterator[str]:
    while line := await to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
        yield line


async def _answered(world: World, request: JsonObject) -> JsonObject:
    given = cast("JsonObject", request["given"])
    try:
        return {"ok": await _made(world, str(request["op"]), given)}
    except LookupError as error:
        return {"error": {"kind": "not_found", "message": str(error).strip("'\"")}}
    except (CatalogError, ProvisioningError, OSError) as error:
        return {"error": {"kind": "world", "message": f"{type(error).__name__}: {error}"}}


async def _made(world: World, operation: str, given: JsonObject) -> JsonObject:
    match operation:
        case "reset":
            seed = given.get("seed")
            begun = await world.reset(
                cast("JsonObject", given["task"]), seed if isinstance(seed, int) else None
            )
            tools = cast("JsonValue", list(begun.tools))
            return {"instruction": begun.instruction, "tools": tools, "reference": begun.reference}
        case "call":
            called = await world.call(str(given["tool"]), cast("JsonObject", given["arguments"]))
            return {
                "content": called.content,
                "structured": called.structured,
                "data": called.data,
                "is_error": called.is_error,
                "error_type": called.error_type,
            }
        case "submit" | "score":
            ended = await (world.submit(given["answer"]) if operation == "submit" else world.score())
            return {"reward": ended.reward, "detail": ended.detail, "done": ended.done}
        case _:
            return {"error": {"kind": "unknown_operation", "message": operation}}

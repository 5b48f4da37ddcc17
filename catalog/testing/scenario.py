"""A scripted server described in JSON, for a process of its own.

The file names tools with answers or with one of a few behaviours that need state, folders or a
clock. Serving it belongs to `catalog.testing.__main__`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import anyio
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from catalog.era import Era
from catalog.testing.script import (
    Answer,
    CallLog,
    LoggedCall,
    Refuse,
    Reply,
    Respond,
    ScriptedTool,
    Vanish,
)
from catalog.testing.scripted import ScriptedServer

__all__ = ["Scenario", "ScenarioTool", "scripted"]

Behaviour = Literal["answers", "echo", "counter", "store", "folders", "calls", "sleep", "changes"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScenarioTool(_Model):
    """One tool of a scenario.

    Behaviours: `answers` gives `answers` in turn; `echo` its arguments; `counter` how often it was
    called in this process; `store` remembers its arguments in this process and returns all of them;
    `folders` makes an empty file `name` in the working folder and tells HOME, TMPDIR, the folder and
    its files; `calls` tells which calls arrived and which of them were cancelled; `sleep` answers after
    the `seconds` it is asked for, so that answers come in another order than calls; `changes` puts the
    scenario's `then` in the place of all tools.
    """

    name: str
    behaviour: Behaviour = "answers"
    answers: list[JsonValue] = Field(default_factory=list[JsonValue])
    """Values; `{"$reply": {…}}`, `{"$refuse": {code, message}}` and `{"$vanish": true}` stand for those."""
    input_schema: dict[str, JsonValue] = Field(default_factory=lambda: {"type": "object"})
    output_schema: dict[str, JsonValue] | None = None
    description: str = ""
    annotations: dict[str, bool] = Field(default_factory=dict[str, bool])
    latency_seconds: float = 0.0
    progress: list[tuple[float, float | None, str | None]] = Field(
        default_factory=list[tuple[float, float | None, str | None]]
    )


class Scenario(_Model):
    """What a test server in a process of its own does."""

    tools: list[ScenarioTool] = Field(default_factory=list[ScenarioTool])
    serve: Literal["stdio", "http", "sse"] = "stdio"
    """Over http and sse the address is the only line on standard output."""
    era: Literal["legacy", "modern", "changing"] | None = None
    """The only era it speaks, over stdio; `changing`: legacy in its first life, modern later, which
    needs a log. None: both."""
    start_seconds: float = 0.0
    """How long it takes before it reads anything."""
    page_size: int | None = None
    ttl_ms: int = 0
    announces: bool = True
    then: list[ScenarioTool] = Field(default_factory=list[ScenarioTool])
    """The tools after a call of one that `changes`."""
    log: Path | None = None
    """File that gets a line of JSON per start and per call."""
    defect: str | None = None
    """A raw server with this defect instead (`catalog.testing.defects.DEFECTS`); tools are its own."""

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.era is not None and self.serve != "stdio":
            raise ValueError("one era only is spoken over stdio")
        if self.era == "changing" and self.log is None:
            raise ValueError("a server that changes its era needs a log, to know which life it is in")
        return self

    def era_now(self) -> Era | None:
        """Return the only era that is spoken in this life, which is written in the log already."""
        if self.era != "changing":
            return self.era
        return "legacy" if self.log is not None and lives(self.log) < 2 else "modern"


def lives(log: Path) -> int:
    """Return how many processes of a server have written in a log."""
    return sum("started" in json.loads(line) for line in log.read_text().splitlines())


def scripted(scenario: Scenario) -> ScriptedServer:
    """Return the server a scenario describes."""
    log = CallLog() if scenario.log is None else _FileLog(scenario.log)
    server = ScriptedServer(
        [], page_size=scenario.page_size, ttl_ms=scenario.ttl_ms, announces=scenario.announces, log=log
    )

    async def change(_: dict[str, JsonValue]) -> Answer:
        await server.change_tools([_tool(tool, log, change) for tool in scenario.then])
        return "changed"

    server.tools = [_tool(tool, log, change) for tool in scenario.tools]
    return server


class _FileLog(CallLog):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._write({"started": os.getpid()})

    def arrive(self, tool: str, arguments: dict[str, JsonValue]) -> LoggedCall:
        self._write({"called": arguments, "tool": tool})
        return super().arrive(tool, arguments)

    def cancel(self, call: LoggedCall) -> None:
        self._write({"cancelled": call.arguments, "tool": call.tool})
        super().cancel(call)

    def _write(self, entry: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def _tool(tool: ScenarioTool, log: CallLog, change: Respond) -> ScriptedTool:
    return ScriptedTool(
        name=tool.name,
        respond=change if tool.behaviour == "changes" else _respond(tool, log),
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        description=tool.description,
        annotations=tool.annotations,
        latency_seconds=tool.latency_seconds,
        progress=tool.progress,
    )


def _respond(tool: ScenarioTool, log: CallLog) -> Respond | Sequence[Answer]:
    match tool.behaviour:
        case "answers":
            return [_answer(answer) for answer in tool.answers or ["done"]]
        case "echo":
            return lambda arguments: arguments
        case "counter":
            return _Counting()
        case "store":
            return _Storing()
        case "folders":
            return _folders
        case "sleep":
            return _sleep
        case "calls":
            return lambda _: [{"tool": call.tool, "cancelled": call.cancelled} for call in log.calls]
        case "changes":
            raise AssertionError("its answer is the server's")


def _answer(answer: JsonValue) -> Answer:
    match answer:
        case {"$reply": dict(reply)}:
            return Reply(**reply)  # pyright: ignore[reportArgumentType]  (checked by its dataclass's names)
        case {"$refuse": {"code": int(code), "message": str(message)}}:
            return Refuse(code, message)
        case {"$vanish": True}:
            return Vanish()
        case _:
            return answer


class _Counting:
    def __init__(self) -> None:
        self._count = 0

    def __call__(self, arguments: dict[str, JsonValue]) -> Answer:  # noqa: ARG002  (counts any call)
        self._count += 1
        return {"count": self._count}


class _Storing:
    def __init__(self) -> None:
        self._stored: dict[str, JsonValue] = {}

    def __call__(self, arguments: dict[str, JsonValue]) -> Answer:
        self._stored |= arguments
        return dict(self._stored)


async def _sleep(arguments: dict[str, JsonValue]) -> Answer:
    seconds = arguments.get("seconds")
    await anyio.sleep(seconds if isinstance(seconds, int | float) else 0)
    return arguments


def _folders(arguments: dict[str, JsonValue]) -> Answer:
    if isinstance(name := arguments.get("name"), str):
        Path(name).touch()
    files: list[JsonValue] = [*sorted(os.listdir())]
    return {
        "home": os.environ.get("HOME"),
        "tmp": os.environ.get("TMPDIR"),
        "folder": str(Path.cwd()),
        "files": files,
    }

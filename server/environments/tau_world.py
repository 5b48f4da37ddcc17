"""A domain of τ²-bench as a world: the reward says whether the database is the reference run's.

Run as `python -m server.environments.tau_world DOMAIN`. The reference actions are made on a second
server with a state of its own; both databases are compared as the servers write them down, and what a
task wants communicated must be in the answer. The simulated user is left out: the task's words say
what the user would.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import anyio
from pydantic import JsonValue

from catalog.errors import ServerUnavailable
from catalog.result import CallFailure
from catalog.tools import ToolId
from server.environments.task import EnvironmentTask
from server.environments.tool_world import ToolWorld, instruction_of, open_tool_world
from server.environments.world import Answered, Begun, CalledBack, JsonObject, answer_requests
from server.provisioning.fetched import FETCHED_SERVERS, cache_folder, fetched_entries
from server.provisioning.tau_database import database_digest
from server.settings import read_settings

__all__ = ["TauWorld", "open_tau_world"]

_REFERENCE = "reference"
_OWN_TOOLS = frozenset({"reset_state"})
"""Of the server, for whoever runs it: an agent that could reset would undo its mistakes."""


@asynccontextmanager
async def open_tau_world(domain: str) -> AsyncGenerator[TauWorld]:
    """Yield the world of a domain, its servers not started, its state in a folder of its own."""
    with TemporaryDirectory(prefix="skillbank-tau-") as made:
        folder = Path(made)
        settings = read_settings(config=_write_config(domain, folder), store=folder / "store.db")
        async with open_tool_world(settings) as tools:
            yield TauWorld(domain, tools, folder)


class TauWorld:
    """One episode at a time, and the reference run beside it."""

    def __init__(self, domain: str, tools: ToolWorld, folder: Path) -> None:
        self._domain = domain
        self._tools = tools
        self._folder = folder
        self._task: EnvironmentTask | None = None
        self._shipped: str | None = None
        """Digest of the database that every episode begins with."""

    async def reset(self, task: JsonObject, seed: int | None) -> Begun:
        """Begin from the database that the domain ships; nothing in it is drawn by seed.

        The servers go on where a reset brings that database back, which is looked at; else they are
        started anew.
        """
        del seed
        self._task = self._tools.begin({**task, "servers": [self._domain]})
        if not (self._shipped and await self._tools.runs(_both(self._domain)) and await self._is_reset()):
            await self._tools.start(_both(self._domain))
            await self._reset_state()
            self._shipped = self._database(self._domain)
        tools = self._tools.tools([self._domain])
        shown = tuple(tool for tool in tools if tool["name"] not in _OWN_TOOLS)
        turns = cast("JsonValue", [[_call(one) for one in self._task.reference_calls]])
        answer: JsonValue = " ".join(self._task.communicate)
        return Begun(instruction_of(self._task), shown, {"turns": turns, "answer": answer})

    async def _is_reset(self) -> bool:
        await self._reset_state()
        return all(self._database(server) == self._shipped for server in _both(self._domain))

    async def _reset_state(self) -> None:
        for server in _both(self._domain):
            outcome = await self._tools.call_live(ToolId(server, "reset_state"), {})
            if isinstance(outcome, CallFailure):
                raise ServerUnavailable(server, f"its state cannot be reset: {outcome.message}")

    async def call(self, tool: str, arguments: JsonObject) -> CalledBack:
        """Make one call of the agent."""
        name = tool.rpartition("/")[2]
        if name in _OWN_TOOLS:
            said = f"there is no tool {tool!r}"
            return CalledBack([{"type": "text", "text": said}], said, None, True, "tool_not_found")
        return await self._tools.call(tool, arguments)

    async def submit(self, answer: JsonValue) -> Answered:
        """Compare the databases, and look for what had to be said in the answer."""
        if self._task is None:
            raise LookupError("nothing was reset")
        for name, arguments in self._task.reference_calls:
            await self._tools.call_live(ToolId(_REFERENCE, name), arguments)
        if self._database(self._domain) != self._database(_REFERENCE):
            return Answered(0.0, "the database is not as the reference run leaves it")
        said = json.dumps(answer, ensure_ascii=False).lower()
        if unsaid := [info for info in self._task.communicate if info.lower() not in said]:
            return Answered(0.0, f"the answer does not say {', '.join(unsaid)}")
        return Answered(1.0, "the database is as the reference run leaves it")

    async def score(self) -> Answered:
        """Return 0: the episode has not ended."""
        return Answered(0.0, "nothing was submitted", done=False)

    def _database(self, server: str) -> str:
        return database_digest(self._folder / server, self._domain)


def _both(domain: str) -> tuple[str, str]:
    return domain, _REFERENCE


def _call(made: tuple[str, JsonObject]) -> JsonValue:
    name, arguments = made
    return {"tool_name": name, "arguments": arguments}


def _write_config(domain: str, folder: Path) -> Path:
    """Write the configuration of the domain's server, twice, each with a state of its own."""
    server = next(one for one in FETCHED_SERVERS if one.name == domain)
    entries, _ = fetched_entries([domain], cache_folder(), folder)
    entry = cast("JsonObject", entries[domain])
    (folder / _REFERENCE).mkdir()
    other: JsonObject = {**entry, "env": {str(server.state_variable): str(folder / _REFERENCE)}}
    effects = {pattern: effect.value for pattern, effect in server.effects.items()}
    own = {"effects": {domain: effects}, "allow": {domain: ["*"]}}
    path = folder / "config.json"
    document = {"mcpServers": {domain: entry, _REFERENCE: other}, "skillbank": own}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


async def _main(domain: str) -> None:
    async with open_tau_world(domain) as world:
        await answer_requests(world)


if __name__ == "__main__":
    anyio.run(_main, sys.argv[1])

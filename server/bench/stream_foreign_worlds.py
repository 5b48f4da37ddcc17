"""The worlds of others behind a bank: which server is configured, a task begun in it, its checker's word.

BFCL and TextWorld run as tool servers of ours (`server.environments.tool_server`); what was called there
is called again in a world of the judge's own, whose checker is asked. τ²-bench runs as its own server,
whose database is compared with the one that the reference leaves.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from pydantic import JsonValue

from catalog.result import CallSuccess
from catalog.tools import ToolId
from server.bank import Bank
from server.bench.errors import BenchError
from server.bench.stream_foreign_tasks import ForeignCall, ForeignFamily, ForeignTask, WorldName
from server.environments.definitions import built_in
from server.environments.instance import Instance
from server.environments.instances import open_instances
from server.environments.tasks import tau_tasks
from server.environments.tool_server import TASK_VARIABLE, WorldTask, begin_world_task, calls_of
from server.environments.world import JsonObject
from server.progress import ProgressListener
from server.provisioning.fetched import cache_folder, fetched_entries
from server.provisioning.tau_database import database_digest
from server.settings import Settings, read_settings

__all__ = ["ForeignWorld", "Verdict", "open_foreign_world"]

_READS = {
    "bfcl": (
        "get_*", "check_*", "estimate_*", "find_*", "view_*", "list_*", "search_*", "compute_*", "display*",
        "ls", "cat", "pwd", "find", "grep", "wc", "tail", "diff", "du",
    ),
    "retail": ("get_*", "find_*", "list_*", "search_*", "calculate"),
    "airline": ("get_*", "find_*", "list_*", "search_*", "calculate"),
    "textworld": (),
}  # fmt: skip
"""What only reads, by server; anything else writes, and is allowed, as an operator would say."""
_BFCL_TASKS = 200
_GAMES_LOOKED_AT = 6
_ROOM = "\n\n-= "
"""Where a game's instruction goes on with the first room: seen there, not asked for."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a world's own checker said."""

    right: bool
    detail: str


class ForeignWorld(Protocol):
    """One world behind a bank, in one task at a time."""

    @property
    def server(self) -> str:
        """The server's name in the configuration."""
        ...

    @property
    def settings(self) -> Settings:
        """Of the bank."""
        ...

    async def find(self, families: Sequence[ForeignFamily], each: int, bank: Bank) -> list[ForeignTask]:
        """Return so many tasks of each family, in the order in which the world has them."""
        ...

    async def begin(self, task: ForeignTask, bank: Bank) -> None:
        """Put the world into the state in which a task begins."""
        ...

    async def judge(self, task: ForeignTask, outputs: JsonValue) -> Verdict:
        """Return whether all that was called since the task began does what it asks for."""
        ...


@asynccontextmanager
async def open_foreign_world(
    name: WorldName, folder: Path, listener: ProgressListener
) -> AsyncGenerator[ForeignWorld]:
    """Yield a world, its packages fetched where they are missing, nothing started.

    Raises:
        BenchError: they cannot be fetched.
    """
    async with AsyncExitStack() as stack:
        own = read_settings(config=_config(folder, {}, {}), store=folder / "store.db")
        definition = built_in(name, own, listener)
        if name in ("tau-retail", "tau-airline"):
            yield _TauWorld(name.removeprefix("tau-"), folder)
            return
        arguments = (str(cache_folder() / "games"),) if name == "textworld" else ()
        definition = replace(definition, command=(*definition.command, *arguments))
        pool = await stack.enter_async_context(open_instances({name: definition}))
        world = _ServedWorld(name, arguments, folder, await pool.create(name))
        yield world


def _config(folder: Path, servers: JsonObject, own: JsonObject) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({"mcpServers": servers, "skillbank": own}), encoding="utf-8")
    return path


def _settings(folder: Path, server: str, entry: JsonValue) -> Settings:
    effects: JsonObject = {"*": "write", **dict.fromkeys(_READS[server], "read")}
    own: JsonObject = {
        "effects": {server: effects},
        "allow": {server: ["*"]},
        "curation": {"withhold": 0, "audit_every": 0},
    }
    config = _config(folder, {server: entry}, own)
    return Settings(config, folder / "store.db", environment=dict(os.environ))


@dataclass
class _ServedWorld:
    """A world of the environment service behind a tool server of ours, and the judge's beside it."""

    name: str
    arguments: tuple[str, ...]
    folder: Path
    checker: Instance
    attempts: int = 0

    @property
    def server(self) -> str:
        return self.name

    @property
    def settings(self) -> Settings:
        module = "server.environments.tool_server"
        entry: JsonObject = {
            "command": sys.executable,
            "args": ["-m", module, self.name, *self.arguments],
            "env": {TASK_VARIABLE: str(self._task_file)},
        }
        return _settings(self.folder, self.name, entry)

    @property
    def _task_file(self) -> Path:
        return self.folder / "world_task.json"

    async def find(self, families: Sequence[ForeignFamily], each: int, bank: Bank) -> list[ForeignTask]:
        del bank
        if self.name == "textworld":
            return [task for family in families for task in await self._games(family, each)]
        wanted = {family.calls: family for family in families}
        found: dict[str, list[ForeignTask]] = {family.id: [] for family in families}
        for number in range(_BFCL_TASKS):
            wanting = [one for one in families if len(found[one.id]) < each]
            if not wanting:
                break
            task_id = f"multi_turn_base_{number}"
            turns = await self._reference(task_id, None)
            for at, turn in enumerate(turns):
                family = wanted.get(tuple(tool for tool, _ in turn))
                if family is not None and family in wanting and not _has(found[family.id], task_id):
                    words = await self._words(task_id, turns[:at])
                    found[family.id].append(
                        ForeignTask(
                            family,
                            f"{task_id}/{at}",
                            words,
                            turn,
                            task_id,
                            before=tuple(turns[:at]),
                            after=tuple(turns[at + 1 :]),
                        )
                    )
        return [task for family in families for task in found[family.id]]

    async def _games(self, family: ForeignFamily, each: int) -> list[ForeignTask]:
        games: list[ForeignTask] = []
        for seed in range(1, (max(each, _GAMES_LOOKED_AT) if each > 2 else each) + 1):
            played = await self.checker.reset(family.task, seed)
            turns = self._turns()
            words = str(played.observation["instruction"]).partition(_ROOM)[0]
            games.append(ForeignTask(family, f"{family.task}/{seed}", words, turns[0], family.task, seed))
        lengths = [len(game.calls) for game in games]
        usual = max(sorted(set(lengths)), key=lengths.count)
        return [game for game in games if len(game.calls) == usual][:each]

    async def _reference(self, task_id: str, seed: int | None) -> list[tuple[ForeignCall, ...]]:
        await self.checker.reset(task_id, seed)
        return self._turns()

    def _turns(self) -> list[tuple[ForeignCall, ...]]:
        reference = cast("dict[str, Any]", self.checker.state()["reference"])
        return [
            tuple((str(call["tool_name"]), dict(call["arguments"])) for call in turn)
            for turn in reference["turns"]
        ]

    async def _words(self, task_id: str, before: Sequence[Sequence[ForeignCall]]) -> str:
        """Return what a turn asks for, once those before it were played."""
        played = await self.checker.reset(task_id)
        for turn in before:
            await self._make(turn)
            played = await self.checker.step({"type": "submit", "answer": None})
        return str(played.observation["instruction"])

    async def _make(self, turn: Sequence[ForeignCall]) -> bool:
        """Make the calls of a turn in the judge's world; return whether the episode ended by them."""
        for tool, arguments in turn:
            given: JsonObject = {"type": "call_tool", "tool_name": tool, "arguments": arguments}
            if (await self.checker.step(given)).done:
                return True
        return False

    async def begin(self, task: ForeignTask, bank: Bank) -> None:
        del bank
        self.attempts += 1
        before = tuple(tuple(_as_json(call) for call in turn) for turn in task.before)
        said = WorldTask(id=task.world_task, seed=task.seed, before=before, attempt=self.attempts)
        begin_world_task(self._task_file, said)

    async def judge(self, task: ForeignTask, outputs: JsonValue) -> Verdict:
        await self.checker.reset(task.world_task, task.seed)
        made = [
            (str(call["tool_name"]), cast("dict[str, JsonValue]", call["arguments"]))
            for call in calls_of(self._task_file)
        ]
        is_over = False
        for turn in (*task.before, made, *task.after):
            is_over = is_over or await self._make(turn)
            if not is_over:
                is_over = (await self.checker.step({"type": "submit", "answer": outputs})).done
        state = self.checker.state()
        return Verdict(state["reward"] == 1.0, str(state["detail"]))


def _has(tasks: Sequence[ForeignTask], task_id: str) -> bool:
    return any(task.world_task == task_id for task in tasks)


def _as_json(call: ForeignCall) -> JsonObject:
    return {"tool_name": call[0], "arguments": call[1]}


@dataclass
class _TauWorld:
    """A domain of τ²-bench on its own server."""

    domain: str
    folder: Path
    _known: dict[str, ForeignTask] = field(default_factory=dict[str, ForeignTask])

    @property
    def server(self) -> str:
        return self.domain

    @property
    def settings(self) -> Settings:
        entries, _ = fetched_entries([self.domain], cache_folder(), self.folder / "state")
        return _settings(self.folder, self.domain, entries[self.domain])

    async def find(self, families: Sequence[ForeignFamily], each: int, bank: Bank) -> list[ForeignTask]:
        found: list[ForeignTask] = []
        for family in families:
            alike = [
                one
                for one in tau_tasks(self.domain)
                if tuple(name for name, _ in one.reference_calls) == family.calls
            ]
            for one in alike[:each]:
                task = ForeignTask(
                    family, one.id, one.task, tuple(one.reference_calls), one.id, says=one.communicate
                )
                await self.begin(task, bank)
                outcomes = [
                    await bank.call_tool(ToolId(self.domain, name), given) for name, given in task.calls
                ]
                if all(isinstance(outcome, CallSuccess) for outcome in outcomes):
                    found.append(replace(task, state=self._database()))
        return found

    async def begin(self, task: ForeignTask, bank: Bank) -> None:
        del task
        outcome = await bank.call_tool(ToolId(self.domain, "reset_state"), {})
        if not isinstance(outcome, CallSuccess):
            raise BenchError(f"the state of {self.domain} cannot be reset: {outcome.message}")

    async def judge(self, task: ForeignTask, outputs: JsonValue) -> Verdict:
        if self._database() != task.state:
            return Verdict(False, "the database is not as the reference leaves it")
        said = json.dumps(outputs, ensure_ascii=False).lower()
        if unsaid := [one for one in task.says if one.lower() not in said]:
            return Verdict(False, f"the answer does not say {', '.join(unsaid)}")
        return Verdict(True, "the database is as the reference leaves it")

    def _database(self) -> str:
        return database_digest(self.folder / "state" / self.domain, self.domain)

"""The environments part of the drive benchmark: the service over its own wire, with a real tool server.

Episodes are played by the reference, so that what is measured is the service. Every instance has a worker
process and a hash server of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import anyio
from websockets.asyncio.client import ClientConnection, connect

from server.bench.drive_report import EnvironmentsMeasure
from server.bench.errors import BenchError
from server.bench.measures import Spread, spread_of
from server.environments.definitions import Definition, of_task_file
from server.environments.instance import Instance
from server.environments.instances import Instances, open_instances
from server.environments.limits import Limits
from server.environments.serving import environments_app
from server.environments.world import JsonObject
from server.progress import Progress, ProgressListener, ignore_progress
from server.provisioning.demo_servers import demo_document
from server.settings import read_settings
from server.surface.serving import serve_app

__all__ = ["measure_environments"]

_NAME = "hashes"
_WORDS = ("milk", "bread", "salt", "tea")
_AT_ONCE = 16
_STEPS_EACH = 5
_START_SECONDS = 120.0


async def measure_environments(
    quick: bool = False, listener: ProgressListener = ignore_progress
) -> EnvironmentsMeasure:
    """Return what the service does, measured now, over OpenEnv's web socket.

    Raises:
        BenchError: an answer of the service is not what an episode needs.
        DemoServersMissing: the hash server is not installed.
    """
    episodes, steps = (3, 30) if quick else (10, 300)
    async with _served(steps) as service:
        one = await _one_instance(service.url, episodes, steps)
        speed = f"{one.resets_per_second:.1f} resets and {one.steps_per_second:.0f} steps a second"
        listener(Progress("bench", f"environments: {speed} of one instance"))
        many = await _many(service)
        listener(
            Progress("bench", f"environments: {many.rewarded} of {_AT_ONCE - 1} beside a killed one got 1")
        )
    return EnvironmentsMeasure(
        first_reset_ms=one.first_ms,
        reset_ms=one.reset_ms,
        step_ms=one.step_ms,
        resets_per_second=one.resets_per_second,
        steps_per_second=one.steps_per_second,
        at_once=_AT_ONCE,
        steps_per_second_at_once=many.steps_per_second,
        resets_per_second_at_once=many.resets_per_second,
        killed_told=many.killed_told,
        killed_reset=many.killed_reset,
        rewarded=many.rewarded,
    )


@asynccontextmanager
async def _served(steps: int) -> AsyncGenerator[_Service]:
    """Yield a service with one environment, on a free port."""
    with TemporaryDirectory(prefix="skillbank-bench-") as made:
        definition = _definition(Path(made))
        ready = anyio.Event()
        urls: list[str] = []

        def tell(url: str) -> None:
            urls.append(url)
            ready.set()

        limits = Limits(instances=_AT_ONCE, steps=steps + 10)
        async with open_instances({_NAME: definition}, limits) as pool, anyio.create_task_group() as group:
            group.start_soon(serve_app, partial(environments_app, pool), ("127.0.0.1", 0), tell)
            with anyio.fail_after(_START_SECONDS):
                await ready.wait()
            yield _Service(f"{urls[0].replace('http', 'ws', 1)}/{_NAME}/ws", pool)
            group.cancel_scope.cancel()


def _definition(folder: Path) -> Definition:
    config, tasks = folder / "config.json", folder / "tasks.jsonl"
    config.write_text(json.dumps(demo_document(["hashlib"])), encoding="utf-8")
    tasks.write_text("".join(json.dumps(_task(word)) + "\n" for word in _WORDS), encoding="utf-8")
    return of_task_file(_NAME, tasks, read_settings(config=config, store=folder / "store.db"))


def _task(word: str) -> JsonObject:
    digest = _digest(word)
    node: JsonObject = {
        "id": "h",
        "tool": {"server": "hashlib", "tool": "hash_sha256"},
        "args": {"data": word},
    }
    return {
        "id": f"sha-{word}",
        "task": f"Compute the SHA-256 hash of {word!r}. Output: digest.",
        "servers": ["hashlib"],
        "inputs": {},
        "workflow": {"name": "hash", "nodes": [node], "outputs": {"digest": "$nodes.h.output#/text"}},
        "assertions": [f"output.digest == '{digest}'"],
        "answer": {"digest": digest},
    }


def _digest(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Service:
    url: str
    """Of the web socket."""
    pool: Instances


@dataclass(frozen=True, slots=True)
class _One:
    first_ms: float
    reset_ms: Spread
    step_ms: Spread
    resets_per_second: float
    steps_per_second: float


@dataclass(frozen=True, slots=True)
class _Many:
    resets_per_second: float
    steps_per_second: float
    killed_told: str
    killed_reset: bool
    rewarded: int


class _Session:
    """One web socket, which is one instance."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def say(self, kind: str, data: JsonObject) -> JsonObject:
        """Return the whole answer to a message, an error as well."""
        await self._socket.send(json.dumps({"type": kind, "data": data}))
        return cast("JsonObject", json.loads(await self._socket.recv()))

    async def ask(self, kind: str, data: JsonObject) -> JsonObject:
        """Return the data of an answer.

        Raises:
            BenchError: it is an error.
        """
        answer = await self.say(kind, data)
        if answer["type"] == "error":
            raise BenchError(f"the environment service answered {kind} with {answer['data']}")
        return cast("JsonObject", answer["data"])

    async def reset(self, word: str) -> None:
        """Begin the task of a word."""
        await self.ask("reset", {"task_id": f"sha-{word}"})

    async def hash(self, word: str) -> None:
        """Make the call of the reference, and see that it really gave the hash."""
        action: JsonObject = {"type": "call_tool", "tool_name": "hash_sha256", "arguments": {"data": word}}
        seen = await self.ask("step", action)
        if _digest(word) not in json.dumps(seen["observation"]):
            raise BenchError(f"hash_sha256 gave no hash: {seen['observation']}")

    async def submit(self, word: str) -> float | None:
        """End the episode with the right answer and return its reward."""
        ended = await self.ask("step", {"type": "submit", "answer": {"digest": _digest(word)}})
        reward = ended["reward"]
        return float(reward) if isinstance(reward, int | float) else None


@asynccontextmanager
async def _session(url: str) -> AsyncGenerator[_Session]:
    async with connect(url, open_timeout=_START_SECONDS, ping_interval=None) as socket:
        yield _Session(socket)


async def _one_instance(url: str, episodes: int, steps: int) -> _One:
    taken: list[float] = []
    async with _session(url) as session:
        first = await _milliseconds(session, "milk")
        resets = [await _milliseconds(session, _WORDS[n % len(_WORDS)]) for n in range(episodes)]
        for _ in range(steps):
            began = time.perf_counter()
            await session.hash("milk")
            taken.append((time.perf_counter() - began) * 1000)
    return _One(first, spread_of(resets), spread_of(taken), _per_second(resets), _per_second(taken))


async def _milliseconds(session: _Session, word: str) -> float:
    began = time.perf_counter()
    await session.reset(word)
    return (time.perf_counter() - began) * 1000


def _per_second(milliseconds: Sequence[float]) -> float:
    return 1000 * len(milliseconds) / sum(milliseconds)


async def _many(service: _Service) -> _Many:
    """Have all instances at once, kill one's worker in the middle, and let all of them end."""
    rewards: list[float | None] = []

    async def end(session: _Session, word: str) -> None:
        rewards.append(await session.submit(word))

    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(_session(service.url)) for _ in range(_AT_ONCE)]
        sessions = [(session, _WORDS[number % len(_WORDS)]) for number, session in enumerate(opened)]
        resetting = await _all(sessions, _Session.reset)
        stepping = await _all(sessions, _several)
        (killed, word), *others = sessions
        _kill(service.pool.find(str((await killed.ask("state", {}))["instance_id"])))
        told = await killed.say("step", {"type": "submit", "answer": None})
        await _all(others, end)
        await killed.reset(word)
        await killed.hash(word)
        again = await killed.submit(word) == 1.0
    return _Many(
        _AT_ONCE / resetting,
        _STEPS_EACH * _AT_ONCE / stepping,
        str(cast("JsonObject", told["data"]).get("code")) if told["type"] == "error" else "no error",
        again,
        sum(reward == 1.0 for reward in rewards),
    )


async def _all(
    sessions: Sequence[tuple[_Session, str]], do: Callable[[_Session, str], Coroutine[Any, Any, None]]
) -> float:
    """Do the same in each at once, and return the seconds it took."""
    began = time.perf_counter()
    async with anyio.create_task_group() as group:
        for session, word in sessions:
            group.start_soon(do, session, word)
    return time.perf_counter() - began


async def _several(session: _Session, word: str) -> None:
    for _ in range(_STEPS_EACH):
        await session.hash(word)


def _kill(instance: Instance) -> None:
    if instance.pid is None:
        raise BenchError(f"instance {instance.id} was reset and has no process")
    os.kill(instance.pid, signal.SIGKILL)

"""One agent's place in one environment: an episode in a worker process of its own.

Wires (`openenv`, `agentevolver`) turn their messages into these calls. Rewards stand beside
observations, never in them.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Literal, Protocol, cast

import anyio
from pydantic import JsonValue

from server.environments.crediting import Episode, MadeCall, label_calls
from server.environments.definitions import Definition, TaskList
from server.environments.errors import BadRequest
from server.environments.limits import Limits
from server.environments.worker import Worker
from server.environments.world import JsonObject

__all__ = ["Instance", "Played", "Surroundings"]


class Surroundings(Protocol):
    """What an instance needs of the service."""

    @property
    def limits(self) -> Limits:
        """What is spent at most."""
        ...

    async def tasks(self, environment: str) -> TaskList:
        """Return the tasks of an environment."""
        ...

    async def start_worker(self, definition: Definition) -> Worker:
        """Start a worker of an environment."""
        ...

    def keep(self, group: str | None, task_id: str, episode: Episode, reward: float | None) -> None:
        """Keep a finished episode with its group."""
        ...


@dataclass(frozen=True, slots=True)
class Played:
    """What one reset or step came to."""

    observation: JsonObject
    reward: float | None
    done: bool
    truncated: bool = False
    attribution: JsonValue = None

    def to_json(self) -> JsonObject:
        """Return it as the wire has it."""
        beside: JsonObject = {} if self.attribution is None else {"attribution": self.attribution}
        return {
            "observation": self.observation,
            "reward": self.reward,
            "done": self.done,
            "terminated": self.done and not self.truncated,
            "truncated": self.truncated,
            **beside,
        }


@dataclass
class EpisodeProgress:
    """How far an episode is."""

    episode_id: str
    task_id: str
    seed: int | None
    group: str | None
    instruction: str
    tools: tuple[JsonObject, ...]
    reference: JsonObject
    attributes: bool
    steps: int = 0
    ended: Literal["no", "yes", "truncated"] = "no"
    reward: float | None = None
    detail: str = ""
    answer: JsonValue = None
    calls: list[MadeCall] = field(default_factory=list[MadeCall])

    @property
    def finished(self) -> Episode:
        return Episode(tuple(self.calls), self.answer, self.reward or 0.0)


class Instance:
    """One agent's place in one environment. Calls of one instance wait for each other."""

    def __init__(self, instance_id: str, definition: Definition, pool: Surroundings) -> None:
        self.id = instance_id
        self.environment = definition.name
        self._definition = definition
        self._pool = pool
        self._turn = anyio.Lock()
        self._worker: Worker | None = None
        self._progress: EpisodeProgress | None = None
        self.last_used = anyio.current_time()

    @property
    def pid(self) -> int | None:
        """Number of its worker process, None before the first reset."""
        return None if self._worker is None else self._worker.pid

    @property
    def is_busy(self) -> bool:
        """Whether something is under way in it."""
        return self._turn.locked()

    async def reset(
        self,
        task_id: str | None = None,
        seed: int | None = None,
        *,
        episode_id: str | None = None,
        group: str | None = None,
        attribution: bool = False,
    ) -> Played:
        """Begin an episode; a failed worker is replaced.

        Args:
            task_id: None: the seed picks one, the first without.
            seed: of what is drawn, where the world draws anything.
            episode_id: None: one is made up.
            group: episodes of one task whose advantages belong together.
            attribution: whether the end of the episode says what each call was good for.

        Raises:
            BadRequest: no such task.
            WorkerFailed: the world could not begin.
        """
        async with self._turn:
            self.last_used = anyio.current_time()
            tasks = await self._pool.tasks(self.environment)
            chosen, task = _chosen(tasks, task_id, seed)
            worker = await self._living()
            begun = await worker.ask("reset", {"task": task, "seed": seed}, self._pool.limits.reset_seconds)
            await worker.notice()
            self._progress = EpisodeProgress(
                episode_id or secrets.token_hex(8),
                chosen,
                seed,
                group,
                str(begun["instruction"]),
                _tools(begun),
                cast("JsonObject", begun.get("reference") or {}),
                attribution,
            )
            return Played({**self._seen(), "tools": list(self._progress.tools), "metadata": {}}, None, False)

    async def step(self, action: JsonObject) -> Played:
        """Do what an action says: `list_tools`, `call_tool` or `submit`.

        Raises:
            BadRequest: it is no action, or no episode runs.
            WorkerFailed: the worker is gone.
        """
        async with self._turn:
            self.last_used = anyio.current_time()
            progress = self._running()
            kind = action.get("type")
            if kind == "list_tools":
                return Played({"tools": list(progress.tools), "metadata": {}}, None, False)
            if kind not in ("call_tool", "submit"):
                raise BadRequest(
                    f"unknown action type {kind!r}: list_tools, call_tool with tool_name and arguments, or"
                    " submit with answer",
                    code="INVALID_ACTION",
                )
            progress.steps += 1
            if progress.steps > self._pool.limits.steps:
                return await self._truncate(progress)
            return await (
                self._call(action, progress) if kind == "call_tool" else self._submit(action, progress)
            )

    async def evaluate(self) -> float | None:
        """Return the reward: of the end, else of the state as it stands."""
        async with self._turn:
            self.last_used = anyio.current_time()
            progress = self._begun()
            if progress.ended != "no":
                return progress.reward
            if self._worker is None:
                return None
            return _reward(await self._worker.ask("score", {}, self._pool.limits.step_seconds))

    def state(self) -> JsonObject:
        """Return what a trainer sees and an agent does not: reference and credit among it."""
        progress = self._progress
        if progress is None:
            return {"episode_id": None, "step_count": 0, "instance_id": self.id}
        return {
            "episode_id": progress.episode_id,
            "step_count": progress.steps,
            "instance_id": self.id,
            "environment": self.environment,
            "task_id": progress.task_id,
            "seed": progress.seed,
            "done": progress.ended != "no",
            "reward": progress.reward,
            "detail": progress.detail,
            "reference": progress.reference,
            "attribution": self._attribution(progress) if progress.ended != "no" else None,
        }

    @property
    def tools(self) -> tuple[JsonObject, ...]:
        """The tools of the running episode.

        Raises:
            BadRequest: none has begun.
        """
        return self._begun().tools

    async def close(self) -> None:
        """End its process. Closing twice is allowed."""
        if self._worker is not None:
            await self._worker.end()

    async def _living(self) -> Worker:
        if self._worker is not None and self._worker.has_failed:
            await self._worker.end()
            self._worker = None
        if self._worker is None:
            self._worker = await self._pool.start_worker(self._definition)
        return self._worker

    async def _call(self, action: JsonObject, progress: EpisodeProgress) -> Played:
        name, arguments = action.get("tool_name"), action.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise BadRequest(
                "call_tool has 'tool_name', a text, and 'arguments', an object", code="INVALID_ACTION"
            )
        given: JsonObject = {"tool": name, "arguments": arguments}
        called = await self._ask("call", given)
        is_error = bool(called.get("is_error"))
        progress.calls.append(MadeCall(name, arguments, called.get("data"), is_error))
        error: JsonValue = None
        if is_error:
            kind = called.get("error_type") or "execution_error"
            error = {"error_type": kind, "message": str(called.get("data"))}
        result: JsonObject = {
            "content": called.get("content"),
            "structured_content": called.get("structured"),
            "is_error": is_error,
            "data": called.get("data"),
            "meta": None,
        }
        seen: JsonObject = {"tool_name": name, "result": result, "error": error, "metadata": {}}
        if called.get("done"):
            return self._end(called, progress, seen)
        return Played(seen, None, False)

    async def _submit(self, action: JsonObject, progress: EpisodeProgress) -> Played:
        answer = action.get("answer")
        said = await self._ask("submit", {"answer": answer})
        if said.get("done"):
            progress.answer = answer
            return self._end(said, progress, {"instruction": None, "metadata": {}})
        progress.instruction = str(said["instruction"])
        progress.tools = _tools(said)
        return Played({**self._seen(), "tools": list(progress.tools), "metadata": {}}, None, False)

    def _end(self, said: JsonObject, progress: EpisodeProgress, seen: JsonObject) -> Played:
        progress.ended = "yes"
        progress.reward, progress.detail = _reward(said), str(said.get("detail", ""))
        self._pool.keep(progress.group, progress.task_id, progress.finished, progress.reward)
        credit = self._attribution(progress) if progress.attributes else None
        return Played(seen, progress.reward, True, attribution=credit)

    async def _truncate(self, progress: EpisodeProgress) -> Played:
        said = await self._ask("score", {})
        progress.ended = "truncated"
        progress.reward = _reward(said)
        progress.detail = f"over {self._pool.limits.steps} steps; {said.get('detail', '')}"
        self._pool.keep(progress.group, progress.task_id, progress.finished, progress.reward)
        seen: JsonObject = {"instruction": f"over {self._pool.limits.steps} steps", "metadata": {}}
        credit = self._attribution(progress) if progress.attributes else None
        return Played(seen, progress.reward, True, truncated=True, attribution=credit)

    async def _ask(self, operation: str, given: JsonObject) -> JsonObject:
        if self._worker is None:
            raise BadRequest("nothing was reset", code="NOT_RESET", status=409)
        return await self._worker.ask(operation, given, self._pool.limits.step_seconds)

    def _seen(self) -> JsonObject:
        progress = self._begun()
        return {"instruction": progress.instruction, "task_id": progress.task_id}

    def _begun(self) -> EpisodeProgress:
        if self._progress is None:
            raise BadRequest("no episode has begun: reset first", code="NOT_RESET", status=409)
        return self._progress

    def _running(self) -> EpisodeProgress:
        progress = self._begun()
        if progress.ended != "no":
            raise BadRequest("the episode has ended: reset begins another", code="EPISODE_ENDED", status=409)
        return progress

    def _attribution(self, progress: EpisodeProgress) -> JsonValue:
        labels = label_calls(progress.finished)
        return [{"call": one.node, "label": one.label, "reason": one.reason} for one in labels]


def _chosen(tasks: TaskList, task_id: str | None, seed: int | None) -> tuple[str, JsonObject]:
    every = {name: task for split in tasks.values() for name, task in split.items()}
    if task_id is None:
        names = list(every)
        task_id = names[(seed or 0) % len(names)]
    if task_id not in every:
        shown = ", ".join(list(every)[:5])
        raise BadRequest(
            f"no task {task_id!r}; there are {len(every)}: {shown}, …", code="NOT_FOUND", status=404
        )
    return task_id, every[task_id]


def _tools(said: JsonObject) -> tuple[JsonObject, ...]:
    return tuple(cast("list[JsonObject]", said.get("tools") or []))


def _reward(said: JsonObject) -> float | None:
    reward = said.get("reward")
    return float(reward) if isinstance(reward, int | float) else None

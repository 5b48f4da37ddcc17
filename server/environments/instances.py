"""The instances there are: created and released within limits, reaped when idle, ended with the service."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import cast

import anyio
from anyio.abc import TaskGroup
from pydantic import JsonValue

from server.environments.crediting import Episode, group_advantages, label_calls
from server.environments.definitions import Definition, TaskList
from server.environments.errors import AtCapacity, BadRequest
from server.environments.instance import Instance
from server.environments.limits import Limits
from server.environments.worker import Worker, start_worker
from server.environments.world import JsonObject

__all__ = ["Instances", "open_instances"]


class Instances:
    """All of them. Made by `open_instances`."""

    def __init__(self, definitions: Mapping[str, Definition], limits: Limits, group: TaskGroup) -> None:
        self.definitions = definitions
        self.limits = limits
        self._group = group
        self._held: dict[str, Instance] = {}
        self._workers: list[Worker] = []
        self._tasks: dict[str, TaskList] = {}
        self._listing = anyio.Lock()
        self._groups: dict[tuple[str, str], list[tuple[Episode, float | None]]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def definition(self, name: str) -> Definition:
        """Return an environment by name.

        Raises:
            BadRequest: there is none.
        """
        if name not in self.definitions:
            raise BadRequest(
                f"no environment {name!r}; there are {', '.join(self.definitions)}",
                code="NOT_FOUND",
                status=404,
            )
        return self.definitions[name]

    async def create(self, environment: str, instance_id: str | None = None) -> Instance:
        """Return a new instance; its process starts with the first reset.

        Raises:
            AtCapacity: there are as many as are allowed.
            BadRequest: no such environment, or the id is in use.
        """
        definition = self.definition(environment)
        if instance_id in self._held:
            raise BadRequest(f"instance {instance_id!r} is in use: release it first", status=409)
        if len(self._held) >= self.limits.instances:
            raise AtCapacity(
                f"all {self.limits.instances} instances are in use: release one, or serve more"
                " (--max-instances)"
            )
        instance = Instance(instance_id or secrets.token_hex(12), definition, self)
        self._held[instance.id] = instance
        return instance

    def find(self, instance_id: str) -> Instance:
        """Return an instance by id.

        Raises:
            BadRequest: there is none, or it was released.
        """
        if instance_id not in self._held:
            raise BadRequest(
                f"no instance {instance_id!r}: it was never created, or was released or idle for over"
                f" {self.limits.idle_seconds:g} s",
                code="NO_INSTANCE",
                status=404,
            )
        return self._held[instance_id]

    async def release(self, instance_id: str) -> None:
        """End an instance and all it started; who asked may be cancelled, the ending goes on.

        Raises:
            BadRequest: there is none.
        """
        self.find(instance_id)
        await self.let_go(instance_id).wait()

    def let_go(self, instance_id: str) -> anyio.Event:
        """Begin to end an instance, if it is still there; the event says when it has ended."""
        ended = anyio.Event()
        instance = self._held.pop(instance_id, None)
        if instance is None:
            ended.set()
        else:
            self._group.start_soon(_close, instance, ended)
        return ended

    async def tasks(self, environment: str) -> TaskList:
        """Return the tasks of an environment by split; a worker is asked the first time where it must be.

        Raises:
            BadRequest: no such environment.
            WorkerFailed: its worker could not say.
        """
        definition = self.definition(environment)
        if definition.tasks is not None:
            return definition.tasks
        async with self._listing:
            if environment not in self._tasks:
                worker = await self.start_worker(definition)
                try:
                    listed = await worker.ask("tasks", {}, self.limits.reset_seconds)
                finally:
                    await worker.end()
                splits = cast("dict[str, list[str]]", listed["splits"])
                self._tasks[environment] = {
                    split: {task: {"id": task} for task in ids} for split, ids in splits.items()
                }
        return self._tasks[environment]

    async def start_worker(self, definition: Definition) -> Worker:
        """Start a worker of an environment.

        Raises:
            WorkerFailed: it cannot be started.
        """
        worker = await start_worker(
            definition.command, dict(definition.variables), self.limits.message_bytes, self._group
        )
        self._workers = [one for one in self._workers if not one.is_gone] + [worker]
        return worker

    def keep(self, group: str | None, task_id: str, episode: Episode, reward: float | None) -> None:
        """Keep a finished episode with its group."""
        if group is None:
            return
        self._groups.setdefault((group, task_id), []).append((episode, reward))
        while len(self._groups) > self.limits.kept_groups:
            del self._groups[next(iter(self._groups))]

    def group(self, group: str) -> list[JsonObject]:
        """Return the finished episodes of a group, task by task, with labels and advantages.

        Raises:
            BadRequest: no episode of this group has finished.
        """
        found = {task: kept for (name, task), kept in self._groups.items() if name == group}
        if not found:
            raise BadRequest(
                f"no episode of group {group!r} has finished: name it in reset as 'group'",
                code="NOT_FOUND",
                status=404,
            )
        return [_group_report(task, kept) for task, kept in found.items()]

    async def reap(self, now: Callable[[], float]) -> list[str]:
        """Release the instances that nobody has used for too long, and return their ids."""
        idle = [
            one.id
            for one in self._held.values()
            if not one.is_busy and now() - one.last_used > self.limits.idle_seconds
        ]
        for ended in [self.let_go(instance_id) for instance_id in idle]:
            await ended.wait()
        return idle

    async def close(self) -> None:
        """End all of them, also those whose release was cut off by the end of the server's tasks."""
        self._held.clear()
        async with anyio.create_task_group() as group:
            for worker in self._workers:
                group.start_soon(worker.end)


@asynccontextmanager
async def open_instances(
    definitions: Mapping[str, Definition], limits: Limits | None = None
) -> AsyncGenerator[Instances]:
    """Yield a pool without instances; leaving it ends all of them, and all they started."""
    async with anyio.create_task_group() as group:
        pool = Instances(definitions, limits or Limits(), group)
        group.start_soon(_reap_for_ever, pool)
        try:
            yield pool
        finally:
            with anyio.CancelScope(shield=True):
                await pool.close()
            group.cancel_scope.cancel()


async def _close(instance: Instance, ended: anyio.Event) -> None:
    await instance.close()
    ended.set()


async def _reap_for_ever(pool: Instances) -> None:
    while True:
        await anyio.sleep(min(300.0, max(0.05, pool.limits.idle_seconds / 4)))
        await pool.reap(anyio.current_time)


def _group_report(task: str, kept: list[tuple[Episode, float | None]]) -> JsonObject:
    scored = [episode for episode, reward in kept if reward is not None]
    found = group_advantages(scored)
    episodes: list[JsonValue] = [
        {
            "reward": episode.reward,
            "labels": [label.label for label in label_calls(episode)],
            "advantages": list[JsonValue](each),
        }
        for episode, each in zip(scored, found, strict=True)
    ]
    return {"task_id": task, "episodes": episodes, "unscored": len(kept) - len(scored)}

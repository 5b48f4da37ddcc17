"""The task routes that OpenEnv shares with others: environments, splits, and tasks by number."""

from __future__ import annotations

from typing import cast

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from server.environments.errors import BadRequest
from server.environments.instances import Instances
from server.environments.messages import field_of, read_body
from server.environments.world import JsonObject

__all__ = ["public_task", "task_routes"]

_HIDDEN = frozenset({"assertions", "answer", "workflow", "reference_calls", "communicate", "check"})
"""Of a task, what its check stands on: these routes are read by those who make prompts of tasks."""
_TYPES = frozenset({"train", "validation", "test"})


def task_routes(pool: Instances) -> list[BaseRoute]:
    """Return the routes, of all environments."""
    wire = _TaskWire(pool)
    return [
        Route("/list_environments", wire.environments),
        Route("/{env}/splits", wire.splits),
        Route("/{env}/tasks", wire.tasks, methods=["POST"]),
        Route("/{env}/num_tasks", wire.count, methods=["POST"]),
        Route("/{env}/task", wire.task, methods=["POST"]),
        Route("/{env}/task_range", wire.task_range, methods=["POST"]),
    ]


def public_task(task: JsonObject) -> JsonObject:
    """Return a task without what its check stands on."""
    return {name: value for name, value in task.items() if name not in _HIDDEN}


class _TaskWire:
    def __init__(self, pool: Instances) -> None:
        self._pool = pool

    async def environments(self, request: Request) -> Response:
        del request
        return JSONResponse(list(self._pool.definitions))

    async def splits(self, request: Request) -> Response:
        splits = await self._pool.tasks(request.path_params["env"])
        return JSONResponse(
            [
                {"name": name, "type": name if name in _TYPES else "validation", "num_tasks": len(tasks)}
                for name, tasks in splits.items()
            ]
        )

    async def tasks(self, request: Request) -> Response:
        listed, _ = await self._split(request)
        return JSONResponse({"tasks": listed, "env_name": request.path_params["env"]})

    async def count(self, request: Request) -> Response:
        listed, _ = await self._split(request)
        return JSONResponse({"num_tasks": len(listed)})

    async def task(self, request: Request) -> Response:
        listed, given = await self._split(request)
        index = field_of(given, "index", int)
        if index is None or not 0 <= index < len(listed):
            raise BadRequest(
                f"'index' is a number from 0 to {len(listed) - 1}", code="VALIDATION_ERROR", status=422
            )
        return JSONResponse({"task": listed[index]})

    async def task_range(self, request: Request) -> Response:
        listed, given = await self._split(request)
        start, stop = field_of(given, "start", int) or 0, field_of(given, "stop", int)
        return JSONResponse({"tasks": listed[max(0, start) : len(listed) if stop is None else max(0, stop)]})

    async def _split(self, request: Request) -> tuple[list[JsonValue], JsonObject]:
        given = await read_body(request, self._pool.limits.message_bytes)
        splits = await self._pool.tasks(request.path_params["env"])
        wanted = field_of(given, "split", str) or next(iter(splits))
        if wanted not in splits:
            raise BadRequest(
                f"no split {wanted!r}; there are {', '.join(splits)}", code="NOT_FOUND", status=404
            )
        return [cast("JsonValue", public_task(task)) for task in splits[wanted].values()], given

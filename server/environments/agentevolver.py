"""AgentEvolver's six routes: task ids, create, step, evaluate, info and release, all of them POST.

Paper: AgentEvolver (environment service, §4; facts §4.6). Differs: no Ray, an instance is a process;
an assistant message that calls a tool is its JSON, one object or a list, one that calls none is the
answer; the reward is the check's, where the paper's MCP environment has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import cast

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from server.environments.errors import BadRequest, EnvironmentFailure
from server.environments.instance import Instance, Played
from server.environments.instances import Instances
from server.environments.messages import error_body, field_of, object_of, read_body
from server.environments.world import JsonObject

__all__ = ["agentevolver_routes", "read_message"]

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_RULES = """\
You solve a task with tools. To call tools, answer with a JSON list alone:
[{"tool_name": NAME, "tool_args": {...}}]
Any other answer is your final one for this turn; where values are asked for, a JSON object of them.
Tools:
"""


def agentevolver_routes(pool: Instances) -> list[BaseRoute]:
    """Return the routes, of all environments: `env_type` in the body says which."""
    wire = _Wire(pool)
    posts = {
        "/get_env_profile": wire.profile,
        "/create": wire.create,
        "/step": wire.step,
        "/evaluate": wire.evaluate,
        "/get_info": wire.info,
        "/release": wire.release,
    }
    routes: list[BaseRoute] = [Route(path, _told(do, pool), methods=["POST"]) for path, do in posts.items()]
    return [*routes, Route("/healthz", wire.health)]


_Do = Callable[[JsonObject], Awaitable[JsonValue]]


def _told(do: _Do, pool: Instances) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that wraps what is done in `success` and `data`."""

    async def endpoint(request: Request) -> Response:
        try:
            data = await do(await read_body(request, pool.limits.message_bytes))
        except EnvironmentFailure as error:
            told: JsonObject = {"success": False, "data": None, "detail": str(error), **error_body(error)}
            return JSONResponse(told, status_code=error.status)
        return JSONResponse({"success": True, "data": data})

    return endpoint


def read_message(content: str) -> list[tuple[str, JsonObject]] | JsonValue:
    """Return the calls that an assistant's message makes, else the answer that it is."""
    fenced = _FENCED.search(content)
    text = (fenced.group(1) if fenced else content).strip()
    try:
        value = cast("JsonValue", json.loads(text))
    except ValueError:
        return content
    listed = value if isinstance(value, list) else [value]
    calls = [_call(one) for one in listed]
    found = [call for call in calls if call is not None]
    return found if found and len(found) == len(calls) else value


def _call(value: JsonValue) -> tuple[str, JsonObject] | None:
    if not isinstance(value, dict):
        return None
    name, arguments = value.get("tool_name"), value.get("tool_args", {})
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


class _Wire:
    def __init__(self, pool: Instances) -> None:
        self._pool = pool

    async def health(self, request: Request) -> Response:
        del request
        return PlainTextResponse("OK")

    async def profile(self, body: JsonObject) -> JsonValue:
        splits = await self._pool.tasks(_required(body, "env_type"))
        params = object_of(body, "params") or {}
        wanted = field_of(params, "split", str)
        if wanted is not None and wanted in splits:
            return list(splits[wanted])
        return [task for tasks in splits.values() for task in tasks]

    async def create(self, body: JsonObject) -> JsonValue:
        instance = await self._pool.create(_required(body, "env_type"), field_of(body, "instance_id", str))
        params = object_of(body, "params") or {}
        try:
            played = await instance.reset(
                field_of(body, "task_id", str),
                field_of(params, "seed", int),
                group=field_of(params, "group", str),
                attribution=bool(field_of(params, "attribution", bool)),
            )
        except BaseException:
            await self._pool.release(instance.id)
            raise
        system = _RULES + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in instance.tools)
        state: list[JsonValue] = [
            {"role": "system", "content": system},
            {"role": "user", "content": str(played.observation["instruction"])},
        ]
        info: JsonObject = {"instance_id": instance.id, "task_id": played.observation["task_id"]}
        return {"state": state, "info": info}

    async def step(self, body: JsonObject) -> JsonValue:
        instance = self._pool.find(_required(body, "instance_id"))
        message = object_of(body, "messages") or {}
        content = field_of(message, "content", str)
        if content is None:
            raise BadRequest("'messages' is one message with 'role' and 'content'", status=400)
        said = read_message(content)
        if isinstance(said, list) and said and isinstance(said[0], tuple):
            played, text = await _called(instance, cast("list[tuple[str, JsonObject]]", said))
        else:
            played = await instance.step({"type": "submit", "answer": cast("JsonValue", said)})
            text = str(played.observation.get("instruction") or "")
        state: list[JsonValue] = [{"role": "user", "content": text}] if text else []
        info: JsonObject = {"instance_id": instance.id, "truncated": played.truncated}
        if played.attribution is not None:
            info["attribution"] = played.attribution
        return {"state": state, "reward": played.reward or 0.0, "is_terminated": played.done, "info": info}

    async def evaluate(self, body: JsonObject) -> JsonValue:
        return await self._pool.find(_required(body, "instance_id")).evaluate()

    async def info(self, body: JsonObject) -> JsonValue:
        return self._pool.find(_required(body, "instance_id")).state()

    async def release(self, body: JsonObject) -> JsonValue:
        await self._pool.release(_required(body, "instance_id"))
        return None


async def _called(instance: Instance, calls: list[tuple[str, JsonObject]]) -> tuple[Played, str]:
    """Make the calls of one message in order, until the episode ends, and say what each gave."""
    said: list[JsonObject] = []
    played: Played | None = None
    for name, arguments in calls:
        played = await instance.step({"type": "call_tool", "tool_name": name, "arguments": arguments})
        result = cast("JsonObject", played.observation.get("result") or {})
        said.append({"tool_name": name, "result": result.get("data"), "is_error": result.get("is_error")})
        if played.done:
            break
    if played is None:
        raise BadRequest("no call")
    return played, json.dumps(said, ensure_ascii=False)


def _required(body: JsonObject, name: str) -> str:
    found = field_of(body, name, str)
    if found is None:
        raise BadRequest(f"{name!r} is needed")
    return found

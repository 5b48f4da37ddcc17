"""OpenEnv's wire, one environment of it: sessions over `/ws`, single requests, tools over `/mcp`, tasks.

The trainer's side is `/ws`, `/reset`, `/step`, `/state` and the task routes; the agent's is `/mcp`, which
shows tools alone. Requests without a session share one, which is created by their first reset.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from server.environments.errors import BadRequest, EnvironmentFailure
from server.environments.instance import Instance, Played
from server.environments.instances import Instances
from server.environments.messages import error_body, field_of, object_of, read_body, read_object
from server.environments.world import JsonObject

__all__ = ["openenv_routes"]

_VERSION = "1.0.0"
_ACTION: JsonObject = {
    "title": "Action",
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"enum": ["list_tools", "call_tool", "submit"]},
        "tool_name": {"type": "string", "description": "Of call_tool."},
        "arguments": {"type": "object", "description": "Of call_tool."},
        "answer": {"description": "Of submit: an object of outputs, or a text. Ends a turn."},
    },
}
_OBSERVATION: JsonObject = {
    "title": "Observation",
    "type": "object",
    "properties": {
        "instruction": {"type": ["string", "null"]},
        "task_id": {"type": "string"},
        "tools": {"type": "array", "items": {"type": "object"}},
        "tool_name": {"type": "string"},
        "result": {"type": ["object", "null"]},
        "error": {"type": ["object", "null"]},
        "metadata": {"type": "object"},
    },
}
_STATE: JsonObject = {
    "title": "State",
    "type": "object",
    "properties": {
        "episode_id": {"type": ["string", "null"]},
        "step_count": {"type": "integer"},
        "task_id": {"type": "string"},
        "reward": {"type": ["number", "null"]},
        "reference": {"type": "object"},
        "attribution": {"type": ["array", "null"]},
    },
}
_PATHS = {
    "/health": "get",
    "/metadata": "get",
    "/schema": "get",
    "/state": "get",
    "/reset": "post",
    "/step": "post",
    "/mcp": "post",
}


def openenv_routes(environment: str, pool: Instances) -> list[BaseRoute]:
    """Return the routes of one environment."""
    wire = _Wire(environment, pool)
    return [
        Route("/health", wire.health),
        Route("/metadata", wire.metadata),
        Route("/schema", wire.schema),
        Route("/openapi.json", wire.openapi),
        Route("/reset", wire.reset, methods=["POST"]),
        Route("/step", wire.step, methods=["POST"]),
        Route("/state", wire.state),
        Route("/groups/{group}", wire.group),
        Route("/mcp", wire.mcp, methods=["POST"]),
        WebSocketRoute("/ws", wire.socket),
    ]


@dataclass
class _Wire:
    """One environment behind the wire."""

    environment: str
    pool: Instances

    @property
    def _shared(self) -> str:
        """Id of the session that requests without one share."""
        return f"shared-{self.environment}"

    async def health(self, request: Request) -> Response:
        del request
        return JSONResponse({"status": "healthy"})

    async def metadata(self, request: Request) -> Response:
        del request
        about = self.pool.definition(self.environment).about
        return JSONResponse(
            {
                "name": self.environment,
                "description": about,
                "readme_content": None,
                "version": _VERSION,
                "author": None,
                "documentation_url": None,
            }
        )

    async def schema(self, request: Request) -> Response:
        del request
        return JSONResponse({"action": _ACTION, "observation": _OBSERVATION, "state": _STATE})

    async def openapi(self, request: Request) -> Response:
        del request
        paths = {
            path: {method: {"responses": {"200": {"description": "ok"}}}} for path, method in _PATHS.items()
        }
        info = {"title": f"skillbank environment {self.environment}", "version": _VERSION}
        return JSONResponse({"openapi": "3.1.0", "info": info, "paths": paths})

    async def reset(self, request: Request) -> Response:
        body = await read_body(request, self.pool.limits.message_bytes)
        session = field_of(body, "session_id", str) or self._shared
        try:
            instance = self.pool.find(session)
        except BadRequest:
            instance = await self.pool.create(self.environment, session)
        played = await _reset(instance, body)
        return JSONResponse({**played.to_json(), "session_id": instance.id})

    async def step(self, request: Request) -> Response:
        body = await read_body(request, self.pool.limits.message_bytes)
        action = object_of(body, "action")
        if action is None:
            raise BadRequest("a step has 'action'", code="VALIDATION_ERROR", status=422)
        instance = self._session(field_of(body, "session_id", str))
        return JSONResponse((await instance.step(action)).to_json())

    async def state(self, request: Request) -> Response:
        session = request.query_params.get("session_id")
        try:
            return JSONResponse(self._session(session).state())
        except BadRequest:
            if session is not None:
                raise
            return JSONResponse({"episode_id": None, "step_count": 0})

    async def group(self, request: Request) -> Response:
        return JSONResponse(self.pool.group(request.path_params["group"]))

    async def mcp(self, request: Request) -> Response:
        message = await read_body(request, self.pool.limits.message_bytes)
        return JSONResponse(await self._rpc(message, None))

    async def socket(self, socket: WebSocket) -> None:
        await socket.accept()
        named = socket.query_params.get("session_id")
        instance: Instance | None = None
        try:
            instance = self.pool.find(named) if named else await self.pool.create(self.environment)
            while True:
                said = await self._message(await socket.receive_text(), instance)
                if said is None:
                    break
                await socket.send_text(json.dumps(said))
        except WebSocketDisconnect:
            return
        except EnvironmentFailure as error:
            await socket.send_text(json.dumps({"type": "error", "data": error_body(error)}))
        except KeyError:  # starlette's for a binary frame
            told: JsonObject = {"message": "messages are text", "code": "INVALID_JSON"}
            await socket.send_text(json.dumps({"type": "error", "data": told}))
        finally:
            if instance is not None and named is None:
                self.pool.let_go(instance.id)
        await socket.close()

    async def _message(self, text: str, instance: Instance) -> JsonObject | None:
        """Return the answer to a message of a session, None where it ends it."""
        try:
            message = read_object(text)
            data = object_of(message, "data") or {}
            match message.get("type"):
                case "reset":
                    return {"type": "observation", "data": (await _reset(instance, data)).to_json()}
                case "step":
                    return {"type": "observation", "data": (await instance.step(data)).to_json()}
                case "state":
                    return {"type": "state", "data": instance.state()}
                case "mcp":
                    return {"type": "mcp", "data": await self._rpc(data, instance)}
                case "close":
                    return None
                case other:
                    raise BadRequest(
                        f"unknown message type {other!r}: reset, step, state, mcp or close",
                        code="UNKNOWN_TYPE",
                    )
        except EnvironmentFailure as error:
            return {"type": "error", "data": error_body(error)}

    async def _rpc(self, message: JsonObject, instance: Instance | None) -> JsonObject:
        """Return the JSON-RPC answer to a request of an agent."""
        answer: JsonObject = {"jsonrpc": "2.0", "id": message.get("id")}
        try:
            given = object_of(message, "params") or {}
            return {**answer, "result": await self._called(message.get("method"), given, instance)}
        except EnvironmentFailure as error:
            code = -32601 if error.code == "UNKNOWN_METHOD" else -32602
            code = code if isinstance(error, BadRequest) else -32603
            return {**answer, "error": {"code": code, "message": str(error), "data": {"code": error.code}}}

    async def _called(self, method: JsonValue, given: JsonObject, instance: Instance | None) -> JsonObject:
        session = field_of(given, "session_id", str)
        match method:
            case "openenv/session/create":
                made = await self.pool.create(self.environment)
                await _reset(made, given)
                return {"session_id": made.id}
            case "openenv/session/close" if session is not None:
                await self.pool.release(session)
                return {"session_id": session, "closed": True}
            case "tools/list":
                target = await self._played(session, instance)
                return {"tools": [_mcp_tool(tool) for tool in target.tools]}
            case "tools/call":
                target = await self._played(session, instance)
                return await _call_tool(target, given)
            case _:
                raise BadRequest(
                    f"unknown method {method!r}: tools/list, tools/call, openenv/session/create or"
                    " openenv/session/close with session_id",
                    code="UNKNOWN_METHOD",
                )

    async def _played(self, session: str | None, instance: Instance | None) -> Instance:
        """Return the instance that an agent means, its episode begun."""
        target = instance if instance is not None and session is None else None
        if target is None and session is None:
            try:
                target = self.pool.find(self._shared)
            except BadRequest:
                target = await self.pool.create(self.environment, self._shared)
        target = target or self.pool.find(str(session))
        if target.pid is None:
            await target.reset()
        return target

    def _session(self, session: str | None) -> Instance:
        if session is not None:
            return self.pool.find(session)
        try:
            return self.pool.find(self._shared)
        except BadRequest as error:
            raise BadRequest("no episode has begun: reset first", code="NOT_RESET", status=409) from error


async def _reset(instance: Instance, given: JsonObject) -> Played:
    return await instance.reset(
        field_of(given, "task_id", str),
        field_of(given, "seed", int),
        episode_id=field_of(given, "episode_id", str),
        group=field_of(given, "group", str),
        attribution=bool(field_of(given, "attribution", bool)),
    )


async def _call_tool(target: Instance, given: JsonObject) -> JsonObject:
    action: JsonObject = {
        "type": "call_tool",
        "tool_name": given.get("name"),
        "arguments": given.get("arguments") or {},
    }
    seen = (await target.step(action)).observation
    result = cast("JsonObject", seen["result"])
    # Both spellings: MCP's, and the one that OpenEnv's client reads.
    return {
        **result,
        "isError": result["is_error"],
        "structuredContent": result["structured_content"],
    }


def _mcp_tool(tool: JsonObject) -> JsonValue:
    rest = {name: value for name, value in tool.items() if name != "input_schema"}
    return {**rest, "inputSchema": tool["input_schema"], "input_schema": tool["input_schema"]}

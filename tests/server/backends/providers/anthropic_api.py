"""Anthropic's Messages API as far as a client can tell: checks, streams, errors, prompt cache."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tests.server.backends.providers.loopback import (
    RIGHT_KEY,
    BreakOff,
    Fail,
    FailMidway,
    Hang,
    Provider,
    Reply,
    Say,
    error_body,
    pieces,
    sse,
    tokens,
)

MODEL = "claude-opus-5-5"
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
_ALLOWED = {"model", "max_tokens", "messages", "system", "output_config", "tools", "tool_choice", "stream"}


def _shape(fail: Fail) -> dict[str, Any]:
    kind = fail.code or _TYPES.get(fail.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": fail.message}, "request_id": "req_1"}


class AnthropicApi(Provider):
    """Serves one model to one key."""

    def __init__(self, *script: Reply) -> None:
        super().__init__(*script)
        self.cache: set[str] = set()

    @property
    def app(self) -> ASGIApp:
        return Starlette(
            routes=[
                Route("/v1/messages", self.messages, methods=["POST"]),
                Route("/v1/models/{model}", self.model),
            ]
        )

    async def model(self, request: Request) -> Response:
        await self.note(request)
        if (refusal := self.refusal(request)) is not None:
            return error_body(refusal, _shape)
        if request.path_params["model"] != MODEL:
            return error_body(Fail(404, "model: no such"), _shape)
        return JSONResponse(
            {
                "type": "model",
                "id": MODEL,
                "display_name": "A model",
                "created_at": "2026-01-01T00:00:00Z",
                "lifecycle": "active",
                "max_input_tokens": 200_000,
                "max_tokens": 64_000,
            }
        )

    async def messages(self, request: Request) -> Response:
        body = await self.note(request)
        refusal = self.refusal(request) or _fault(body)
        reply = refusal or self.next_reply()
        if isinstance(reply, Fail):
            return error_body(reply, _shape)
        return self.stream(self.events(body, reply))

    def refusal(self, request: Request) -> Fail | None:
        key = request.headers.get("x-api-key") or request.headers.get("authorization", "")[len("Bearer ") :]
        if key != RIGHT_KEY:
            return Fail(401, f"invalid key: {key}")
        if "anthropic-version" not in request.headers:
            return Fail(400, "anthropic-version: header is required")
        return None

    async def events(self, body: dict[str, Any], reply: Reply) -> AsyncIterator[bytes]:
        usage = self.usage(body)
        yield sse(
            {
                "type": "message_start",
                "message": {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": body["model"],
                    "content": [],
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": usage,
                },
            },
            "message_start",
        )
        yield sse({"type": "ping"}, "ping")
        is_tool = "tool_choice" in body
        block: dict[str, Any] = {"type": "text", "text": ""}
        if is_tool:
            block = {"type": "tool_use", "id": "toolu_1", "name": body["tool_choice"]["name"], "input": {}}
        yield _event("content_block_start", index=0, content_block=block)
        match reply:
            case Say(texts=(text, *_), stop=stop, thought_tokens=thought):
                for piece in pieces(text):
                    delta = {"type": "text_delta", "text": piece}
                    if is_tool:
                        delta = {"type": "input_json_delta", "partial_json": piece}
                    yield _event("content_block_delta", index=0, delta=delta)
                yield _event("content_block_stop", index=0)
                reason = {"length": "max_tokens", "refusal": "refusal"}.get(stop, "end_turn")
                yield _event(
                    "message_delta",
                    delta={"stop_reason": "tool_use" if is_tool and stop == "end" else reason},
                    usage={
                        "output_tokens": tokens(text) + thought,
                        "output_tokens_details": {"thinking_tokens": thought},
                    },
                )
                yield _event("message_stop")
            case FailMidway(message=message, code=code):
                yield sse({"type": "error", "error": {"type": code, "message": message}}, "error")
            case BreakOff() | Hang():
                yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Once"})
                await self.end_wrongly(reply)
            case _:
                raise AssertionError(reply)

    def usage(self, body: dict[str, Any]) -> dict[str, int]:
        """Count the prompt, the part up to the last breakpoint from the cache where it is there."""
        blocks = [*body.get("system", []), *(b for turn in body["messages"] for b in turn["content"])]
        marked = [n for n, block in enumerate(blocks) if "cache_control" in block]
        prefix = blocks[: marked[-1] + 1] if marked else []
        key = json.dumps([block["text"] for block in prefix])
        ahead = sum(tokens(block["text"]) for block in prefix)
        rest = sum(tokens(block["text"]) for block in blocks) - ahead
        is_cached = key in self.cache
        if prefix:
            self.cache.add(key)
        return {
            "input_tokens": rest,
            "cache_read_input_tokens": ahead if is_cached else 0,
            "cache_creation_input_tokens": 0 if is_cached else ahead,
            "output_tokens": 1,
        }


def _event(kind: str, **fields: Any) -> bytes:
    return sse({"type": kind, **fields}, kind)


def _fault(body: dict[str, Any]) -> Fail | None:
    """Return what the API would refuse of a request, None where it is sound."""
    if unknown := body.keys() - _ALLOWED:
        return Fail(400, f"{min(unknown)}: Extra inputs are not permitted")
    if body["model"] != MODEL:
        return Fail(404, f"model: {body['model']}")
    roles = [turn["role"] for turn in body["messages"]]
    if not roles or roles[0] != "user" or set(roles) - {"user", "assistant"}:
        return Fail(400, "messages: first message must use the user role")
    wanted = body.get("output_config", {}).get("format")
    if wanted is not None and (problem := _unclosed(wanted["schema"])) is not None:
        return Fail(400, f"output_config.format.schema: {problem}")
    return None


def _unclosed(schema: Any) -> str | None:
    if isinstance(schema, list):
        return next((found for part in schema if (found := _unclosed(part))), None)
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return "For 'object' type, 'additionalProperties' must be explicitly set to false"
    for keyword in ("minimum", "maximum", "pattern", "minLength", "maxLength", "oneOf", "allOf"):
        if keyword in schema and not isinstance(schema[keyword], dict):
            return f"property '{keyword}' is not supported"
    return next((found for part in schema.values() if (found := _unclosed(part))), None)

"""OpenAI's Responses and chat completions as far as a client can tell: checks, streams, errors."""

from __future__ import annotations

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

MODEL = "gpt-6-sol"
THINKER = "gpt-6-luna"
"""Takes no temperature, and answers Responses alone."""
_TYPES = {401: "invalid_request_error", 429: "requests", 500: "server_error", 503: "server_error"}
_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def _shape(fail: Fail) -> dict[str, Any]:
    return {
        "error": {
            "message": fail.message,
            "type": _TYPES.get(fail.status, "invalid_request_error"),
            "param": fail.param,
            "code": fail.code or _CODES.get(fail.status),
        }
    }


class OpenAIApi(Provider):
    """Serves two models to one key."""

    def __init__(self, *script: Reply) -> None:
        super().__init__(*script)
        self.cache: set[str] = set()

    @property
    def app(self) -> ASGIApp:
        return Starlette(
            routes=[
                Route("/v1/responses", self.responses, methods=["POST"]),
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
                Route("/v1/embeddings", self.embeddings, methods=["POST"]),
                Route("/v1/models/{model}", self.model),
            ]
        )

    async def model(self, request: Request) -> Response:
        await self.note(request)
        model = request.path_params["model"]
        fail = _refusal(request, model)
        if fail is not None:
            return error_body(fail, _shape)
        return JSONResponse({"id": model, "object": "model", "created": 1, "owned_by": "openai"})

    async def embeddings(self, request: Request) -> Response:
        body = await self.note(request)
        fail = _refusal(request, body["model"])
        reply = self.script[0] if self.script else None
        fail = fail or (self.script.pop(0) if isinstance(reply, Fail) else None)
        if isinstance(fail, Fail):
            return error_body(fail, _shape)
        data = [
            {"object": "embedding", "index": n, "embedding": [float(len(text)), 1.0, 0.0]}
            for n, text in enumerate(body["input"])
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return JSONResponse({"object": "list", "data": data[::-1], "model": body["model"], "usage": usage})

    async def responses(self, request: Request) -> Response:
        body = await self.note(request)
        wanted = body.get("text", {}).get("format", {})
        reply = _refusal(request, body["model"]) or _temperature(body)
        reply = reply or _loose(wanted.get("schema"), "text.format.schema") or self.next_reply()
        if isinstance(reply, Fail):
            return error_body(reply, _shape)
        return self.stream(self.response_events(body, reply))

    async def chat(self, request: Request) -> Response:
        body = await self.note(request)
        if body["model"] == THINKER:
            return error_body(Fail(404, "This is not a chat model", param="model"), _shape)
        wanted = body.get("response_format", {}).get("json_schema", {})
        reply = _refusal(request, body["model"]) or _loose(wanted.get("schema"), "response_format")
        reply = reply or self.next_reply()
        if isinstance(reply, Fail):
            return error_body(reply, _shape)
        return self.stream(self.chat_events(body, reply))

    async def response_events(self, body: dict[str, Any], reply: Reply) -> AsyncIterator[bytes]:
        yield _event("response.created", 0, response=_response(body, "in_progress"))
        match reply:
            case Say(texts=(text, *_), stop=stop, thought_tokens=thought):
                for n, piece in enumerate(pieces(text)):
                    delta = {"item_id": "i", "output_index": 0, "content_index": 0, "delta": piece}
                    yield _event("response.output_text.delta", n + 1, **delta, logprobs=[])
                whole = _response(body, "incomplete" if stop == "length" else "completed")
                if stop == "length":
                    whole["incomplete_details"] = {"reason": "max_output_tokens"}
                whole["output"] = [
                    {"type": "reasoning", "id": "r", "summary": []},
                    _output(body, text, refused=stop == "refusal"),
                ]
                whole["usage"] = self.usage(body, body["input"], [text], thought)
                yield _event(f"response.{whole['status']}", 99, response=whole)
            case FailMidway(message=message, code=code):
                failed = _response(body, "failed") | {"error": {"code": code, "message": message}}
                yield _event("response.failed", 1, response=failed)
            case BreakOff() | Hang():
                yield _event("response.in_progress", 1, response=_response(body, "in_progress"))
                await self.end_wrongly(reply)
            case _:
                raise AssertionError(reply)

    async def chat_events(self, body: dict[str, Any], reply: Reply) -> AsyncIterator[bytes]:
        match reply:
            case Say(texts=texts, stop=stop):
                wanted = texts[: body.get("n", 1)]
                for index, text in enumerate(wanted):
                    for piece in pieces(text):
                        yield _chunk(body, index, _delta(body, piece, refused=stop == "refusal"))
                    reason = "length" if stop == "length" else "stop"
                    yield _chunk(body, index, {}, reason)
                if body.get("stream_options", {}).get("include_usage"):
                    usage = _chat_usage(self.usage(body, body["messages"], [*wanted], 0))
                    yield sse(_chunk_body(body) | {"choices": [], "usage": usage})
                yield sse("[DONE]")
            case FailMidway(message=message, code=code):
                yield _chunk(body, 0, {"content": "Once"})
                yield sse({"error": {"message": message, "type": code, "code": code}})
            case BreakOff() | Hang():
                yield _chunk(body, 0, {"content": "Once"})
                await self.end_wrongly(reply)
            case _:
                raise AssertionError(reply)

    def usage(
        self, body: dict[str, Any], messages: list[dict[str, str]], texts: list[str], thought: int
    ) -> dict[str, Any]:
        """Count; the first message comes from the cache where its key was seen before it."""
        key = f"{body.get('prompt_cache_key')} {messages[0]['content']}"
        cached = tokens(messages[0]["content"]) if key in self.cache else 0
        self.cache.add(key)
        prompt = sum(tokens(message["content"]) for message in messages)
        output = sum(tokens(text) for text in texts) + thought
        return {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": prompt + output,
        }


def _event(kind: str, number: int, **fields: Any) -> bytes:
    return sse({"type": kind, "sequence_number": number, **fields}, kind)


def _response(body: dict[str, Any], status: str) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": f"{body['model']}-2026-09-22",
        "output": [],
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _output(body: dict[str, Any], text: str, *, refused: bool) -> dict[str, Any]:
    if "tool_choice" in body:
        name = body["tool_choice"]["name"]
        return {"type": "function_call", "id": "f", "call_id": "c", "name": name, "arguments": text}
    part = {"type": "output_text", "text": text, "annotations": []}
    if refused:
        part = {"type": "refusal", "refusal": text}
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}


def _chunk_body(body: dict[str, Any]) -> dict[str, Any]:
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}


def _chunk(body: dict[str, Any], index: int, delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    return sse(_chunk_body(body) | {"choices": [choice]})


def _delta(body: dict[str, Any], piece: str, *, refused: bool) -> dict[str, Any]:
    if "tool_choice" in body:
        return {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
    return {"refusal": piece} if refused else {"content": piece}


def _chat_usage(usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
        "prompt_tokens_details": {"cached_tokens": usage["input_tokens_details"]["cached_tokens"]},
        "completion_tokens_details": usage["output_tokens_details"],
    }


def _refusal(request: Request, model: str) -> Fail | None:
    key = request.headers.get("authorization", "").removeprefix("Bearer ")
    if key != RIGHT_KEY:
        return Fail(401, f"Incorrect API key provided: {key}.")
    if model not in (MODEL, THINKER):
        return Fail(404, f"The model '{model}' does not exist")
    return None


def _temperature(body: dict[str, Any]) -> Fail | None:
    if body["model"] == THINKER and "temperature" in body:
        message = "Unsupported parameter: 'temperature' is not supported with this model."
        return Fail(400, message, "unsupported_parameter", "temperature")
    return None


def _loose(schema: Any, param: str) -> Fail | None:
    """Return why a strict schema is refused, None where it is strict."""
    if isinstance(schema, list):
        return next((found for part in schema if (found := _loose(part, param))), None)
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or [*properties] != schema.get("required"):
            message = "'required' is required to be supplied and to be an array including every key"
            return Fail(400, f"Invalid schema: {message}", "invalid_json_schema", param)
    return next((found for part in schema.values() if (found := _loose(part, param))), None)

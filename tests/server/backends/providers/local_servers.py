"""OpenAI-compatible servers as they really differ: what they are asked about, obey, ignore, refuse.

`obeys` names the fields whose schema a server enforces, `refuses` those it answers with a status;
every other field is ignored, as real servers do. An enforced answer is the smallest that fits.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tests.server.backends.providers.loopback import Fail, Provider, Reply, Say, pieces, sse

MODEL = "small-model"
_PLAIN = {"n", "temperature", "stream_options"}


class LocalServer(Provider):
    """One server with one model.

    Args:
        script: what the model says where nothing constrains it.
        kind: llama.cpp, Ollama, vLLM or unknown.
        obeys: fields that are enforced: json_schema, object_schema, structured_outputs, format,
            grammar, json_object.
        refuses: fields that are refused, with the status.
        slots: alternatives a request may ask for; more is refused, None: `n` is ignored.
        key: that is wanted, None: any.
        sends_usage: whether a stream ends with its usage.
    """

    def __init__(
        self,
        *script: Reply,
        kind: str = "unknown",
        obeys: tuple[str, ...] = (),
        refuses: Mapping[str, int] | None = None,
        slots: int | None = None,
        key: str | None = None,
        sends_usage: bool = True,
    ) -> None:
        super().__init__(*(script or (Say.one("Hello!"),)))
        self.kind = kind
        self.obeys = obeys
        self.refuses = dict(refuses or {})
        self.slots = slots
        self.key = key
        self.sends_usage = sends_usage

    @property
    def app(self) -> ASGIApp:
        routes = [
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/models", self.models),
        ]
        if self.kind == "llama.cpp":
            routes += [Route("/props", self.props), Route("/tokenize", self.tokenize, methods=["POST"])]
        if self.kind == "Ollama":
            routes += [Route("/api/version", self.version), Route("/api/ps", self.running)]
        if self.kind == "vLLM":
            routes += [Route("/version", self.version), Route("/tokenize", self.tokenize, methods=["POST"])]
        return Starlette(routes=routes)

    @property
    def chats(self) -> list[dict[str, Any]]:
        """Return the bodies of generating requests."""
        return [asked.body for asked in self.asked if asked.path.endswith("/chat/completions")]

    async def models(self, request: Request) -> Response:
        model = {"id": MODEL, "object": "model", "created": 1, "owned_by": "me"}
        if self.kind == "vLLM":
            model["max_model_len"] = 32_768
        if self.key is not None and request.headers["authorization"] != f"Bearer {self.key}":
            return JSONResponse({"error": {"message": "Invalid API Key", "code": 401}}, 401)
        return JSONResponse({"object": "list", "data": [model]})

    async def props(self, request: Request) -> Response:
        del request
        return JSONResponse(
            {
                "default_generation_settings": {"n_ctx": 4096},
                "total_slots": self.slots or 1,
                "model_path": "m",
            }
        )

    async def version(self, request: Request) -> Response:
        del request
        return JSONResponse({"version": "0.12.0"})

    async def running(self, request: Request) -> Response:
        del request
        return JSONResponse({"models": [{"name": MODEL, "model": MODEL, "context_length": 8192}]})

    async def tokenize(self, request: Request) -> Response:
        body = await request.json()
        words = (body.get("content") or body.get("prompt") or "").split()
        return JSONResponse({"tokens": [*range(len(words))], "count": len(words), "max_model_len": 1})

    async def chat(self, request: Request) -> Response:
        body = await self.note(request)
        constraints = _constraints(body)
        wanted = body.get("n", 1)
        for field, status in self.refuses.items():
            if field in constraints or field in _PLAIN & body.keys():
                param = field if field in body else None
                return self.failed(Fail(status, f"cannot do {field}", param=param))
        if self.kind == "llama.cpp" and wanted > (self.slots or 1):
            return self.failed(Fail(400, f"n: Value must be between 1 <= value <= {self.slots or 1}"))
        reply = self.next_reply()
        if isinstance(reply, Fail):
            return self.failed(reply)
        assert isinstance(reply, Say)
        texts = [*reply.texts[: wanted if self.slots else 1]]
        enforced = next((schema for field, schema in constraints.items() if field in self.obeys), None)
        if enforced is not None:
            texts = [json.dumps(_smallest(enforced))] * len(texts)
        return self.stream(self.events(body, texts))

    def failed(self, fail: Fail) -> Response:
        error = {"message": fail.message, "type": "invalid_request_error", "code": fail.status}
        return JSONResponse({"error": error | {"param": fail.param}}, fail.status)

    async def events(self, body: dict[str, Any], texts: list[str]) -> AsyncIterator[bytes]:
        base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        for index, text in enumerate(texts):
            for piece in pieces(text):
                choice = {"index": index, "delta": {"content": piece}, "finish_reason": None}
                yield sse(base | {"choices": [choice]})
            yield sse(base | {"choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]})
        if self.sends_usage and body.get("stream_options", {}).get("include_usage"):
            # One alternative is counted, as llama-server does.
            usage = {"prompt_tokens": 9, "completion_tokens": len(texts[0].split()), "total_tokens": 9}
            yield sse(base | {"choices": [], "usage": usage})
        yield sse("[DONE]")


def _constraints(body: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas of a request by the field they came in."""
    found: dict[str, Any] = {}
    form = body.get("response_format", {})
    if form.get("type") == "json_schema":
        found["json_schema"] = form["json_schema"]["schema"]
    elif form.get("type") == "json_object":
        found["object_schema" if "schema" in form else "json_object"] = form.get("schema", {"type": "object"})
    if "structured_outputs" in body:
        found["structured_outputs"] = body["structured_outputs"]["json"]
    if "format" in body:
        found["format"] = body["format"]
    if "json_schema" in body:
        found["grammar"] = body["json_schema"]
    return found


def _smallest(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: _smallest(part) for name, part in schema.get("properties", {}).items()}
        case "array":
            return []
        case "integer" | "number":
            return 1
        case _:
            return "x"

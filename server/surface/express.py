"""Answers plain relayed calls on standard input and output before the library's layers are reached.

Of a call that is only passed on, those layers take as long as everything else. Taken is `call_tool`
of a connection of 2026-07-28 whose client cannot be asked, without anything unusual in its `_meta`,
while no spans are recorded; each other message is the library's, and both answer the same.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

import anyio
import mcp.types as types
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.inbound import InboundModernRoute, classify_inbound_request
from mcp.shared.message import SessionMessage
from mcp.types import methods
from opentelemetry import trace
from pydantic import JsonValue, ValidationError

from server.surface.port import UpstreamProgress
from server.surface.stdio import MessagesIn, MessagesOut

__all__ = ["Express", "Relays", "open_express"]

_LOG = logging.getLogger(__name__)
_TOOL: Final = "call_tool"
_LAST_WORDS_SECONDS: Final = 1.0
_ENVELOPE: Final = (
    types.PROTOCOL_VERSION_META_KEY,
    types.CLIENT_INFO_META_KEY,
    types.CLIENT_CAPABILITIES_META_KEY,
)
_PLAIN_META: Final = frozenset({*_ENVELOPE, "progressToken"})
_PLAIN_PARAMS: Final = frozenset({"name", "arguments", "_meta"})
_ASKABLE: Final = ("elicitation", "sampling", "roots", "extensions")


class Relays(Protocol):
    """The server whose calls these are."""

    @property
    def server_info_stamp(self) -> dict[str, Any]:
        """What each answer says of who answers, as JSON."""
        ...

    async def relay(
        self, arguments: Mapping[str, JsonValue], report: UpstreamProgress
    ) -> types.CallToolResult:
        """Return the result of a `call_tool` whose client cannot be asked.

        Raises:
            MCPError: it is refused.
        """
        ...


@dataclass(slots=True)
class _Taken:
    """A call that is being answered here."""

    request: types.JSONRPCRequest
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_unwanted: bool = False
    """Whether its client gave it up, and is told nothing more."""


@asynccontextmanager
async def open_express(
    server: Relays, incoming: MessagesIn, outgoing: MessagesOut
) -> AsyncGenerator[Express]:
    """Yield what is left of the messages once plain relayed calls are taken out and answered."""
    async with anyio.create_task_group() as tasks:
        yield Express(server, incoming, outgoing, tasks)
        tasks.cancel_scope.cancel()


class Express(MessagesIn):
    """Messages that the library has to see. Made by `open_express`."""

    def __init__(self, server: Relays, incoming: MessagesIn, outgoing: MessagesOut, tasks: TaskGroup) -> None:
        self._server, self._incoming, self._outgoing, self._tasks = server, incoming, outgoing, tasks
        self._taken: dict[types.RequestId, _Taken] = {}
        self._is_modern: bool | None = None
        self._plain_envelope: dict[str, Any] | None = None
        """What a client that cannot be asked said of itself, once looked at."""

    async def __anext__(self) -> SessionMessage | Exception:
        while True:
            try:
                item = await anext(self._incoming)
            except StopAsyncIteration:
                for taken in self._taken.values():
                    taken.scope.cancel()
                raise
            if isinstance(item, Exception) or not self._takes(item.message):
                return item

    def _takes(self, message: types.JSONRPCMessage) -> bool:
        match message:
            case types.JSONRPCRequest():
                if self._is_modern is None:  # the first request decides, and the library reads it
                    self._is_modern = message.method != "initialize" and self._is_plain(message)
                elif self._is_modern and message.method == "tools/call" and self._is_call(message):
                    taken = self._taken[coerce_request_id(message.id)] = _Taken(message)
                    self._tasks.start_soon(self._answer, taken)
                    return True
                return False
            case types.JSONRPCNotification(method="notifications/cancelled", params=dict(said)):
                return self._is_given_up(said.get("requestId"))
            case _:
                return False

    def _is_call(self, message: types.JSONRPCRequest) -> bool:
        params = message.params or {}
        return (
            params.get("name") == _TOOL
            and params.keys() <= _PLAIN_PARAMS
            and isinstance(params.get("arguments"), dict)
            and self._is_plain(message)
            and not trace.get_current_span().is_recording()
            and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
        )

    def _is_plain(self, message: types.JSONRPCRequest) -> bool:
        """Return whether a request says of its client what is known to ask for nothing unusual."""
        params = message.params or {}
        meta = cast("object", params.get("_meta"))
        if not isinstance(meta, dict):
            return False
        said = cast("dict[str, Any]", meta)
        token = said.get("progressToken", "")
        if not said.keys() <= _PLAIN_META or isinstance(token, bool) or not isinstance(token, str | int):
            return False
        envelope = {key: said[key] for key in _ENVELOPE if key in said}
        if envelope != self._plain_envelope:
            if not _asks_for_nothing(message):
                return False
            self._plain_envelope = envelope
        return True

    def _is_given_up(self, request: object) -> bool:
        if not isinstance(request, str | int) or isinstance(request, bool):
            return False
        taken = self._taken.get(coerce_request_id(request))
        if taken is None:
            return False
        taken.is_unwanted = True
        taken.scope.cancel()
        return True

    async def _answer(self, taken: _Taken) -> None:
        number, answer = taken.request.id, _closed(taken.request.id)
        try:
            with taken.scope:
                answer = await self._answer_of(taken.request)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_LAST_WORDS_SECONDS, shield=True):
                await self._send(answer)
            raise
        finally:
            if self._taken.get(key := coerce_request_id(number)) is taken:
                del self._taken[key]
        if not taken.is_unwanted:
            await self._send(answer)

    async def _answer_of(self, request: types.JSONRPCRequest) -> types.JSONRPCResponse | types.JSONRPCError:
        params = request.params or {}
        said = cast("dict[str, Any]", params["_meta"])
        report = self._reporter(said.get("progressToken"))
        try:
            result = await self._server.relay(params["arguments"], report)
            document = self._wire(result, said[types.PROTOCOL_VERSION_META_KEY])
        except MCPError as error:
            return types.JSONRPCError(jsonrpc="2.0", id=request.id, error=error.error)
        except Exception:
            _LOG.exception("tools/call failed")
            error = types.ErrorData(code=types.INTERNAL_ERROR, message="Internal error")
            return types.JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
        return types.JSONRPCResponse(jsonrpc="2.0", id=request.id, result=document)

    def _wire(self, result: types.CallToolResult, version: str) -> dict[str, Any]:
        document = _plain_document(result)
        if document is None:
            dumped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
            document = methods.serialize_server_result("tools/call", version, dumped)
        document.setdefault("resultType", "complete")
        stamp = {types.SERVER_INFO_META_KEY: self._server.server_info_stamp}
        document["_meta"] = {**stamp, **(document.get("_meta") or {})}
        return document

    def _reporter(self, token: types.RequestId | None) -> UpstreamProgress:
        async def report(done: float, total: float | None = None, words: str | None = None) -> None:
            if token is None:
                return
            said = {"progressToken": token, "progress": done, "total": total, "message": words}
            params = {key: value for key, value in said.items() if value is not None}
            await self._send(
                types.JSONRPCNotification(jsonrpc="2.0", method="notifications/progress", params=params)
            )

        return report

    async def _send(self, message: types.JSONRPCMessage) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody hears it any more
            await self._outgoing.send(SessionMessage(message))


def _plain_document(result: types.CallToolResult) -> dict[str, Any] | None:
    """Return a result of nothing but text as JSON, which no revision says otherwise; None for others."""
    blocks: list[dict[str, str]] = []
    for block in result.content:
        if not isinstance(block, types.TextContent) or block.annotations or block.meta:
            return None
        blocks.append({"type": "text", "text": block.text})
    document: dict[str, Any] = {"content": blocks, "isError": bool(result.is_error)}
    if result.structured_content is not None:
        document["structuredContent"] = result.structured_content
    return document if result.meta is None else {**document, "_meta": dict(result.meta)}


def _asks_for_nothing(message: types.JSONRPCRequest) -> bool:
    """Return whether a request is one of 2026-07-28 from a client that cannot be asked anything."""
    route = classify_inbound_request({"method": message.method, "params": message.params})
    if not isinstance(route, InboundModernRoute):
        return False
    try:
        said = types.ClientCapabilities.model_validate(route.client_capabilities, by_name=False)
        if route.client_info is not None:
            types.Implementation.model_validate(route.client_info, by_name=False)
    except ValidationError:
        return False
    return all(getattr(said, kind) is None for kind in _ASKABLE)


def _closed(number: types.RequestId) -> types.JSONRPCError:
    error = types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed")
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=error)

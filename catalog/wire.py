"""The messages between one client and its upstream: watched, and repaired where a server is sloppy.

The client library rejects a whole tool list for one bad definition, and a whole answer for one
unknown content block. `Wire` sits between it and any transport, repairs those two kinds of
answers, and knows whether the upstream is still there and whether a call was handed to it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Protocol, Self, cast, runtime_checkable

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from catalog.call import OVER_BOUND, TOO_LARGE
from catalog.canonical import JsonValue
from catalog.direct_calls import DirectCalls
from catalog.listing import Repairs, repair_page

__all__ = ["Incoming", "NotSent", "Read", "Streams", "Transport", "Wire", "Write"]

Incoming = SessionMessage | Exception


class NotSent(Exception):  # noqa: N818  (a fact about one message)
    """The upstream was gone before the message was handed to it."""


class Read(Protocol):
    """Where messages of an upstream arrive."""

    async def receive(self) -> Incoming: ...
    async def aclose(self) -> None: ...


class Write(Protocol):
    """Where messages to an upstream go."""

    async def send(self, item: SessionMessage, /) -> None: ...
    async def aclose(self) -> None: ...


@runtime_checkable
class TakenFrom(Protocol):
    """A pipe whose messages can be taken as they arrive, before `Read.receive` returns the others."""

    take: Callable[[SessionMessage], bool] | None


Streams = tuple[Read, Write]
Transport = AbstractAsyncContextManager[Streams]


class Wire:
    """One connection's traffic.

    Attributes:
        ended: set once the upstream closed its side or a message could not be handed over.
        problems: what is wrong with it, each once.
        repairs: what was wrong with its tools as listed last.
        legacy: whether the handshake era is spoken; known once the connection is made.
        direct: calls past the client library; None before there is a connection, or where it is no pipe.
    """

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.problems: list[str] = []
        self.repairs = Repairs()
        self.legacy = False
        self.direct: DirectCalls | None = None
        self._asked: dict[types.RequestId, str] = {}

    @asynccontextmanager
    async def around(self, transport: Transport) -> AsyncGenerator[tuple[_WatchedRead, _WatchedWrite]]:
        """Yield the transport's streams, watched."""
        async with transport as (read, write):
            watched = _WatchedWrite(write, self)
            if isinstance(read, TakenFrom):
                self.direct = DirectCalls(watched.send)
                read.take = self._take
            yield _WatchedRead(read, self), watched

    def _take(self, item: SessionMessage) -> bool:
        """Return whether a message concerns a call past the client library, which then has it."""
        if self.direct is None or not self.direct.concerns(item.message):
            return False
        known = self.incoming(item)
        assert isinstance(known, SessionMessage)
        self.direct.take(known.message)
        return True

    def note(self, problem: str) -> None:
        """Record a problem unless it is known."""
        if problem not in self.problems:
            self.problems.append(problem)

    def outgoing(self, item: SessionMessage) -> None:
        """Remember what a request asked for, until it is answered or given up."""
        if isinstance(request := item.message, types.JSONRPCRequest):
            self._asked[request.id] = request.method
            if self.direct is not None:
                self.direct.watch(request)
            if request.method == "initialize":
                self.legacy = True
        elif (given_up := _given_up(item)) is not None:
            self._asked.pop(given_up, None)

    def incoming(self, item: Incoming) -> Incoming:
        """Return the message, repaired when it answers a request this class knows how to repair."""
        if isinstance(item, Exception):
            self.note(f"it sent something that is no message: {type(item).__name__}")
            return item
        message = item.message
        if isinstance(message, types.JSONRPCError) and message.id is not None:
            self._asked.pop(message.id, None)
            if _is_event_too_large(message.error):
                error = types.ErrorData(code=TOO_LARGE, message=f"{OVER_BOUND}: {message.error.message}")
                return SessionMessage(message.model_copy(update={"error": error}), metadata=item.metadata)
        if not isinstance(message, types.JSONRPCResponse):
            return item
        result = cast("dict[str, JsonValue]", message.result)
        match self._asked.pop(message.id, None):
            case "tools/list":
                result = repair_page(result, self.repairs, legacy=self.legacy)
            case "tools/call":
                result = _repair_result(result, self.note, legacy=self.legacy)
            case _:
                return item
        return SessionMessage(message.model_copy(update={"result": result}), metadata=item.metadata)


def _is_event_too_large(error: types.ErrorData) -> bool:
    """Whether the client library gave up an answer for its size, which it says as a closed connection."""
    return error.code == types.CONNECTION_CLOSED and "Server-sent event exceeded" in error.message


def _given_up(item: SessionMessage) -> types.RequestId | None:
    """Return which request a message cancels, None where it cancels none."""
    message = item.message
    if not isinstance(message, types.JSONRPCNotification) or message.method != "notifications/cancelled":
        return None
    return cast("types.RequestId | None", (message.params or {}).get("requestId"))


def _repair_result(
    result: dict[str, JsonValue], note: Callable[[str], None], *, legacy: bool
) -> dict[str, JsonValue]:
    """Return a tool's result with unreadable content blocks as text, which is noted; nothing is lost."""
    content = result.get("content")
    if content is None and "structuredContent" not in result and "resultType" in result:
        return result
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    repaired: list[JsonValue] = [block if _is_readable(block) else _as_text(block) for block in blocks]
    if repaired != content and content is not None:
        note("a result of a tool has content that is no list of content blocks: it is read as text")
    changed: dict[str, JsonValue] = {**result, "content": repaired}
    if not legacy:
        changed.setdefault("resultType", "complete")
    if legacy and "structuredContent" in changed and not isinstance(changed["structuredContent"], dict):
        structured = changed.pop("structuredContent")
        if structured is not None:
            note("a result of a tool has structured content that is no object, which its era wants")
        if structured is not None and not repaired:
            changed["content"] = [_as_text(structured)]
    return changed


def _as_text(value: JsonValue) -> JsonValue:
    return {
        "type": "text",
        "text": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False),
    }


def _is_readable(block: JsonValue) -> bool:
    match block:
        case {"type": "text", "text": str()}:
            return True
        case {"type": "image" | "audio", "data": str(), "mimeType": str()}:
            return True
        case {"type": "resource", "resource": {"uri": str(), "text": str()} | {"uri": str(), "blob": str()}}:
            return True
        case {"type": "resource_link", "uri": str(), "name": str()}:
            return True
        case _:
            return False


class _WatchedRead:
    def __init__(self, inner: Read, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    async def receive(self) -> Incoming:
        try:
            item = await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._wire.ended.set()
            self._close_calls()
            raise
        return self._wire.incoming(item)

    def _close_calls(self) -> None:
        if self._wire.direct is not None:
            self._wire.direct.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._close_calls()
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class _WatchedWrite:
    def __init__(self, inner: Write, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    async def send(self, item: SessionMessage, /) -> None:
        if self._wire.ended.is_set() and isinstance(item.message, types.JSONRPCRequest):
            raise NotSent
        self._wire.outgoing(item)
        try:
            await self._inner.send(item)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._wire.ended.set()
            if isinstance(item.message, types.JSONRPCRequest):
                raise NotSent from error
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()

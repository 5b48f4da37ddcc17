"""Calls written straight to a server behind a pipe, past the client library's session.

The session stays the one that connects, lists and is asked; a call needs none of that, and its way
through the session's layers takes longer than the server's own work. Ids are from a range that the
session never reaches. What a call says of its client is what the session says with each request.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Protocol, cast

import anyio
import anyio.lowlevel
import mcp_types as types
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT, coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types.methods import parse_server_result
from opentelemetry.propagate import inject

__all__ = ["DirectCalls"]

_LOG = logging.getLogger(__name__)

_FIRST_ID: Final = 1_000_000_000
_CANCEL_SECONDS: Final = 5.0
"""How long a server that does not read may hold up whoever gave a call up."""
_MOST_REPORTS: Final = 100
"""Reports of progress that wait for a client that is slow to hear of them; the oldest are left out."""
_OF_PROTOCOL: Final = "io.modelcontextprotocol/"
_LATER: Final = frozenset({"resultType", "inputRequests", "requestState"})
"""What a result of the handshake era says nothing with."""

Answer = types.CallToolResult | types.InputRequiredResult


class Send(Protocol):
    """Hands one message to the server."""

    async def __call__(self, item: SessionMessage, /) -> None: ...


@dataclass(slots=True)
class _Pending:
    """A call that waits: for its answer, and meanwhile for what is reported of it."""

    progress: ProgressFnT | None
    reports: deque[tuple[float, float | None, str | None]] = field(
        default_factory=lambda: deque[tuple[float, float | None, str | None]](maxlen=_MOST_REPORTS)
    )
    moved: anyio.Event = field(default_factory=anyio.Event)
    is_over: bool = False
    answer: types.JSONRPCResponse | types.JSONRPCError | None = None
    """None once it is over: there will be none."""

    async def settle(self) -> None:
        """Wait until it is over, and pass on what is reported of it, in order."""
        while True:
            await self.moved.wait()
            while self.progress is not None and self.reports:
                await _report(self.progress, *self.reports.popleft())
            if self.is_over:
                return
            self.moved = anyio.Event()

    def end(self, answer: types.JSONRPCResponse | types.JSONRPCError | None) -> None:
        if not self.is_over:
            self.is_over, self.answer = True, answer
            self.moved.set()


class DirectCalls:
    """The calls of one connection.

    Args:
        send: hands a message to the server; raises as a transport's writing end does.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._ids = count(_FIRST_ID)
        self._pending: dict[types.RequestId, _Pending] = {}
        self._envelope: dict[str, Any] = {}
        self._version: str | None = None
        self._closed = False

    @property
    def is_ready(self) -> bool:
        """Whether it is known what protocol revision is spoken, and calls can be sent."""
        return self._version is not None and not self._closed

    def speak(self, version: str) -> None:
        """Take up the protocol revision that the session has agreed on."""
        self._version = version

    def watch(self, request: types.JSONRPCRequest) -> None:
        """Take up what the session says of its client with a request."""
        if request.method == "tools/list":
            said = cast("Mapping[str, Any]", (request.params or {}).get("_meta") or {})
            self._envelope = {key: value for key, value in said.items() if key.startswith(_OF_PROTOCOL)}

    async def call(
        self, params: Mapping[str, Any], meta: Mapping[str, Any] | None, progress: ProgressFnT | None
    ) -> Answer:
        """Send a `tools/call` and return its answer; given up, it is cancelled at the server too.

        Args:
            params: of the request, without `_meta`.
            meta: of the request, beside what every request says.
            progress: awaited for each progress report.

        Raises:
            MCPError: the server answered an error, or its connection was closed.
            ValidationError: what it answered is no result of a tool.
        """
        number = next(self._ids)
        sent = {**self._envelope, **(meta or {})}
        if progress is not None:
            sent["progressToken"] = number
        inject(sent)
        whole = {**params, "_meta": sent} if sent else dict(params)
        request = types.JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call", params=whole)
        pending = self._pending[number] = _Pending(progress)
        try:
            if not self._closed:
                await self._answered(request, pending)
        finally:
            self._pending.pop(number, None)
        return self._read(pending.answer)

    async def _answered(self, request: types.JSONRPCRequest, pending: _Pending) -> None:
        # A write that is cut off may have been delivered: from here on the call counts as made.
        await anyio.lowlevel.checkpoint_if_cancelled()
        try:
            await self._send(SessionMessage(request))
            await pending.settle()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
                await self._cancel(request.id)
            raise

    async def _cancel(self, number: types.RequestId) -> None:
        said = {"requestId": number, "reason": "caller cancelled"}
        notice = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=said)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # gone, it does not go on
            await self._send(SessionMessage(notice))

    def _read(self, answer: types.JSONRPCResponse | types.JSONRPCError | None) -> Answer:
        match answer:
            case None:
                raise MCPError(types.CONNECTION_CLOSED, "Connection closed")
            case types.JSONRPCError(error=error):
                raise MCPError(error.code, error.message, error.data)
            case types.JSONRPCResponse(result=result):
                assert self._version is not None
                if not self._envelope:
                    result = {key: value for key, value in result.items() if key not in _LATER}
                return cast("Answer", parse_server_result("tools/call", self._version, result))

    def concerns(self, message: types.JSONRPCMessage) -> bool:
        """Return whether a message is about a call of these, and so concerns nobody else."""
        return self._pending_of(message) is not None

    def take(self, message: types.JSONRPCMessage) -> None:
        """Take in a message that concerns a call of these."""
        pending = self._pending_of(message)
        if pending is None:
            return
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            pending.end(message)
        elif (report := _read_report(message.params or {})) is not None:
            pending.reports.append(report)
            pending.moved.set()

    def _pending_of(self, message: types.JSONRPCMessage) -> _Pending | None:
        match message:
            case types.JSONRPCResponse(id=number) | types.JSONRPCError(id=number):
                return self._of(number)
            case types.JSONRPCNotification(method="notifications/progress", params=dict(said)):
                return self._of(said.get("progressToken"))
            case _:
                return None

    def close(self) -> None:
        """Let every call know that it will not be answered."""
        self._closed = True
        for pending in self._pending.values():
            pending.end(None)

    def _of(self, number: object) -> _Pending | None:
        if not isinstance(number, str | int) or isinstance(number, bool):
            return None
        return self._pending.get(coerce_request_id(number))


def _read_report(said: Mapping[str, Any]) -> tuple[float, float | None, str | None] | None:
    match said:
        case {"progress": int() | float() as done} if not isinstance(done, bool):
            total, words = said.get("total"), said.get("message")
            return (
                float(done),
                float(total) if isinstance(total, int | float) else None,
                words if isinstance(words, str) else None,
            )
        case _:
            return None


async def _report(progress: ProgressFnT, done: float, total: float | None, words: str | None) -> None:
    try:
        await progress(done, total, words)
    except Exception:
        _LOG.exception("the progress of a call could not be passed on")

"""One supervised upstream: started when first needed, kept, reconnected, closed.

Each attempt to connect is one task that opens the client, lists the tools, and stays until the
upstream ends or the connection is closed, so that whatever was entered is left in the same task.
Callers wait for the attempt and then use its client directly. Which upstreams there are belongs
to `catalog.connections`; what an answer means to `catalog.call`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal, cast

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp import Client, MCPError
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from pydantic import JsonValue, ValidationError

from catalog.call import classify
from catalog.errors import CatalogError
from catalog.listing import Listing, list_tools
from catalog.plain_text import plain_text
from catalog.result import CallFailure, CallOutcome, FailureKind, RanUpstream
from catalog.tools import Tool
from catalog.transport import LastWords
from catalog.wire import NotSent, Transport, Wire

__all__ = ["Connection", "Era", "EraMemory", "OpenTransport", "Options", "Progress", "Status"]

Status = Literal["idle", "starting", "ready", "failed", "closed"]
Era = Literal["legacy", "modern"]
EraMemory = dict[str, Era]
"""Which era each server was found to speak, so that only a first connection probes."""
Progress = Callable[[float, float | None, str | None], Awaitable[None]]
OpenTransport = Callable[[LastWords], Transport]

_FIRST_BACKOFF_SECONDS: Final = 0.5
_MAX_BACKOFF_SECONDS: Final = 30.0
_PROBE_SECONDS: Final = 5.0
_MAX_ERROR_CHARACTERS: Final = 1_000
_SESSION_LOST: Final = "Session terminated"


@dataclass(frozen=True, slots=True)
class Options:
    """How a connection behaves."""

    start_seconds: float = 30.0
    """Bound of connecting and listing."""
    reconnects: bool = True
    """Whether a lost upstream is started anew; False where its state would be lost unseen."""
    era: Era | None = None
    """The only era to speak, None: what the server is found to speak."""


@dataclass(eq=False)
class _Link:
    """One attempt to connect, and the connection it becomes."""

    wire: Wire = field(default_factory=Wire)
    words: LastWords = field(default_factory=LastWords)
    settled: anyio.Event = field(default_factory=anyio.Event)
    """Set when the attempt succeeded or failed."""
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when its task has closed everything."""
    stale: anyio.Event = field(default_factory=anyio.Event)
    """Set when the upstream announced that its tools changed."""
    client: Client | None = None
    error: str | None = None
    in_flight: int = 0

    @property
    def usable(self) -> bool:
        return self.client is not None and not self.wire.ended.is_set()

    @property
    def pending(self) -> bool:
        return not self.settled.is_set()


class Connection:
    """A connection to one upstream.

    Attributes:
        name: configured name of the upstream.
        tools: its tools as last listed; kept while it is away.
        problems: what is wrong with it or its definitions, readable.
        seconds_to_start: how long the last successful start took, None before one.
        generation: how often it was started successfully; grows when process state may be lost.
    """

    def __init__(
        self,
        name: str,
        open_transport: OpenTransport,
        group: TaskGroup,
        eras: EraMemory,
        options: Options,
        changed: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self.tools: tuple[Tool, ...] = ()
        self.seconds_to_start: float | None = None
        self.generation = 0
        self._open_transport = open_transport
        self._group = group
        self._eras = eras
        self._options = options
        self._changed = changed
        self._link: _Link | None = None
        self._listing = Listing((), (), {})
        self._closed = False
        self._failures = 0
        self._retry_at = 0.0

    @property
    def status(self) -> Status:
        """What the connection is doing now."""
        link = self._link
        if self._closed:
            return "closed"
        if link is None:
            return "idle"
        if link.pending:
            return "starting"
        return "ready" if link.usable else "failed"

    @property
    def era(self) -> Era | None:
        """The protocol era spoken, None while unknown."""
        return self._eras.get(self.name)

    @property
    def problems(self) -> list[str]:
        """What is wrong, the reason of a failed start first."""
        link = self._link
        if link is None:
            return []
        failure = [link.error] if link.error is not None else []
        return [*failure, *link.words.problems(), *self._listing.problems]

    def start(self) -> None:
        """Begin to connect unless connected, connecting, closed or waiting after a failure."""
        link = self._link
        if self._closed or (link is not None and (link.pending or link.usable)):
            return
        if link is not None and not self._options.reconnects:
            return
        if anyio.current_time() < self._retry_at:
            return
        self._link = _Link()
        self._group.start_soon(self._hold, self._link, link)

    async def ready(self) -> bool:
        """Connect if necessary; return whether the upstream can be called now."""
        self.start()
        if self._link is not None:
            await self._link.settled.wait()
        return self._link is not None and self._link.usable

    def close(self) -> None:
        """End the connection for good; its task closes client and process."""
        self._closed = True
        if self._link is not None:
            self._link.wire.ended.set()

    async def closed(self) -> None:
        """Wait until everything of a closed connection is gone."""
        if self._link is not None:
            await self._link.left.wait()

    async def call(
        self,
        tool: str,
        arguments: dict[str, JsonValue],
        *,
        timeout_seconds: float,
        progress: Progress | None = None,
    ) -> CallOutcome:
        """Call a tool and return what came of it; trouble upstream is a value, never raised.

        Cancelling the caller cancels the call upstream.

        Args:
            tool: name as the upstream lists it.
            arguments: sent as they are.
            timeout_seconds: bound of the whole call, a start included.
            progress: awaited for each progress report of the upstream.
        """
        call = _Call(tool, arguments, progress, time.perf_counter())
        with anyio.move_on_after(timeout_seconds):
            return await self._attempt(call)
        if call.link is None:
            return call.failure(
                FailureKind.TIMEOUT, f"not started within {timeout_seconds:g} s", RanUpstream.NO
            )
        self._group.start_soon(self._restart_if_hung, call.link)
        return call.failure(
            FailureKind.TIMEOUT, f"no answer within {timeout_seconds:g} s", RanUpstream.UNSURE
        )

    async def _attempt(self, call: _Call) -> CallOutcome:
        for _ in range(2):
            if not await self.ready():
                return call.failure(FailureKind.SERVER_UNAVAILABLE, self._why_unavailable(), RanUpstream.NO)
            if (reason := self._listing.quarantined.get(call.tool)) is not None:
                return call.failure(FailureKind.UNKNOWN_TOOL, f"quarantined: {reason}", RanUpstream.NO)
            outcome = await self._send(call)
            if outcome is not None:
                return outcome
        return call.failure(FailureKind.SERVER_UNAVAILABLE, self._why_unavailable(), RanUpstream.NO)

    async def _send(self, call: _Call) -> CallOutcome | None:
        """Return the outcome on the current link, or None when the call provably never reached it."""
        link = self._link
        if link is None or link.client is None:
            return None
        call.link = link
        link.in_flight += 1
        try:
            answer = await link.client.call_tool(call.tool, call.arguments, progress_callback=call.relay)
        except NotSent:
            call.link = None
            return None
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                return await self._lost(call, link)
            if error.code == types.INVALID_REQUEST and error.message == _SESSION_LOST:
                link.wire.ended.set()
                await link.left.wait()
                return None
            return classify(error, self._tool(call.tool), call.seconds)
        except (ValidationError, RuntimeError) as error:
            return classify(error, self._tool(call.tool), call.seconds)
        finally:
            link.in_flight -= 1
        return classify(answer, self._tool(call.tool), call.seconds)

    async def _lost(self, call: _Call, link: _Link) -> CallOutcome:
        """Return the failure of a call whose upstream went away before it answered."""
        link.wire.ended.set()
        await link.left.wait()
        kind = FailureKind.OVER_LIMIT if link.words.too_large else FailureKind.SERVER_UNAVAILABLE
        reason = link.error or link.words.describe()
        return call.failure(
            kind, f"the connection was lost during the call: {reason}".rstrip(": "), RanUpstream.UNSURE
        )

    def _tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.id.tool == name), None)

    def _why_unavailable(self) -> str:
        link = self._link
        if self._closed:
            return "the connection is closed"
        if link is None:
            return "not started"
        if not self._options.reconnects and link.error is None:
            return f"its process has ended, and with it its state: {link.words.describe()}".rstrip(": ")
        return link.error or link.words.describe() or "the connection was lost"

    async def _hold(self, link: _Link, previous: _Link | None) -> None:
        """Connect, then stay until the upstream ends or the connection is closed."""
        try:
            if previous is not None:
                await previous.left.wait()
            for era in self._eras_to_try():
                link.error = None
                link.wire, link.words = Wire(), LastWords()
                await self._connect(link, era)
                if link.settled.is_set() or self._closed:
                    break
        finally:
            link.client = None
            link.wire.ended.set()
            if link.pending or link.error is not None:
                self._back_off()
            link.settled.set()
            link.left.set()

    def _eras_to_try(self) -> tuple[Era, ...]:
        if self._options.era is not None:
            return (self._options.era,)
        if self._eras.get(self.name) == "legacy":
            return ("legacy",)
        return ("modern", "legacy")

    async def _connect(self, link: _Link, era: Era) -> None:
        began = time.perf_counter()
        deadline = anyio.current_time() + self._options.start_seconds
        with anyio.CancelScope(deadline=deadline) as scope:
            try:
                async with self._client(link, era) as client:
                    client.session.validate_tool_result = _leave_validation_to_classify
                    link.wire.legacy = client.session.initialize_result is not None
                    listing = await list_tools(client, self.name, link.wire.problems)
                    scope.deadline = math.inf
                    self._established(link, client, listing, time.perf_counter() - began)
                    await self._stay(link, client)
            except Exception as error:  # whatever a transport raises is this upstream's failure
                link.error = self._describe(error, link)
        if scope.cancelled_caught:
            link.error = f"not ready within {self._options.start_seconds:g} s"

    def _client(self, link: _Link, era: Era) -> Client:
        async def message_handler(message: IncomingMessage) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                link.stale.set()

        return Client(
            link.wire.around(self._open_transport(link.words)),
            mode="legacy" if era == "legacy" else "auto",
            message_handler=message_handler,
            cache=None,
        )

    def _established(self, link: _Link, client: Client, listing: Listing, seconds: float) -> None:
        self._eras[self.name] = "legacy" if link.wire.legacy else "modern"
        self.seconds_to_start = seconds
        self.generation += 1
        self._failures = 0
        link.client = client
        self._take(listing)
        link.settled.set()

    def _take(self, listing: Listing) -> None:
        before, self.tools, self._listing = self.tools, listing.tools, listing
        known = self.generation > 1 or bool(before)
        if known and before != listing.tools and self._changed is not None:
            self._changed(self.name)

    async def _stay(self, link: _Link, client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep_listing, link, client)
            if self._announces_changes(client):
                group.start_soon(_listen, link, client)
            await link.wire.ended.wait()
            group.cancel_scope.cancel()

    def _announces_changes(self, client: Client) -> bool:
        tools = client.server_capabilities.tools
        return self.era == "modern" and tools is not None and bool(tools.list_changed)

    async def _keep_listing(self, link: _Link, client: Client) -> None:
        while True:
            await link.stale.wait()
            link.stale = anyio.Event()
            try:
                self._take(await list_tools(client, self.name, link.wire.problems))
            except (MCPError, ValidationError) as error:
                link.wire.note(f"its changed tool list could not be read: {_flat(error)}")

    async def _restart_if_hung(self, link: _Link) -> None:
        """End a link that no longer answers anything, unless another call may still be at work on it."""
        if link.client is None or link.in_flight:
            return
        with anyio.move_on_after(_PROBE_SECONDS):
            with suppress(MCPError, ValidationError, NotSent):  # any answer shows that it lives
                await link.client.list_tools(cache_mode="bypass")
            return
        if not link.in_flight:
            link.error = "it stopped answering and was ended"
            link.wire.ended.set()

    def _back_off(self) -> None:
        self._failures += 1
        seconds = min(_FIRST_BACKOFF_SECONDS * 2 ** (self._failures - 1), _MAX_BACKOFF_SECONDS)
        self._retry_at = anyio.current_time() + seconds

    def _describe(self, error: Exception, link: _Link) -> str:
        return plain_text(
            "; ".join(part for part in (_flat(error), link.words.describe()) if part), _MAX_ERROR_CHARACTERS
        )


@dataclass
class _Call:
    """One call under way."""

    tool: str
    arguments: dict[str, JsonValue]
    progress: Progress | None
    began: float
    link: _Link | None = None
    """Where it was sent; None while it provably was not."""

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    @property
    def relay(self) -> ProgressFnT | None:
        """The progress callback in the client's shape."""
        report = self.progress
        if report is None:
            return None

        async def relay(progress: float, total: float | None, message: str | None) -> None:
            await report(progress, total, message)

        return relay

    def failure(self, kind: FailureKind, message: str, ran: RanUpstream) -> CallFailure:
        return CallFailure(kind, message, self.seconds, ran=ran)


async def _leave_validation_to_classify(name: str, result: types.CallToolResult) -> None:
    """Stand in for the client's own check, which blocks the event loop on hostile schemas."""


async def _listen(link: _Link, client: Client) -> None:
    """Mark the tools stale whenever a modern upstream announces a change."""
    while True:
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    link.stale.set()
        except SubscriptionLost:
            link.stale.set()
        except (MCPError, NotSent) as error:
            link.wire.note(f"it does not announce changes of its tools: {_flat(error)}")
            return
        await anyio.sleep(1.0)


def _flat(error: BaseException) -> str:
    """Return the words of the first plain error inside groups of errors."""
    if isinstance(error, BaseExceptionGroup):
        return _flat(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    if isinstance(error, CatalogError | MCPError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

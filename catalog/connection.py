"""One supervised upstream: started when first needed, called, reconnected, closed.

At most one link is alive at a time, however many callers need it. Callers wait for the link and
then use its client directly. Which upstreams there are belongs to `catalog.connections`; what an
answer means to `catalog.call`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT
from pydantic import JsonValue, ValidationError

from catalog.call import classify, classify_large
from catalog.link import Era, Link, OpenTransport
from catalog.result import CallFailure, CallOutcome, FailureKind, RanUpstream
from catalog.tools import Tool
from catalog.wire import NotSent

__all__ = ["Connection", "EraMemory", "Options", "Progress", "Status"]

Status = Literal["idle", "starting", "ready", "failed", "closed"]
EraMemory = dict[str, Era]
"""Which era each server was found to speak, so that only a first connection probes."""
Progress = Callable[[float, float | None, str | None], Awaitable[None]]

_FIRST_BACKOFF_SECONDS: Final = 0.5
_MAX_BACKOFF_SECONDS: Final = 30.0
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


class Connection:
    """A connection to one upstream.

    Attributes:
        name: configured name of the upstream.
        tools: its tools as last listed; kept while it is away.
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
        self._link: Link | None = None
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
        """What is wrong with it or its definitions, the reason of a failed start first."""
        return self._link.problems if self._link is not None else []

    @property
    def quarantined(self) -> Mapping[str, str]:
        """Tools it lists that are never called, with the reason; as last listed."""
        listing = self._link.listing if self._link is not None else None
        return listing.quarantined if listing is not None else {}

    def start(self) -> None:
        """Begin to connect unless connected, connecting, closed or waiting after a failure."""
        before = self._link
        if self._closed or (before is not None and (before.pending or before.usable)):
            return
        if (before is not None and not self._options.reconnects) or anyio.current_time() < self._retry_at:
            return
        self._link = Link(self.name, self._open_transport, self._listed)
        self._group.start_soon(self._run, self._link, before)

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
            self._link.close()

    async def lost(self) -> None:
        """Wait until the present connection has ended and everything of it is gone."""
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
        self._group.start_soon(call.link.end_if_hung)
        return call.failure(
            FailureKind.TIMEOUT, f"no answer within {timeout_seconds:g} s", RanUpstream.UNSURE
        )

    async def _attempt(self, call: _Call) -> CallOutcome:
        """Make the call, a second time where the first provably never reached the upstream."""
        for _ in range(2):
            link = self._link if await self.ready() else None
            if link is None or link.listing is None:
                break
            if (reason := link.listing.quarantined.get(call.tool)) is not None:
                return call.failure(FailureKind.UNKNOWN_TOOL, f"quarantined: {reason}", RanUpstream.NO)
            if (outcome := await self._send(call, link)) is not None:
                return outcome
        return call.failure(FailureKind.SERVER_UNAVAILABLE, self._why_unavailable(), RanUpstream.NO)

    async def _send(self, call: _Call, link: Link) -> CallOutcome | None:
        """Return the outcome on a link, or None when the call provably never reached the upstream."""
        if link.client is None:
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
                return await _lost(call, link)
            if error.code == types.INVALID_REQUEST and error.message == _SESSION_LOST:
                link.end()
                await link.left.wait()
                call.link = None
                return None
            return classify(error, self._tool(call.tool), call.seconds)
        except (ValidationError, RuntimeError) as error:
            return classify(error, self._tool(call.tool), call.seconds)
        finally:
            link.in_flight -= 1
        return await classify_large(answer, self._tool(call.tool), call.seconds)

    def _tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.id.tool == name), None)

    def _why_unavailable(self) -> str:
        link = self._link
        if self._closed:
            return "the connection is closed"
        reason = link.why() if link is not None else ""
        if not self._options.reconnects and link is not None and link.era is not None:
            return f"its process has ended, and its state with it: {reason}".rstrip(": ")
        return reason or "the connection was lost"

    async def _run(self, link: Link, before: Link | None) -> None:
        await link.run(self._eras_to_try(), self._options.start_seconds, before)
        if link.era is None:
            self._failures += 1
            seconds = min(_FIRST_BACKOFF_SECONDS * 2 ** (self._failures - 1), _MAX_BACKOFF_SECONDS)
            self._retry_at = anyio.current_time() + seconds

    def _eras_to_try(self) -> tuple[Era, ...]:
        if self._options.era is not None:
            return (self._options.era,)
        if self._eras.get(self.name) == "legacy":
            return ("legacy",)
        return ("modern", "legacy")

    def _listed(self, link: Link) -> None:
        """Take over what a link found out: its tools, and on its first list that it is connected."""
        if link.era is None or link.listing is None:
            return
        if link.pending:
            self._eras[self.name] = link.era
            self.seconds_to_start = link.seconds_to_start
            self.generation += 1
            self._failures = 0
        first = self.generation == 1 and link.pending
        before, self.tools = self.tools, link.listing.tools
        if not first and before != self.tools and self._changed is not None:
            self._changed(self.name)


@dataclass
class _Call:
    """One call under way."""

    tool: str
    arguments: dict[str, JsonValue]
    progress: Progress | None
    began: float
    link: Link | None = None
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


async def _lost(call: _Call, link: Link) -> CallOutcome:
    """Return the failure of a call whose upstream went away before it answered."""
    link.end()
    await link.left.wait()
    kind = FailureKind.OVER_LIMIT if link.too_large else FailureKind.SERVER_UNAVAILABLE
    reason = f"the connection was lost during the call: {link.why()}".rstrip(": ")
    return call.failure(kind, reason, RanUpstream.UNSURE)

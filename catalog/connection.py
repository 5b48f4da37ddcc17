"""One supervised upstream: started when first needed, called, reconnected, closed.

At most one link is alive at a time, however many callers need it. Callers wait for the link and
then use its client directly, so many at once and no more; a circuit keeps them from waiting for an
upstream that is known to be of no use. Which upstreams there are belongs to `catalog.connections`; what an
answer means to `catalog.call`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT
from pydantic import JsonValue, ValidationError

from catalog.call import classify, classify_large
from catalog.circuit import Circuit, CircuitState, Dice
from catalog.config.model import Forwarded
from catalog.era import Era
from catalog.forwarding import Attendant, AttendedCall, NotForwarded, Unhurried
from catalog.http_client import NOT_DELIVERED
from catalog.link import Link, OpenTransport
from catalog.result import CallFailure, CallOutcome, FailureKind, RanUpstream
from catalog.tools import Tool
from catalog.wire import NotSent

__all__ = ["Connection", "EraMemory", "Options", "Progress", "Status"]

Status = Literal["idle", "starting", "ready", "failed", "closed"]
EraMemory = dict[str, Era]
"""Which era each server was found to speak, so that only a first connection probes."""
Progress = Callable[[float, float | None, str | None], Awaitable[None]]

_SESSION_LOST = "Session terminated"
_NO_ANSWER = frozenset({FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class Options:
    """How a connection behaves."""

    start_seconds: float = 30.0
    """Bound of connecting and listing."""
    reconnects: bool = True
    """Whether a lost upstream is started anew; False where its state would be lost unseen."""
    era: Era | None = None
    """The only era to speak, None: what the server is found to speak."""
    parallel_calls: int = 16
    """Calls under way at once; others wait, within their time."""
    idle_seconds: float | None = None
    """After how long without a call it is ended until the next one, None: never."""
    forwards: frozenset[Forwarded] = frozenset()
    """What it may ask or tell the client behind a call."""
    leaves_state: Callable[[str], bool] = lambda tool: True  # noqa: ARG005  (of any tool)
    """Whether a call of this tool may leave something that ending the upstream would lose."""


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
        dice: Dice,
        changed: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self.tools: tuple[Tool, ...] = ()
        self.seconds_to_start: float | None = None
        self.generation = 0
        self._by_name: dict[str, Tool] = {}
        self._open_transport = open_transport
        self._group = group
        self._eras = eras
        self._options = options
        self._changed = changed
        self._link: Link | None = None
        self._closed = False
        self._distrusts_era = False
        self._circuit = Circuit(anyio.current_time, dice)
        self._slots = anyio.Semaphore(options.parallel_calls, fast_acquire=True)

    @property
    def status(self) -> Status:
        """What the connection is doing now."""
        link = self._link
        if self._closed:
            return "closed"
        if link is None or (link.is_retired and not link.usable):
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
        of_link = self._link.problems if self._link is not None else []
        is_told = self._link is not None and self._link.error is not None
        if self._circuit.state == "closed" or is_told:
            return of_link
        return [self._circuit.why(), *of_link]

    @property
    def circuit(self) -> CircuitState:
        """Whether calls are sent: `closed` they are, `open` they fail at once, `half_open` one is tried."""
        return self._circuit.state

    @property
    def retry_seconds(self) -> float | None:
        """How long until the upstream is tried again, None unless the circuit is open."""
        return self._circuit.retry_seconds

    @property
    def calls_under_way(self) -> int:
        """Calls that were sent and not yet answered."""
        return self._link.in_flight if self._link is not None else 0

    @property
    def quarantined(self) -> Mapping[str, str]:
        """Tools it lists that are never called, with the reason; as last listed."""
        listing = self._link.listing if self._link is not None else None
        return listing.quarantined if listing is not None else {}

    def start(self) -> None:
        """Begin to connect unless connected, connecting, closed or kept from it by the circuit."""
        before = self._link
        if self._closed or (before is not None and (before.pending or before.usable)):
            return
        if (before is not None and not self._options.reconnects) or self._circuit.state == "open":
            return
        options = self._options
        self._link = Link(
            self.name, self._open_transport, self._listed, options.idle_seconds, options.forwards
        )
        self._group.start_soon(self._run, self._link, before)

    async def ready(self) -> bool:
        """Connect if necessary; return whether the upstream can be called now."""
        self.start()
        if self._link is not None:
            await self._link.settled.wait()
        return self._link is not None and self._link.usable

    async def relist(self) -> None:
        """Read the tool list again, connecting if necessary; wait until it is read or cannot be."""
        if await self.ready() and self._link is not None:
            await self._link.relist()

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
        attendant: Attendant | None = None,
    ) -> CallOutcome:
        """Call a tool and return what came of it; trouble upstream is a value, never raised.

        Cancelling the caller cancels the call upstream.

        Args:
            tool: name as the upstream lists it.
            arguments: sent as they are.
            timeout_seconds: bound of the whole call, a start included.
            progress: awaited for each progress report of the upstream.
            attendant: who is behind the call, for what the upstream may ask.

        Raises:
            NotAnswered: the attendant cannot be asked that, or refused.
        """
        call = _Call(tool, arguments, progress, time.perf_counter(), attendant)
        outcome: CallOutcome | None = None
        try:
            outcome = await self._within(timeout_seconds, call)
            return outcome
        finally:
            self._count(call, outcome)

    async def _within(self, timeout_seconds: float, call: _Call) -> CallOutcome:
        with anyio.move_on_after(timeout_seconds) as scope:
            if call.attendant is not None:
                call.attendant = Unhurried(call.attendant, scope)
            async with self._slots:
                call.has_slot = True
                return await self._attempt(call)
        limit = f"within {timeout_seconds:g} s"
        if not call.has_slot:
            waited = f"not sent {limit}: {self._options.parallel_calls} calls are under way"
            return call.failure(FailureKind.TIMEOUT, waited, RanUpstream.NO)
        if call.link is None:
            return call.failure(FailureKind.TIMEOUT, f"not started {limit}", RanUpstream.NO)
        self._group.start_soon(call.link.end_if_hung)
        return call.failure(FailureKind.TIMEOUT, f"no answer {limit}", RanUpstream.UNSURE)

    def _count(self, call: _Call, outcome: CallOutcome | None) -> None:
        """Tell the circuit what came of a call; an answer of any kind shows that the upstream lives."""
        if not call.is_admitted:
            return
        if outcome is None or (isinstance(outcome, CallFailure) and call.was_never_sent(outcome)):
            self._circuit.abandoned()
        elif isinstance(outcome, CallFailure) and outcome.kind in _NO_ANSWER:
            self._circuit.failed(outcome.message)
        else:
            self._circuit.succeeded()

    async def _attempt(self, call: _Call) -> CallOutcome:
        """Make the call, a second time where the first provably never reached the upstream."""
        if self._options.reconnects and not self._closed:
            if not self._circuit.admit():
                return call.failure(FailureKind.SERVER_UNAVAILABLE, self._circuit.why(), RanUpstream.NO)
            call.is_admitted = True
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
        try:
            with link.calling(call.attendant, leaves_state=self._options.leaves_state(call.tool)):
                answer = await link.call(link.client, call.attended)
        except NotForwarded as refused:
            return call.failure(FailureKind.DENIED, str(refused), RanUpstream.UNSURE)
        except NotSent:
            call.link = None
            return None
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                return await _lost(call, link)
            if error.code == NOT_DELIVERED and link.in_flight:
                return call.failure(FailureKind.SERVER_UNAVAILABLE, error.message, RanUpstream.NO)
            if error.code == NOT_DELIVERED or _is_session_lost(error):
                link.end()
                await link.left.wait()
                call.link = None
                return None
            return classify(error, self._tool(call.tool), call.seconds)
        except (ValidationError, RuntimeError) as error:
            return classify(error, self._tool(call.tool), call.seconds)
        return await classify_large(answer, self._tool(call.tool), call.seconds)

    def _tool(self, name: str) -> Tool | None:
        return self._by_name.get(name)

    def _why_unavailable(self) -> str:
        link = self._link
        if self._closed:
            return "the connection is closed"
        reason = link.why() if link is not None else ""
        if not self._options.reconnects and link is not None and link.era is not None:
            return f"its process has ended, and its state with it: {reason}".rstrip(": ")
        return reason or "the connection was lost"

    async def _run(self, link: Link, before: Link | None) -> None:
        eras = self._eras_to_try()
        await link.run(eras, self._options.start_seconds, before)
        if link.era is None and not self._closed:
            self._distrusts_era = eras[0] == "legacy"
            self._circuit.failed_to_start(link.why())

    def _eras_to_try(self) -> tuple[Era, ...]:
        """Return the known era first; after it failed, as if nothing were known."""
        if self._options.era is not None:
            return (self._options.era,)
        if self._eras.get(self.name) == "legacy" and not self._distrusts_era:
            return ("legacy", "modern")
        return ("modern", "legacy")

    def _listed(self, link: Link) -> None:
        """Take over what a link found out: its tools, and on its first list that it is connected."""
        if link.era is None or link.listing is None:
            return
        if link.pending:
            self._eras[self.name] = link.era
            self.seconds_to_start = link.seconds_to_start
            self.generation += 1
            self._distrusts_era = False
            self._circuit.started()
        before, self.tools = self.tools, link.listing.tools
        self._by_name = {tool.id.tool: tool for tool in reversed(self.tools)}
        if before != self.tools and self._changed is not None:
            self._changed(self.name)


@dataclass
class _Call:
    """One call under way."""

    tool: str
    arguments: dict[str, JsonValue]
    progress: Progress | None
    began: float
    attendant: Attendant | None = None
    link: Link | None = None
    """Where it was sent; None while it provably was not."""
    has_slot: bool = False
    """Whether it was its turn among the calls of its upstream."""
    is_admitted: bool = False
    """Whether the circuit let it pass, and waits to hear what came of it."""

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

    @property
    def attended(self) -> AttendedCall:
        """The call as it is sent."""
        return AttendedCall(self.tool, self.arguments, self.relay, self.attendant)

    def was_never_sent(self, outcome: CallFailure) -> bool:
        """Whether its time ended before it could be sent, which says nothing of the upstream."""
        return outcome.kind is FailureKind.TIMEOUT and self.link is None

    def failure(self, kind: FailureKind, message: str, ran: RanUpstream) -> CallFailure:
        return CallFailure(kind, message, self.seconds, ran=ran)


def _is_session_lost(error: MCPError) -> bool:
    """Whether the server refused a call since it does not know the session any more."""
    return error.code == types.INVALID_REQUEST and error.message == _SESSION_LOST


async def _lost(call: _Call, link: Link) -> CallOutcome:
    """Return the failure of a call whose upstream went away before it answered."""
    link.end()
    await link.left.wait()
    kind = FailureKind.OVER_LIMIT if link.too_large else FailureKind.SERVER_UNAVAILABLE
    reason = f"the connection was lost during the call: {link.why()}".rstrip(": ")
    return call.failure(kind, reason, RanUpstream.UNSURE)

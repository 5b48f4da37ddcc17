"""One connection to one upstream, from the attempt to its end.

A link is run by one task, which opens the client, lists the tools, and stays until the upstream
ends or the link is closed, so that whatever was entered is left in the same task. When a new link
is made, and what a caller gets to see of it, belongs to `catalog.connection`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Final, cast

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.session import DISCOVER_TIMEOUT_SECONDS, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from pydantic import ValidationError

from catalog.config.model import Forwarded
from catalog.era import Era
from catalog.errors import CatalogError
from catalog.forwarding import Attendant, AttendedCall, Switchboard, call_attended
from catalog.listing import Listing, list_tools
from catalog.plain_text import plain_text
from catalog.transport import LastWords
from catalog.wire import NotSent, Transport, Wire

__all__ = ["Link", "OpenTransport"]

OpenTransport = Callable[[LastWords], Transport]

_PROBE_SECONDS: Final = 5.0
_RELISTEN_SECONDS: Final = 1.0
_SHORTEST_TTL_SECONDS: Final = 2.0
"""However short a list is said to last, it is not read again sooner."""
_MAX_ERROR_CHARACTERS: Final = 1_000


class _End(Enum):
    """How an attempt in one era ended, as far as it says whether another era is worth trying."""

    NEITHER = "it was connected, or would not be in another era either"
    LEFT = "the upstream went away at once, as some do at a question they do not know"
    SILENT = "it said nothing, and there was no time for the client's own second try"
    REFUSED = "it answered that it does not speak so"


_WORTH_ANOTHER: Final = {"modern": (_End.LEFT, _End.SILENT), "legacy": (_End.REFUSED,)}


class Link:
    """One attempt to connect, and the connection it becomes.

    Attributes:
        settled: set when the attempt succeeded or failed.
        left: set when everything of it is closed.
        client: the connected client; None before and after.
        listing: the tools as last listed; None before the first list.
        era: what the upstream was found to speak, None until then.
        error: why it failed or ended, None where nothing is known.
        seconds_to_start: how long connecting took, None until connected.
        in_flight: calls under way.
        is_retired: whether it was ended for being idle.
    """

    def __init__(
        self,
        name: str,
        open_transport: OpenTransport,
        listed: Callable[[Link], None],
        idle_seconds: float | None = None,
        forwards: frozenset[Forwarded] = frozenset(),
    ) -> None:
        self.settled = anyio.Event()
        self.left = anyio.Event()
        self.client: Client | None = None
        self.listing: Listing | None = None
        self.era: Era | None = None
        self.error: str | None = None
        self.seconds_to_start: float | None = None
        self.in_flight = 0
        self.is_retired = False
        self._idle_seconds = idle_seconds
        self._used_at = 0.0
        self._holds_state = False
        self._name = name
        self._open_transport = open_transport
        self._listed = listed
        self._board = Switchboard(name, forwards)
        self._wire = Wire()
        self._words = LastWords()
        self._scope = anyio.CancelScope()
        self._stale = anyio.Event()
        self._closed = False

    @property
    def pending(self) -> bool:
        """Whether the attempt is still under way."""
        return not self.settled.is_set()

    @property
    def usable(self) -> bool:
        """Whether calls can be sent."""
        return self.client is not None and not self._wire.ended.is_set()

    @property
    def too_large(self) -> bool:
        """Whether it ended because of a message over the size bound."""
        return self._words.too_large

    @property
    def problems(self) -> list[str]:
        """What is wrong with it, the reason of its end first."""
        listing = self.listing.problems if self.listing is not None else ()
        error = [self.error] if self.error is not None else []
        return [*error, *self._words.problems(), *self._wire.problems, *listing]

    @contextmanager
    def calling(self, attendant: Attendant | None, *, leaves_state: bool) -> Generator[None]:
        """Count a call as under way.

        Args:
            attendant: who is behind it, None: nobody who could be asked.
            leaves_state: whether it may leave something in the upstream that its end would lose;
                an upstream that holds something is never idle.
        """
        self.in_flight += 1
        self._holds_state |= leaves_state
        try:
            with self._board.attended(attendant):
                yield
        finally:
            self.in_flight -= 1
            self._used_at = anyio.current_time()

    async def call(self, client: Client, call: AttendedCall) -> types.CallToolResult:
        """Call a tool and lead the call through what its upstream asks.

        Raises:
            NotForwarded: it asked what is not passed on.
        """
        return await call_attended(client, call, self._board, self._wire.direct)

    def why(self) -> str:
        """Return why it cannot be used; empty when nothing is known."""
        return self.error or self._words.describe()

    def end(self) -> None:
        """Have the present connection closed, since it is of no more use."""
        self._wire.ended.set()

    def close(self) -> None:
        """End it now, the attempt too."""
        self._closed = True
        self.end()
        if self.pending:
            self._scope.cancel()

    async def run(self, eras: Sequence[Era], start_seconds: float, after: Link | None) -> None:
        """Connect, then stay until the upstream ends or the link is closed.

        Args:
            eras: to try in this order; the next one only where the first may have been the reason.
            start_seconds: bound of connecting and listing in one era.
            after: the link before this one, which must be gone first.
        """
        try:
            if after is not None:
                await after.left.wait()
            for era in eras:
                if self._closed or await self._connect(era, start_seconds) not in _WORTH_ANOTHER[era]:
                    break
        finally:
            self.client = None
            self.end()
            self.settled.set()
            self.left.set()

    async def end_if_hung(self) -> None:
        """End a connection that no longer answers anything, unless a call may still be at work on it."""
        if self.client is None or self.in_flight:
            return
        with anyio.move_on_after(_PROBE_SECONDS):
            with suppress(MCPError, ValidationError, NotSent):  # any answer shows that it lives
                await self.client.list_tools(cache_mode="bypass")
            return
        if not self.in_flight:
            self.error = "it stopped answering and was ended"
            self.end()

    async def _connect(self, era: Era, start_seconds: float) -> _End:
        """Connect and stay; return how it ended."""
        self._wire, self._words, self.error = Wire(), LastWords(), None
        self._scope = anyio.CancelScope(deadline=anyio.current_time() + start_seconds)
        end = _End.NEITHER
        is_understood = False
        began = time.perf_counter()
        with self._scope:
            try:
                async with self._client(era) as client:
                    is_understood = True
                    await self._establish(client, began)
                    self._scope.deadline = math.inf
                    await self._stay(client)
            except Exception as error:  # whatever a transport raises is this upstream's failure
                told = "; ".join(part for part in (_words(error), self._words.describe()) if part)
                self.error = plain_text(told, _MAX_ERROR_CHARACTERS)
                if self.pending and _is_closed(error):
                    end = _End.LEFT
                elif not is_understood and isinstance(_first(error), MCPError):
                    end = _End.REFUSED
        if self._scope.cancelled_caught and not self._closed:
            self.error = f"not ready within {start_seconds:g} s"
            end = _End.SILENT if start_seconds <= DISCOVER_TIMEOUT_SECONDS else _End.NEITHER
        return end

    def _client(self, era: Era) -> Client:
        async def message_handler(message: IncomingMessage) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                self._stale.set()

        board = self._board
        return Client(
            self._wire.around(self._open_transport(self._words)),
            mode="legacy" if era == "legacy" else "auto",
            message_handler=message_handler,
            cache=None,
            elicitation_callback=board.offered("elicitation", board.elicit),
            sampling_callback=board.offered("sampling", board.sample),
            list_roots_callback=board.offered("roots", board.roots),
            logging_callback=board.offered("log", board.log),
        )

    async def _establish(self, client: Client, began: float) -> None:
        client.session.validate_tool_result = _leave_validation_to_classify
        self._wire.legacy = client.session.initialize_result is not None
        if self._wire.direct is not None and client.session.protocol_version is not None:
            self._wire.direct.speak(client.session.protocol_version)
        listing = await list_tools(client, self._name, self._wire.repairs)
        self.era = "legacy" if self._wire.legacy else "modern"
        self.seconds_to_start = time.perf_counter() - began
        self.client = client
        self._take(listing)
        self.settled.set()

    def _take(self, listing: Listing) -> None:
        self.listing = listing
        self._listed(self)

    async def _stay(self, client: Client) -> None:
        tools = client.server_capabilities.tools
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep_listing)
            if self._idle_seconds is not None:
                group.start_soon(self._retire_when_idle, self._idle_seconds)
            if self.era == "modern" and tools is not None and tools.list_changed:
                group.start_soon(self._listen, client)
            await self._wire.ended.wait()
            group.cancel_scope.cancel()

    async def _retire_when_idle(self, seconds: float) -> None:
        self._used_at = anyio.current_time()
        while not self._holds_state:
            left = self._used_at + seconds - anyio.current_time()
            if left <= 0 and not self.in_flight:
                self.is_retired = True
                self.end()
                return
            await anyio.sleep(max(left, seconds / 10))

    async def relist(self) -> None:
        """Read the tool list again, unless the upstream is gone; what cannot be read is a problem."""
        if self.client is None:
            return
        try:
            self._take(await list_tools(self.client, self._name, self._wire.repairs))
        except (MCPError, ValidationError, NotSent) as error:
            self._wire.note(f"its changed tool list could not be read: {_words(error)}")

    async def _keep_listing(self) -> None:
        while True:
            with anyio.move_on_after(self._list_lasts_seconds()):
                await self._stale.wait()
            self._stale = anyio.Event()
            await self.relist()

    def _list_lasts_seconds(self) -> float:
        said = self.listing.lasts_seconds if self.listing is not None else None
        return math.inf if said is None else max(said, _SHORTEST_TTL_SECONDS)

    async def _listen(self, client: Client) -> None:
        """Mark the tools stale whenever an upstream of the newer era announces a change."""
        while True:
            try:
                async with client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        self._stale.set()
            except SubscriptionLost:
                self._stale.set()
            except (MCPError, NotSent) as error:
                self._wire.note(f"it does not announce changes of its tools: {_words(error)}")
                return
            await anyio.sleep(_RELISTEN_SECONDS)


async def _leave_validation_to_classify(name: str, result: types.CallToolResult) -> None:
    """Stand in for the client's own check, which blocks the event loop on hostile schemas."""


def _first(error: BaseException) -> BaseException:
    """Return the first plain error inside groups of errors."""
    if isinstance(error, BaseExceptionGroup):
        return _first(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    return error


def _is_closed(error: BaseException) -> bool:
    plain = _first(error)
    return isinstance(plain, NotSent) or (
        isinstance(plain, MCPError) and plain.code == types.CONNECTION_CLOSED
    )


def _words(error: BaseException) -> str:
    plain = _first(error)
    if isinstance(plain, CatalogError | MCPError):
        return str(plain)
    return f"{type(plain).__name__}: {plain}" if str(plain) else type(plain).__name__

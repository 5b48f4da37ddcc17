"""Tells clients of both eras that the tool list changed, once per real change.

The bank may also be changed by other processes, so its revision is looked at every second; a call
that may have changed it is followed by a look at once.
"""

from __future__ import annotations

import logging
from typing import Any

import anyio
from mcp.server import ServerRequestContext
from mcp.server.connection import Connection
from mcp.server.subscriptions import SubscriptionBus, ToolsListChanged
from mcp.types import NotificationParams

from server.surface.listing import Listing, ListingSource
from skills_store.errors import StoreError

__all__ = ["ListChanges"]

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 1.0
_SEND_SECONDS = 5.0
"""How long a client that does not read may hold up the others."""


class ListChanges:
    """Watches the listing and announces its changes.

    Args:
        source: the listing that clients see.
        bus: reaches the listen streams of 2026-07-28.
    """

    def __init__(self, source: ListingSource, bus: SubscriptionBus) -> None:
        self._source = source
        self._bus = bus
        self._sessions: dict[int, Connection] = {}
        self._seen: Listing | None = None
        self._announced: str | None = None
        self._nudged = anyio.Event()

    @property
    def sessions(self) -> int:
        """How many handshake-era connections are open."""
        return len(self._sessions)

    async def add_session(self, ctx: ServerRequestContext[Any, Any], params: NotificationParams) -> None:
        """Remember a handshake-era connection until it closes; it has just been initialized."""
        del params
        # The session object lives for one message; the SDK has no public way to what outlives it.
        connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage]
        self._sessions[id(connection)] = connection
        connection.exit_stack.callback(self._sessions.pop, id(connection), None)

    def nudge(self) -> None:
        """Announce a change now, if there is any."""
        try:
            changed = self._source.current() is not self._seen
        except StoreError:
            changed = True  # `watch` finds the same and says so; the call that nudges is not at fault
        if changed:
            self._nudged.set()

    async def watch(self) -> None:
        """Announce changes until cancelled."""
        while True:
            try:
                await self._announce_change()
            except Exception:
                _LOG.exception("the tool list could not be read; clients hear of changes later")
            with anyio.move_on_after(_POLL_SECONDS):
                await self._nudged.wait()
            self._nudged = anyio.Event()

    async def _announce_change(self) -> None:
        listing = self._source.current()
        if listing is self._seen:
            return
        self._seen = listing
        before, self._announced = self._announced, listing.fingerprint()
        if before is None or before == self._announced:
            return
        await self._bus.publish(ToolsListChanged())
        for connection in list(self._sessions.values()):
            with anyio.move_on_after(_SEND_SECONDS):
                await connection.send_tool_list_changed()

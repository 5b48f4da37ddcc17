"""Tells clients of both eras what changed: the tools, the resources, one resource; once per real change.

The bank may also be changed by other processes, so its revision is looked at every second; a call
that may have changed it is followed by a look at once. Several changes between two looks are told
as one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

import anyio
from mcp import MCPError
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    SubscriptionBus,
    ToolsListChanged,
)

from catalog.canonical import digest
from server.surface.audience import Audience
from server.surface.listing import Listing, ListingSource
from server.surface.sources import Library
from skills_store.errors import StoreError

__all__ = ["ListChanges"]

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 1.0
_SEND_SECONDS = 5.0
"""How long a client that does not read may hold up the others."""


class ListChanges:
    """Watches what clients see and announces its changes.

    Args:
        source: the tools that clients see.
        library: the resources that clients see.
        audience: the clients of the handshake era, and what is listened to.
        bus: reaches the listen streams of 2026-07-28.
    """

    def __init__(
        self, source: ListingSource, library: Library, audience: Audience, bus: SubscriptionBus
    ) -> None:
        self._source = source
        self._library = library
        self._audience = audience
        self._bus = bus
        self._seen: Listing | None = None
        self._tools: str | None = None
        self._resources: str | None = None
        self._contents: dict[str, str | None] = {}
        self._nudged = anyio.Event()
        self._looked = anyio.Event()

    @property
    def sessions(self) -> int:
        """How many handshake-era connections are open."""
        return len(self._audience.connections)

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
                await self._look()
            except Exception:
                _LOG.exception("what clients see could not be read; they hear of changes later")
            self._looked.set()
            self._looked = anyio.Event()
            with anyio.move_on_after(_POLL_SECONDS):
                await self._nudged.wait()
            self._nudged = anyio.Event()

    async def look_now(self) -> None:
        """Have everything looked at from here on, and wait until it was and clients were told."""
        for _ in range(2):  # the look under way may have begun before
            looked = self._looked
            self._nudged.set()
            await looked.wait()

    async def tell_prompts(self) -> None:
        """Tell every client that the prompts are others now."""
        await self._bus.publish(PromptsListChanged())
        await _send(self._audience.connections, Connection.send_prompt_list_changed)

    async def tell_tools(self) -> None:
        """Tell every client that the tools are others now."""
        await self._bus.publish(ToolsListChanged())
        await _send(self._audience.connections, Connection.send_tool_list_changed)

    async def _look(self) -> None:
        listing = self._source.current()
        if listing is not self._seen:
            self._seen = listing
            before, self._resources = self._resources, self._library.fingerprint()
            if before not in (None, self._resources):
                await self._bus.publish(ResourcesListChanged())
                await _send(self._audience.connections, Connection.send_resource_list_changed)
            # Last, since clients that wait for new tools leave on it, and old ones trip over what follows.
            before, self._tools = self._tools, listing.fingerprint()
            if before not in (None, self._tools):
                await self.tell_tools()
        for uri in await self._updated():
            await self._bus.publish(ResourceUpdated(uri))
            await _send(
                self._audience.subscribers(uri),
                lambda connection, uri=uri: connection.send_resource_updated(uri),
            )

    async def _updated(self) -> list[str]:
        """Return the watched addresses whose contents are not what they were at the last look."""
        watched = self._audience.watched
        now = {uri: await self._content(uri) for uri in sorted(watched)}
        changed = [uri for uri in now if uri in self._contents and self._contents[uri] != now[uri]]
        self._contents = now
        return changed

    async def _content(self, uri: str) -> str | None:
        """Return the digest of what stands at an address, None where nothing does."""
        try:
            found = await self._library.read(uri)
        except MCPError:  # not there, or not there any more, which is a change as well
            return None
        return digest(found.model_dump(mode="json", include={"contents"}))


async def _send(connections: Iterable[Connection], send: Callable[[Connection], Awaitable[None]]) -> None:
    for connection in list(connections):
        with anyio.move_on_after(_SEND_SECONDS):
            await send(connection)

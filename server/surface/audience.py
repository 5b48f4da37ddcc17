"""Who is connected: handshake-era sessions with what they subscribed to, and open listen streams.

The newer era has no sessions; there each listen stream names the resources it wants to hear of.
What is told to them is `changes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, get_args

import mcp.types as types
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.connection import Connection

__all__ = ["Audience"]

_LEVELS = get_args(types.LoggingLevel)
_MOST_SUBSCRIPTIONS = 1_000
_LONGEST_ADDRESS = 2_048

_Context = ServerRequestContext[Any, Any]


@dataclass
class _Session:
    connection: Connection
    is_ready: bool = False
    subscribed: set[str] = field(default_factory=set[str])
    log_level: types.LoggingLevel | None = None


class Audience:
    """The clients of one server, as far as it has to speak first."""

    def __init__(self) -> None:
        self._sessions: dict[int, _Session] = {}
        self._listened: Counter[str] = Counter()

    @property
    def connections(self) -> list[Connection]:
        """The initialized handshake-era connections."""
        return [session.connection for session in self._sessions.values() if session.is_ready]

    @property
    def watched(self) -> frozenset[str]:
        """Addresses of which some client wants to hear."""
        of_sessions = {uri for session in self._sessions.values() for uri in session.subscribed}
        return frozenset(of_sessions) | frozenset(+self._listened)

    def subscribers(self, uri: str) -> list[Connection]:
        """Return the handshake-era connections that want to hear of a resource."""
        return [session.connection for session in self._sessions.values() if uri in session.subscribed]

    async def add(self, ctx: _Context, params: types.NotificationParams) -> None:
        """Remember a handshake-era connection until it closes; it has just been initialized."""
        del params
        self._session(ctx).is_ready = True

    async def subscribe(self, ctx: _Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Take up that a session wants to hear of a resource.

        Raises:
            MCPError: it asks for more than any client needs.
        """
        subscribed = self._session(ctx).subscribed
        if len(params.uri) > _LONGEST_ADDRESS or len(subscribed) >= _MOST_SUBSCRIPTIONS:
            raise MCPError(types.INVALID_PARAMS, f"At most {_MOST_SUBSCRIPTIONS} subscriptions for a client")
        subscribed.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: _Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Take up that a session does not want to hear of a resource any more."""
        self._session(ctx).subscribed.discard(params.uri)
        return types.EmptyResult()

    async def set_level(self, ctx: _Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """Take up which log messages a session wants."""
        self._session(ctx).log_level = params.level
        return types.EmptyResult()

    def log_level(self, ctx: _Context) -> types.LoggingLevel | None:
        """Return the least level of log messages that the client of a request wants, None: none."""
        said = dict(ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
        if (level := next((known for known in _LEVELS if known == said), None)) is not None:
            return level
        session = self._sessions.get(id(_connection(ctx)))
        return None if session is None else session.log_level

    @contextmanager
    def listening(self, uris: Iterable[str]) -> Generator[None]:
        """Count the addresses that a listen stream names, as long as it is open.

        Raises:
            MCPError: it asks for more than any client needs.
        """
        named = [uri for uri in dict.fromkeys(uris) if len(uri) <= _LONGEST_ADDRESS]
        if len(named) > _MOST_SUBSCRIPTIONS:
            raise MCPError(types.INVALID_PARAMS, f"At most {_MOST_SUBSCRIPTIONS} subscriptions for a stream")
        self._listened.update(named)
        try:
            yield
        finally:
            self._listened.subtract(named)

    def _session(self, ctx: _Context) -> _Session:
        connection = _connection(ctx)
        if (known := self._sessions.get(id(connection))) is not None:
            return known
        session = self._sessions[id(connection)] = _Session(connection)
        connection.exit_stack.callback(self._sessions.pop, id(connection), None)
        return session


def _connection(ctx: _Context) -> Connection:
    # The session object lives for one message; the SDK has no public way to what outlives it.
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage]

"""The set of upstreams: opened from a configuration, called by `ToolId`, closed without a trace.

Every connection lives in one task group. Leaving `open_connections`, by whatever way, waits until
no child process is left.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

import anyio
from anyio.abc import TaskGroup
from pydantic import JsonValue

from catalog.config import Config
from catalog.connection import Connection, EraMemory, Options, Progress, Status
from catalog.effects import EffectTable, Reset
from catalog.link import Era
from catalog.result import CallFailure, CallOutcome, FailureKind, RanUpstream
from catalog.tools import Snapshot, Tool, ToolId
from catalog.upstream import Upstream, configured_upstream

__all__ = ["ConnectionReport", "Connections", "open_connections", "open_upstreams"]

_PARALLEL_STARTS: Final = 10
_SLOT_SECONDS: Final = 5.0
"""How long a start keeps others waiting; a slow one goes on without its slot."""
_START_SECONDS: Final = 30.0

Changed = Callable[[str], Coroutine[object, object, None]]


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """How one upstream is doing."""

    name: str
    status: Status | Literal["disabled"]
    transport: str
    era: Era | None
    """None while unknown."""
    tools: tuple[Tool, ...]
    """As last listed."""
    seconds: float | None
    """Of its last successful start, None before one."""
    problems: tuple[str, ...]


@asynccontextmanager
async def open_connections(
    config: Config,
    *,
    timeout_seconds: float = 60.0,
    only: Iterable[str] | None = None,
    environment: Mapping[str, str] | None = None,
    spares: bool = True,
) -> AsyncGenerator[Connections]:
    """Yield the configured upstreams, none of them started yet; close them all on leaving.

    Args:
        config: the servers and the effect table.
        timeout_seconds: bound of a call where the server names none.
        only: names of the servers to offer; None for all.
        environment: fills placeholders; None for this process's own.
        spares: whether one fresh process per resettable server is started ahead after first use.
    """
    wanted = None if only is None else frozenset(only)
    filled = os.environ if environment is None else environment
    upstreams = [
        configured_upstream(spec, filled)
        for name, spec in config.servers.items()
        if wanted is None or name in wanted
    ]
    async with open_upstreams(
        upstreams, config.effects, timeout_seconds=timeout_seconds, spares=spares
    ) as connections:
        yield connections


@asynccontextmanager
async def open_upstreams(
    upstreams: Iterable[Upstream], effects: EffectTable, *, timeout_seconds: float = 60.0, spares: bool = True
) -> AsyncGenerator[Connections]:
    """Yield connections to these upstreams; close them all on leaving."""
    raised: Exception | None = None
    async with anyio.create_task_group() as group:
        connections = Connections(upstreams, effects, group, timeout_seconds=timeout_seconds, spares=spares)
        try:
            yield connections
        except Exception as error:  # raised again outside of the group, which would wrap it
            raised = error
        finally:
            connections.close()
    if raised is not None:
        raise raised


class Connections:
    """Open upstreams. Made by `open_connections`.

    Attributes:
        effects: effect classes and reset modes, as configured.
    """

    def __init__(
        self,
        upstreams: Iterable[Upstream],
        effects: EffectTable,
        group: TaskGroup,
        *,
        timeout_seconds: float,
        spares: bool,
    ) -> None:
        self.effects = effects
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._group = group
        self._timeout_seconds = timeout_seconds
        self._eras: EraMemory = {}
        self._callbacks: list[Changed] = []
        self._shared = {
            name: self._connect(upstream, Reset.NONE)
            for name, upstream in self._upstreams.items()
            if not upstream.disabled
        }
        self._spares = _Spares(enabled=spares)
        self._isolated: set[Connection] = set()
        self._beginning: set[str] = set()

    async def snapshot(self, servers: Iterable[str] | None = None) -> Snapshot:
        """Connect to upstreams, each within its own time, and return all tools there are.

        Unreachable upstreams contribute what they last listed; `reports` says what is wrong.

        Args:
            servers: names of those to connect to; None for all.
        """
        wanted = None if servers is None else frozenset(servers)
        slots = anyio.Semaphore(_PARALLEL_STARTS)
        async with anyio.create_task_group() as group:
            for name, connection in self._shared.items():
                if wanted is None or name in wanted:
                    group.start_soon(_start_within, connection, slots)
        return self.known

    def begin(self, servers: Iterable[str]) -> None:
        """Connect to upstreams in the background, one after the other, so that calls are not slowed down."""
        wanted = [name for name in servers if name in self._shared and name not in self._beginning]
        self._beginning.update(wanted)
        self._group.start_soon(self._connect_each, wanted)

    async def _connect_each(self, servers: Iterable[str]) -> None:
        for name in servers:
            with anyio.move_on_after(_SLOT_SECONDS):
                await self._shared[name].ready()
            self._beginning.discard(name)

    @property
    def known(self) -> Snapshot:
        """The tools listed so far, without connecting to anything."""
        return Snapshot(
            MappingProxyType(
                {tool.id: tool for _, connection in sorted(self._shared.items()) for tool in connection.tools}
            )
        )

    def connection(self, server: str) -> Connection | None:
        """Return the shared connection of a server, None when it is not offered."""
        return self._shared.get(server)

    async def call(
        self,
        tool: ToolId,
        arguments: dict[str, JsonValue],
        *,
        timeout_seconds: float | None = None,
        progress: Progress | None = None,
    ) -> CallOutcome:
        """Call a tool on its shared connection, which is started if necessary.

        Args:
            tool: which tool of which server.
            arguments: sent as they are.
            timeout_seconds: None for the server's or the connections' default.
            progress: awaited for each progress report.
        """
        upstream, connection = self._upstreams.get(tool.server), self._shared.get(tool.server)
        if upstream is None:
            message = f"no server named {tool.server!r} is configured"
            return CallFailure(FailureKind.UNKNOWN_TOOL, message, 0.0, ran=RanUpstream.NO)
        if connection is None:
            message = f"server {tool.server!r} is disabled"
            return CallFailure(FailureKind.SERVER_UNAVAILABLE, message, 0.0, ran=RanUpstream.NO)
        return await connection.call(
            tool.tool,
            arguments,
            timeout_seconds=timeout_seconds or upstream.timeout_seconds or self._timeout_seconds,
            progress=progress,
        )

    @asynccontextmanager
    async def isolated(self, server: str, reset: Reset | None = None) -> AsyncGenerator[Connection]:
        """Yield a connection to a fresh process of a server, which ends afterwards.

        It is not reconnected when the process ends, since its state would be lost unseen.

        Args:
            server: its configured name.
            reset: how its state is restored; None: as configured.

        Raises:
            ValueError: the server is unknown or has no reset mode.
        """
        upstream, reset = self._upstreams.get(server), reset or self.effects.reset_mode(server)
        if upstream is None:
            raise ValueError(f"no server named {server!r} is configured")
        if reset is Reset.NONE:
            raise ValueError(f"server {server!r} is not resettable")
        connection = self._spares.take(server, reset) or self._fresh(upstream, reset)
        connection.start()
        try:
            if self._spares.wants(server, reset) and await connection.ready():
                self._spares.put(server, reset, self._fresh(upstream, reset))
            yield connection
        finally:
            self._isolated.discard(connection)
            connection.close()

    @property
    def isolated_connections(self) -> frozenset[Connection]:
        """The connections to throw-away processes, spares included."""
        return frozenset(self._isolated)

    def remember_era(self, server: str, era: Era) -> None:
        """Take a server's era as known, so that connecting does not probe for it."""
        self._eras[server] = era

    def reports(self) -> list[ConnectionReport]:
        """Return how every configured upstream is doing, ordered by name."""
        return [self._report(upstream) for _, upstream in sorted(self._upstreams.items())]

    def on_change(self, callback: Changed) -> None:
        """Await the callback with a server's name whenever its tools changed."""
        self._callbacks.append(callback)

    def close(self) -> None:
        """End every connection; the task group waits until their processes are gone."""
        for connection in (*self._shared.values(), *self._isolated):
            connection.close()

    def _connect(self, upstream: Upstream, reset: Reset) -> Connection:
        isolated = reset is not Reset.NONE
        return Connection(
            upstream.name,
            lambda words: upstream.open(reset, words),
            self._group,
            self._eras,
            Options(
                start_seconds=upstream.timeout_seconds or _START_SECONDS,
                reconnects=not isolated,
                era=upstream.era,
            ),
            changed=None if isolated else self._announce,
        )

    def _fresh(self, upstream: Upstream, reset: Reset) -> Connection:
        connection = self._connect(upstream, reset)
        self._isolated.add(connection)
        return connection

    def _announce(self, server: str) -> None:
        for callback in self._callbacks:
            self._group.start_soon(callback, server)

    def _report(self, upstream: Upstream) -> ConnectionReport:
        connection = self._shared.get(upstream.name)
        if connection is None:
            return ConnectionReport(upstream.name, "disabled", upstream.kind, None, (), None, ())
        return ConnectionReport(
            upstream.name,
            connection.status,
            upstream.kind,
            connection.era,
            connection.tools,
            connection.seconds_to_start,
            tuple(connection.problems),
        )


@dataclass
class _Spares:
    """At most one process per server and reset mode, started ahead and never called."""

    enabled: bool
    _waiting: dict[tuple[str, Reset], Connection] = field(default_factory=dict[tuple[str, Reset], Connection])

    def take(self, server: str, reset: Reset) -> Connection | None:
        spare = self._waiting.pop((server, reset), None)
        return spare if spare is not None and spare.status in ("starting", "ready") else None

    def wants(self, server: str, reset: Reset) -> bool:
        return self.enabled and (server, reset) not in self._waiting

    def put(self, server: str, reset: Reset, connection: Connection) -> None:
        connection.start()
        self._waiting[server, reset] = connection


async def _start_within(connection: Connection, slots: anyio.Semaphore) -> None:
    async with slots:
        with anyio.move_on_after(_SLOT_SECONDS):
            await connection.ready()
            return
    await connection.ready()

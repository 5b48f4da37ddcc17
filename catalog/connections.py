"""The set of upstreams: opened from a configuration, called by `ToolId`, closed without a trace.

Every connection lives in one task group. Leaving `open_connections`, by whatever way, waits until
no child process is left; opening them ends what a killed predecessor left.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Final

import anyio
from anyio.abc import TaskGroup
from pydantic import JsonValue

from catalog.circuit import Dice
from catalog.config import Config, ServerSpec
from catalog.connection import Connection, EraMemory, Options, Progress
from catalog.connection_report import ConnectionReport, report_of
from catalog.effects import EffectTable, Reset
from catalog.era import Era
from catalog.forwarding import Attendant
from catalog.process_tree import end_orphans
from catalog.result import CallFailure, CallOutcome, FailureKind, RanUpstream
from catalog.spares import Spares
from catalog.tools import Snapshot, ToolId
from catalog.upstream import Upstream, configured_upstream

__all__ = ["Connections", "open_connections", "open_upstreams"]

_PARALLEL_STARTS: Final = 10
_SLOT_SECONDS: Final = 5.0
"""How long a start keeps others waiting; a slow one goes on without its slot."""
_START_SECONDS: Final = 30.0
_PARALLEL_CALLS: Final = 16

Changed = Callable[[str], Coroutine[object, object, None]]


@asynccontextmanager
async def open_connections(
    config: Config,
    *,
    timeout_seconds: float = 60.0,
    only: Iterable[str] | None = None,
    environment: Mapping[str, str] | None = None,
    spares: bool = True,
    eras: Mapping[str, Era] | None = None,
    dice: Dice | None = None,
) -> AsyncGenerator[Connections]:
    """Yield the configured upstreams, none of them started yet; close them all on leaving.

    Processes that an earlier run left behind when it was killed are ended meanwhile.

    Args:
        config: the servers and the effect table.
        timeout_seconds: bound of a call where the server names none.
        only: names of the servers to offer; None for all.
        environment: fills placeholders; None for this process's own.
        spares: whether one fresh process per resettable server is started ahead after first use.
        eras: what servers are known to speak, by name.
        dice: varies the time to the next attempt; None for dice of their own.
    """
    wanted = None if only is None else frozenset(only)
    filled = os.environ if environment is None else environment
    upstreams = [
        configured_upstream(spec, filled, config.idle_seconds, config.forward.get(name, frozenset()))
        for name, spec in config.servers.items()
        if wanted is None or name in wanted
    ]
    async with open_upstreams(
        upstreams, config.effects, timeout_seconds=timeout_seconds, spares=spares, dice=dice
    ) as connections:
        for server, era in (eras or {}).items():
            connections.remember_era(server, era)
        connections.end_orphans()
        yield connections


@asynccontextmanager
async def open_upstreams(
    upstreams: Iterable[Upstream],
    effects: EffectTable,
    *,
    timeout_seconds: float = 60.0,
    spares: bool = True,
    dice: Dice | None = None,
) -> AsyncGenerator[Connections]:
    """Yield connections to these upstreams; close them all on leaving."""
    raised: Exception | None = None
    async with anyio.create_task_group() as group:
        connections = Connections(
            upstreams,
            effects,
            group,
            timeout_seconds=timeout_seconds,
            spares=spares,
            dice=dice or random.Random().random,
        )
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
        dice: Dice,
    ) -> None:
        self.effects = effects
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._group = group
        self._timeout_seconds = timeout_seconds
        self._dice = dice
        self._eras: EraMemory = {}
        self._begun: dict[str, anyio.Event] = {}
        self._start_slots = anyio.Semaphore(_PARALLEL_STARTS)
        self._callbacks: list[Changed] = []
        self._shared = {
            name: self._connect(upstream, Reset.NONE)
            for name, upstream in self._upstreams.items()
            if not upstream.disabled
        }
        self._spares = Spares(enabled=spares)
        self._isolated: set[Connection] = set()

    async def snapshot(
        self,
        servers: Iterable[str] | None = None,
        *,
        patience: Callable[[str], float] = lambda server: math.inf,  # noqa: ARG005  (for any server)
    ) -> Snapshot:
        """Connect to upstreams, each within its own time, and return all tools there are.

        Unreachable upstreams contribute what they last listed; `reports` says what is wrong.

        Args:
            servers: names of those to connect to; None for all.
            patience: seconds to wait for a server; one that needs longer goes on connecting.
        """
        async with anyio.create_task_group() as group:
            for name, settled in self.begin(servers).items():
                group.start_soon(_wait_for, settled, patience(name))
        return self.known

    async def relist(self, server: str) -> None:
        """Have the tools of a connected server listed again; wait until they are.

        Raises:
            ValueError: no such server is offered.
        """
        connection = self._shared.get(server)
        if connection is None:
            raise ValueError(f"no server named {server!r} is offered")
        await connection.relist()

    def begin(self, servers: Iterable[str] | None = None) -> Mapping[str, anyio.Event]:
        """Have upstreams connected, so many at once, and return what is set when each was or could not be.

        Args:
            servers: names of those to connect to; None for all.
        """
        wanted = self._shared if servers is None else frozenset(servers)
        for name in self._shared:
            if name in wanted and name not in self._begun:
                self._begun[name] = anyio.Event()
                self._group.start_soon(self._begin, name, self._begun[name])
        return {name: event for name, event in self._begun.items() if name in wanted}

    async def _begin(self, name: str, settled: anyio.Event) -> None:
        connection = self._shared[name]
        async with self._start_slots:
            with anyio.move_on_after(_SLOT_SECONDS):
                await connection.ready()
        await connection.ready()
        self._begun.pop(name, None)
        settled.set()

    def end_orphans(self) -> None:
        """Have ended what processes of ours that were killed have left running."""
        self._group.start_soon(end_orphans)

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

    def offer(
        self, spec: ServerSpec, environment: Mapping[str, str], idle_seconds: float | None = None
    ) -> None:
        """Offer one more server, which is started when it is needed.

        Raises:
            ValueError: one of its name is offered.
        """
        if spec.name in self._upstreams:
            raise ValueError(f"a server named {spec.name!r} is offered already")
        upstream = configured_upstream(spec, environment, idle_seconds)
        self._upstreams[spec.name] = upstream
        if not upstream.disabled:
            self._shared[spec.name] = self._connect(upstream, Reset.NONE)

    def withdraw(self, server: str) -> None:
        """End a server and offer it no more; calls under way fail."""
        self._upstreams.pop(server, None)
        self._begun.pop(server, None)
        if (connection := self._shared.pop(server, None)) is not None:
            connection.close()

    async def call(
        self,
        tool: ToolId,
        arguments: dict[str, JsonValue],
        *,
        timeout_seconds: float | None = None,
        progress: Progress | None = None,
        attendant: Attendant | None = None,
    ) -> CallOutcome:
        """Call a tool on its shared connection, which is started if necessary.

        Args:
            tool: which tool of which server.
            arguments: sent as they are.
            timeout_seconds: None for the server's or the connections' default.
            progress: awaited for each progress report.
            attendant: who is behind the call, for what its server may ask; None: nobody.
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
            attendant=attendant,
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

    @property
    def eras(self) -> Mapping[str, Era]:
        """What each server was found, or was said, to speak."""
        return MappingProxyType(self._eras)

    def remember_era(self, server: str, era: Era) -> None:
        """Take a server's era as known, so that connecting does not probe for it."""
        self._eras[server] = era

    def reports(self) -> list[ConnectionReport]:
        """Return how every configured upstream is doing, ordered by name."""
        return [report_of(each, self._shared.get(name)) for name, each in sorted(self._upstreams.items())]

    def on_change(self, callback: Changed) -> None:
        """Await the callback with a server's name whenever its tools are not what they were, first none."""
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
                parallel_calls=upstream.parallel_calls or _PARALLEL_CALLS,
                idle_seconds=None if isolated else upstream.idle_seconds,
                forwards=upstream.forwards,
                leaves_state=self._leaves_state(upstream),
            ),
            self._dice,
            changed=None if isolated else self._announce,
        )

    def _leaves_state(self, upstream: Upstream) -> Callable[[str], bool]:
        if upstream.may_lose_state:
            return lambda tool: False  # noqa: ARG005  (the operator says so of the whole server)
        return lambda tool: not self.effects.effect(ToolId(upstream.name, tool)).is_free

    def _fresh(self, upstream: Upstream, reset: Reset) -> Connection:
        connection = self._connect(upstream, reset)
        self._isolated.add(connection)
        return connection

    def _announce(self, server: str) -> None:
        for callback in self._callbacks:
            self._group.start_soon(callback, server)


async def _wait_for(settled: anyio.Event, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await settled.wait()

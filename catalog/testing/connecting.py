"""Scripted servers as upstreams without a process: the same connections over in-memory streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams

from catalog.connections import Connections, open_upstreams
from catalog.effects import EffectTable, Reset
from catalog.era import Era
from catalog.testing.scripted import OpenServer, ScriptedServer
from catalog.transport import LastWords
from catalog.upstream import Upstream
from catalog.wire import Streams, Transport

__all__ = ["in_process", "open_test_connections", "served_in_process"]


def open_test_connections(
    servers: Mapping[str, ScriptedServer],
    *,
    effects: EffectTable | None = None,
    era: Era | None = None,
    timeout_seconds: float = 60.0,
    spares: bool = False,
) -> AbstractAsyncContextManager[Connections]:
    """Return connections to scripted servers in this process.

    Args:
        servers: by the name they are configured under.
        effects: classes and reset modes; a resettable server is opened afresh when isolated.
        era: protocol era to speak, None for what is negotiated (the modern one).
        timeout_seconds: default bound of a call.
        spares: whether isolated servers are started ahead.
    """
    upstreams = [in_process(name, server, era=era) for name, server in servers.items()]
    return open_upstreams(upstreams, effects or EffectTable(), timeout_seconds=timeout_seconds, spares=spares)


def in_process(name: str, server: ScriptedServer, *, era: Era | None = None) -> Upstream:
    """Return a scripted server as an upstream, beside configured ones."""

    def opened(reset: Reset, words: LastWords) -> Transport:  # noqa: ARG001  (nothing to reset, no last words)
        return _serve(server.open())

    return Upstream(name=name, open=opened, kind="in-process", era=era)


@asynccontextmanager
async def served_in_process(server: Server[Any]) -> AsyncGenerator[Streams]:
    """Yield streams to any server of the SDK, which runs until the client leaves."""
    async with (
        create_client_server_memory_streams() as (client, (read, write)),
        anyio.create_task_group() as group,
    ):
        group.start_soon(server.run, read, write, server.create_initialization_options())
        try:
            yield client
        finally:
            group.cancel_scope.cancel()


@asynccontextmanager
async def _serve(instance: OpenServer) -> AsyncGenerator[Streams]:
    """Yield streams to a running instance until it vanishes or the client leaves."""
    async with create_client_server_memory_streams() as (client, server), anyio.create_task_group() as group:

        async def run() -> None:
            read, write = server
            await instance.server.run(read, write, instance.server.create_initialization_options())

        async def vanish() -> None:
            await instance.vanished.wait()
            await server[1].aclose()
            await client[0].aclose()

        group.start_soon(run)
        group.start_soon(vanish)
        try:
            yield client
        finally:
            group.cancel_scope.cancel()

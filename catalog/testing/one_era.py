"""Scripted servers that speak one protocol era only, as real ones do; the library speaks both."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.message import SessionMessage
from mcp_types.version import LATEST_MODERN_VERSION

from catalog.wire import Incoming, Write

__all__ = ["open_handshake_only", "refuse_handshake"]

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


def refuse_handshake(server: Server[Any]) -> None:
    """Have a server refuse the handshake, as one does that speaks the newer era only."""

    async def refuse(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "initialize":
            supported = {"supported": [LATEST_MODERN_VERSION], "requested": "2025-11-25"}
            raise MCPError(types.UNSUPPORTED_PROTOCOL_VERSION, "no handshake is spoken here", supported)
        return await call_next(ctx)

    server.middleware.append(refuse)


@asynccontextmanager
async def open_handshake_only(
    incoming: AsyncIterable[Incoming], outgoing: Write
) -> AsyncGenerator[MemoryObjectReceiveStream[Incoming]]:
    """Yield what arrives without requests of the newer era, which are answered as unknown methods."""
    forward, read = anyio.create_memory_object_stream[Incoming]()

    async def sift() -> None:
        async with forward:
            async for item in incoming:
                if (unknown := _refused(item)) is None:
                    await forward.send(item)
                else:
                    await outgoing.send(unknown)

    async with anyio.create_task_group() as group, read:
        group.start_soon(sift)
        yield read
        group.cancel_scope.cancel()


def _refused(item: Incoming) -> SessionMessage | None:
    if not isinstance(item, SessionMessage) or not isinstance(request := item.message, types.JSONRPCRequest):
        return None
    if _VERSION_KEY not in ((request.params or {}).get("_meta") or {}):
        return None
    error = types.ErrorData(code=types.METHOD_NOT_FOUND, message="Method not found")
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request.id, error=error))

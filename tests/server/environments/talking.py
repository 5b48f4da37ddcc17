"""How a test talks to the environment service over a web socket."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

Serve = Callable[..., AbstractAsyncContextManager[str]]


class Session:
    """One web socket: a message there, an answer back."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def ask(self, kind: str, **data: Any) -> dict[str, Any]:
        return await self.raw(json.dumps({"type": kind, "data": data}))

    async def raw(self, text: str) -> dict[str, Any]:
        await self.socket.send(text)
        return json.loads(await self.socket.recv())

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        said = await self.ask("step", type="call_tool", tool_name=tool, arguments=arguments)
        assert said["type"] == "observation", said
        return said["data"]

    async def submit(self, answer: Any) -> dict[str, Any]:
        return (await self.ask("step", type="submit", answer=answer))["data"]


@asynccontextmanager
async def open_session(url: str) -> AsyncGenerator[Session]:
    async with connect(url.replace("http://", "ws://") + "/ws", max_size=2**24) as socket:
        yield Session(socket)

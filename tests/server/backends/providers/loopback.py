"""A provider's HTTP API on loopback, scripted reply by reply, in the event loop of the test."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp

RIGHT_KEY = "sk-right-0123456789abcdef"


@dataclass(frozen=True)
class Say:
    """An answer, streamed piece by piece; `texts` are alternatives."""

    texts: tuple[str, ...]
    stop: str = "end"
    """end, length or refusal."""
    thought_tokens: int = 0

    @classmethod
    def one(cls, text: str, stop: str = "end", thought_tokens: int = 0) -> Say:
        return cls((text,), stop, thought_tokens)


@dataclass(frozen=True)
class Fail:
    """An error instead of an answer."""

    status: int
    message: str = "no"
    code: str = ""
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class FailMidway:
    """An answer that begins and then reports an error in its stream."""

    message: str
    code: str


@dataclass(frozen=True)
class BreakOff:
    """An answer whose stream ends without its end; `abruptly` closes the connection under it."""

    abruptly: bool = False


@dataclass(frozen=True)
class Hang:
    """An answer that begins and never ends."""


Reply = Say | Fail | FailMidway | BreakOff | Hang


@dataclass
class Asked:
    """One request that arrived."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]


class Provider:
    """What the API servers share: the script, what arrived, and who went away.

    Args:
        script: replies to generating requests in order; the last is repeated.
    """

    def __init__(self, *script: Reply) -> None:
        self.script = [*script]
        self.asked: list[Asked] = []
        self.hanging = anyio.Event()
        self.disconnected = anyio.Event()
        self.in_flight = 0
        self.most_in_flight = 0
        self.meet: int = 0
        """Answers begin only when so many requests are in flight, once."""
        self._met = anyio.Event()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [asked.body for asked in self.asked]

    def next_reply(self) -> Reply:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    async def note(self, request: Request) -> dict[str, Any]:
        raw = await request.body()
        body = json.loads(raw) if raw else {}
        self.asked.append(Asked(request.url.path, body, dict(request.headers)))
        return body

    def stream(self, events: AsyncIterator[bytes]) -> Response:
        async def watched() -> AsyncIterator[bytes]:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            if self.in_flight >= self.meet:
                self._met.set()
            try:
                await self._met.wait()
                async for event in events:
                    yield event
                    await anyio.lowlevel.checkpoint()
            except anyio.get_cancelled_exc_class():
                self.disconnected.set()
                raise
            finally:
                self.in_flight -= 1

        return StreamingResponse(watched(), media_type="text/event-stream")

    async def end_wrongly(self, reply: BreakOff | Hang) -> None:
        """Do what a reply does after its beginning: nothing, vanish, or wait for ever."""
        if isinstance(reply, Hang):
            self.hanging.set()
            await anyio.sleep_forever()
        if reply.abruptly:
            raise ConnectionResetError("the server vanished")

    @property
    def app(self) -> ASGIApp:
        raise NotImplementedError


def error_body(fail: Fail, shape: Callable[[Fail], dict[str, Any]]) -> Response:
    return JSONResponse(shape(fail), fail.status, headers=dict(fail.headers))


def sse(data: object, event: str | None = None) -> bytes:
    name = f"event: {event}\n" if event else ""
    text = data if isinstance(data, str) else json.dumps(data)
    return f"{name}data: {text}\n\n".encode()


def pieces(text: str) -> list[str]:
    """Return a text in pieces of seven characters, at least one."""
    return [text[n : n + 7] for n in range(0, len(text), 7)] or [""]


def tokens(text: str) -> int:
    return max(1, len(text) // 4)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncGenerator[str]:
    """Serve an application on a free port and yield its address."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        timeout_keep_alive=1,
    )
    server = _Server(config)
    raised: Exception | None = None
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            with anyio.CancelScope(shield=True):
                await server.serve(sockets=[bound])

        tasks.start_soon(run)
        await server.ready.wait()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        except Exception as error:  # raised again outside of the group, which would wrap it
            raised = error
        finally:
            server.should_exit = True
            server.force_exit = True
    if raised is not None:
        raise raised

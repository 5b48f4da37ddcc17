"""The loopback address that a browser is sent back to after a login, for one answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream
from mcp.shared.auth import AuthorizationCodeResult

__all__ = ["Denied", "Loopback", "open_loopback"]

_PATH: Final = "/callback"
_MAX_HEAD_BYTES: Final = 32_768
_READ_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Denied:
    """The authorization server's no, in its words."""

    error: str
    description: str


@dataclass
class Loopback:
    """Waits for the one answer. Made by `open_loopback`."""

    redirect_uri: str
    _answered: anyio.Event = field(default_factory=anyio.Event)
    _answer: AuthorizationCodeResult | Denied | None = None

    async def answer(self) -> AuthorizationCodeResult | Denied:
        """Wait for the browser and return what it was sent with."""
        await self._answered.wait()
        assert self._answer is not None
        return self._answer

    async def serve(self, stream: SocketStream) -> None:
        """Answer one request of the browser; requests for anything else change nothing."""
        async with stream:
            with anyio.move_on_after(_READ_SECONDS):
                try:
                    head = await _read_head(stream)
                    await stream.send(self._respond(head))
                except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

    def _respond(self, head: str) -> bytes:
        method, _, rest = head.partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        if method != "GET" or target.path != _PATH:
            return _page("404 Not Found", "Nothing is here.")
        given = {key: values[0] for key, values in parse_qs(target.query).items()}
        if "error" in given:
            self._take(Denied(given["error"], given.get("error_description", "")))
            return _page("200 OK", "The login was refused. You can close this window.")
        if "code" not in given:
            return _page("400 Bad Request", "This answer holds no code.")
        self._take(
            AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))
        )
        return _page("200 OK", "Thank you. You can close this window and go back to the terminal.")

    def _take(self, answer: AuthorizationCodeResult | Denied) -> None:
        if self._answer is None:
            self._answer = answer
            self._answered.set()


@asynccontextmanager
async def open_loopback(port: int | None) -> AsyncGenerator[Loopback]:
    """Yield a loopback address that listens; it stops on leaving.

    Args:
        port: where to listen, None: wherever is free.

    Raises:
        OSError: the port is taken.
    """
    raised: Exception | None = None
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port or 0) as listener:
        found = listener.extra(SocketAttribute.local_port)
        loopback = Loopback(f"http://127.0.0.1:{found}{_PATH}")
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, loopback.serve)
            try:
                yield loopback
            except Exception as error:  # raised again outside of the group, which would wrap it
                raised = error
            finally:
                group.cancel_scope.cancel()
    if raised is not None:
        raise raised


async def _read_head(stream: SocketStream) -> str:
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _MAX_HEAD_BYTES:
        head += await stream.receive()
    return head.decode("latin-1")


def _page(status: str, text: str) -> bytes:
    body = f"<!doctype html><title>skillbank</title><p>{text}</p>".encode()
    headers = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Referrer-Policy: no-referrer",
        "Connection: close",
    )
    return "\r\n".join(headers).encode() + b"\r\n\r\n" + body

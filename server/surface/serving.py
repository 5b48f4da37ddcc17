"""Serves a bank over stdio or streamable HTTP until cancelled or asked to stop.

Nothing but the protocol goes to stdout; uvicorn logs through the root logger. Opening and closing
the bank is the caller's.
"""

from __future__ import annotations

import ipaddress
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from server.surface.access import Access, http_app
from server.surface.express import open_express
from server.surface.port import BankPort
from server.surface.server import BankServer
from server.surface.stdio import open_stdio
from server.surface_options import SurfaceOptions

__all__ = ["AddressUnusable", "is_loopback", "serve_app", "serve_http", "serve_stdio"]

_GRACE_SECONDS = 1
"""Open listen streams would keep uvicorn from ending for ever."""


class AddressUnusable(Exception):  # noqa: N818
    """Nothing can be served at this address; the message says why."""


async def serve_stdio(bank: BankPort, options: SurfaceOptions | None = None) -> None:
    """Serve one client on stdin and stdout until it closes them."""
    server = BankServer(bank, options)
    async with (
        _until_terminated(),
        open_stdio() as (incoming, outgoing),
        open_express(server, incoming, outgoing) as others,
    ):
        await server.run(others, outgoing, server.create_initialization_options())


async def serve_http(
    bank: BankPort,
    host: str,
    port: int,
    ready: Callable[[str], None] | None = None,
    options: SurfaceOptions | None = None,
    access: Access = Access(),  # noqa: B008  (frozen)
) -> None:
    """Serve any number of clients at `http://host:port/mcp`.

    Args:
        port: 0 picks a free one.
        ready: called with the URL once clients can connect.
        options: what is listed beside the skills.
        access: who is let in; without a verifier everybody on this machine.

    Raises:
        AddressUnusable: it cannot be bound, or other machines could reach it without the tokens of
            an authorization server.
    """
    if not is_loopback(host) and access.issuer is None:
        raise AddressUnusable(
            f"{host} is reachable from other machines; serve on 127.0.0.1, ::1 or localhost, or take"
            " tokens of an authorization server (--issuer)"
        )

    def tell(url: str) -> None:
        if ready is not None:
            ready(f"{url}/mcp")

    await serve_app(lambda security: http_app(bank, access, security, options), (host, port), tell)


async def serve_app(
    make: Callable[[TransportSecuritySettings], ASGIApp],
    address: tuple[str, int],
    ready: Callable[[str], None],
    *,
    max_message_bytes: int = 2**20,
) -> None:
    """Serve an application until cancelled or asked to terminate.

    Args:
        make: given the names that this machine is known by, for the application to turn others away.
        address: host and port; port 0 picks a free one.
        ready: called with the URL once clients can connect.
        max_message_bytes: of one message over a web socket.

    Raises:
        AddressUnusable: it cannot be bound.
    """
    host, port = address
    with _bound(host, port) as bound:
        name = f"[{host}]" if ":" in host else host
        url = f"http://{name}:{bound.getsockname()[1]}"
        config = uvicorn.Config(
            make(_only_this_machine(name)),
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            ws="websockets-sansio",
            ws_max_size=max_message_bytes,
        )
        async with _until_terminated():
            await _run_until_cancelled(_Uvicorn(config, lambda: ready(url)), bound)


@asynccontextmanager
async def _until_terminated() -> AsyncGenerator[None]:
    """Cancel the body when this process is asked to terminate, so that its caller can clean up."""

    async def watch(body: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                body.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch, tasks.cancel_scope)
        yield
        tasks.cancel_scope.cancel()


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to whoever runs the event loop: uvicorn would end the process with them."""
        yield


async def _run_until_cancelled(server: uvicorn.Server, bound: socket.socket) -> None:
    """Run uvicorn; being cancelled asks it to stop and waits for that."""
    ended = anyio.Event()

    async def run() -> None:
        with anyio.CancelScope(shield=True):
            await server.serve(sockets=[bound])
        ended.set()

    async with anyio.create_task_group() as serving:
        serving.start_soon(run)
        try:
            await ended.wait()
        finally:
            server.should_exit = True


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
    except OSError as error:
        raise AddressUnusable(f"cannot serve at {host}: {error.strerror}") from error
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise AddressUnusable(f"cannot serve at {host} port {port}: {error.strerror}") from error
    return bound


def _only_this_machine(name: str) -> TransportSecuritySettings:
    names = sorted({name, "127.0.0.1", "localhost", "[::1]"})
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{known}:*" for known in names],
        allowed_origins=[f"http://{known}:*" for known in names],
    )

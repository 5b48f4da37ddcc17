"""HTTP with server-sent events, as old clients speak it: `/sse` to listen, `/messages/` to send.

Deprecated in the protocol and kept for clients that know nothing newer. Each connection runs the one
server object by itself; who is let in is decided as at `/mcp`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.auth.settings import AuthSettings
from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["SSE_PATH", "THIS_MACHINE", "guard_of", "sse_routes"]

SSE_PATH = "/sse"
_MESSAGES_PATH = "/messages/"
THIS_MACHINE = TransportSecuritySettings(
    enable_dns_rebinding_protection=True,
    allowed_hosts=["127.0.0.1:*", "localhost:*", "[::1]:*"],
    allowed_origins=["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"],
)
"""What is taken where nobody says otherwise."""

Guard = Callable[[ASGIApp], ASGIApp]


def guard_of(auth: AuthSettings | None, verifier: TokenVerifier | None) -> Guard:
    """Return what lets only those in who may use the server at its newer address."""
    if verifier is None:
        return lambda app: app
    scopes = (auth.required_scopes if auth is not None else None) or []
    resource = auth.resource_server_url if auth is not None else None
    metadata = None if resource is None else build_resource_metadata_url(resource)
    return lambda app: RequireAuthMiddleware(app, scopes, metadata)


def sse_routes(
    server: Server[Any], security: TransportSecuritySettings | None, guard: Guard
) -> list[Route | Mount]:
    """Return the routes of the old transport.

    Args:
        server: serves each connection.
        security: which Host and Origin are taken.
        guard: wraps what asks for a login where there is one.
    """
    transport = SseServerTransport(_MESSAGES_PATH, security)

    async def listen(scope: Scope, receive: Receive, send: Send) -> None:
        async with transport.connect_sse(scope, receive, send) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    return [
        Route(SSE_PATH, endpoint=_Endpoint(guard(listen)), methods=["GET"]),
        Mount(_MESSAGES_PATH, app=guard(transport.handle_post_message)),
    ]


class _Endpoint:
    """An ASGI application as the endpoint of a route; a plain function would be called with a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

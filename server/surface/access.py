"""Puts together what stands before the bank over HTTP: Host and Origin, tokens, scopes, principals."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from server.surface.auth import SCOPES, ScopeGate
from server.surface.port import BankPort
from server.surface.principals import OpenBankOf, Principal, Principals
from server.surface_options import SurfaceOptions

__all__ = ["Access", "http_app"]


@dataclass(frozen=True, slots=True)
class Access:
    """Who is let in, and to what."""

    verifier: TokenVerifier | None = None
    """Says who a token speaks for; None: no token is asked for."""
    issuer: str | None = None
    """Authorization server whose tokens are taken, None: none but this machine's token."""
    resource: str | None = None
    """Our address as clients and tokens know it; set with `issuer`."""
    open_bank: OpenBankOf | None = None
    """Opens the bank of a principal, None: all use the one that is served."""


def http_app(
    bank: BankPort,
    access: Access,
    security: TransportSecuritySettings,
    options: SurfaceOptions | None = None,
) -> ASGIApp:
    """Return the application that serves a bank at `/mcp`."""

    def the_one(who: Principal) -> AbstractAsyncContextManager[BankPort]:
        del who
        return nullcontext(bank)

    if access.resource is not None:
        security = _also(security, access.resource)
    principals = Principals(access.open_bank or the_one, security, options)
    endpoint: ASGIApp = principals
    routes: list[Route] = []
    middleware: list[Middleware] = []
    if access.verifier is not None:
        urls = _urls(access)
        audience = None if urls is None else urls.resource_server_url
        metadata = None if audience is None else build_resource_metadata_url(audience)
        backend = BearerAuthBackend(access.verifier, resource_server_url=audience)
        middleware = [
            Middleware(AuthenticationMiddleware, backend=backend),
            Middleware(AuthContextMiddleware),
        ]
        gate = ScopeGate(principals, None if metadata is None else str(metadata))
        endpoint = cast("ASGIApp", RequireAuthMiddleware(gate, [], metadata))
        if urls is not None and audience is not None:
            routes = create_protected_resource_routes(
                audience, [urls.issuer_url], list(SCOPES), resource_name="skillbank"
            )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        del app
        async with principals.running():
            yield

    app = Starlette(routes=[*routes, Mount("/", app=endpoint)], middleware=middleware, lifespan=lifespan)
    return _NamesGate(app, security)


def _urls(access: Access) -> AuthSettings | None:
    """Return our address and the issuer's, spelt as they were given: they are compared by letter."""
    if access.issuer is None or access.resource is None:
        return None
    return AuthSettings.model_validate(
        {
            "issuer_url": access.issuer,
            "resource_server_url": access.resource,
            "validate_token_resource": True,
        }
    )


def _also(security: TransportSecuritySettings, resource: str) -> TransportSecuritySettings:
    """Return the names that are let in with those of our public address."""
    parts = urlsplit(resource)
    return security.model_copy(
        update={
            "allowed_hosts": [*security.allowed_hosts, parts.netloc],
            "allowed_origins": [*security.allowed_origins, f"{parts.scheme}://{parts.netloc}"],
        }
    )


class _NamesGate:
    """Turns away requests to names that are not ours, before anything else looks at them."""

    def __init__(self, app: ASGIApp, security: TransportSecuritySettings) -> None:
        self._app = app
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refused = await self._security.validate_request(Request(scope))
            if refused is not None:
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)

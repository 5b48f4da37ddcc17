"""Gives each principal a server of its own over a bank of its own, so that none sees another's.

Nothing is shared between two: store, jobs, traces, skills, approvals, upstream connections and their
credentials, sessions and change notifications are all below the bank. Who somebody is was checked
before (`auth`, `jwt_tokens`).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
import anyio.abc
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from server.surface.auth import require_scope
from server.surface.port import BankPort
from server.surface.server import BankServer
from server.surface_options import SurfaceOptions

__all__ = ["LOCAL", "OpenBankOf", "Principal", "Principals"]

_LOG = logging.getLogger(__name__)
_MOST_OPEN: Final = 64
_OPEN_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a request comes: a subject of an issuer, else a client of it."""

    issuer: str
    subject: str


LOCAL: Final = Principal("", "local")
"""Whoever may use this machine's own bank."""
OpenBankOf = Callable[[Principal], AbstractAsyncContextManager[BankPort]]


@dataclass
class _Tenant:
    """One principal's server while it is open; `app` is None where it could not be opened."""

    app: ASGIApp | None = None
    requests: int = 0
    opened: anyio.Event = field(default_factory=anyio.Event)
    leave: anyio.Event = field(default_factory=anyio.Event)


class Principals:
    """An ASGI application that hands each request to the server of whoever sends it.

    Args:
        open_bank: opens the bank of a principal.
        security: Host and Origin names that are let in.
        options: what is listed beside the skills.
    """

    def __init__(
        self,
        open_bank: OpenBankOf,
        security: TransportSecuritySettings,
        options: SurfaceOptions | None = None,
    ) -> None:
        self._open_bank = open_bank
        self._security = security
        self._options = options
        self._tenants: OrderedDict[Principal, _Tenant] = OrderedDict()
        self._tasks: anyio.abc.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve until left; every bank is closed by then."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tenant = await self._tenant(_principal(scope))
        if tenant.app is None:
            lines = [(b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 503, "headers": lines})
            await send({"type": "http.response.body", "body": b"This bank cannot be opened now.\n"})
            return
        tenant.requests += 1
        try:
            await tenant.app(scope, receive, send)
        finally:
            tenant.requests -= 1

    async def _tenant(self, who: Principal) -> _Tenant:
        tenant = self._tenants.get(who)
        if tenant is None:
            if self._tasks is None:
                raise RuntimeError("principals are served only while running")
            tenant = self._tenants[who] = _Tenant()
            self._tasks.start_soon(self._serve, who, tenant)
            self._make_room(who)
        self._tenants.move_to_end(who)
        with anyio.move_on_after(_OPEN_SECONDS):
            await tenant.opened.wait()
        return tenant

    async def _serve(self, who: Principal, tenant: _Tenant) -> None:
        try:
            async with self._open_bank(who) as bank:
                server = BankServer(bank, self._options)
                server.middleware.insert(0, require_scope)
                app = server.streamable_http_app(transport_security=self._security)
                async with app.router.lifespan_context(app):
                    tenant.app = app
                    tenant.opened.set()
                    await tenant.leave.wait()
        except Exception:
            _LOG.exception("the bank of a principal could not be served")
        finally:
            tenant.app = None
            tenant.opened.set()
            if self._tenants.get(who) is tenant:
                del self._tenants[who]

    def _make_room(self, newest: Principal) -> None:
        """Close who was not heard of for longest; its jobs go on when it comes again."""
        idle = [who for who, tenant in self._tenants.items() if not tenant.requests and who != newest]
        for who in idle[: max(0, len(self._tenants) - _MOST_OPEN)]:
            self._tenants.pop(who).leave.set()


def _principal(scope: Scope) -> Principal:
    user = scope.get("user")
    if not isinstance(user, AuthenticatedUser):
        return LOCAL
    token = user.access_token
    issuer = str((token.claims or {}).get("iss") or "")
    if not issuer and token.client_id == LOCAL.subject:
        return LOCAL
    # Subject and client are names of different kinds: one that is called like the other is not it.
    return Principal(issuer, f"sub:{token.subject}" if token.subject else f"client:{token.client_id}")

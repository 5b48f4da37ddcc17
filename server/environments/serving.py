"""Serves environments on a loopback port of their own: both wires, Host and Origin checked, errors told.

`/NAME/…` and, for the first environment, `/…` are OpenEnv's wire; `/agentevolver/…` is AgentEvolver's.
No token is asked for, as clients of either wire send none: so only this machine is let in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from server.environments.agentevolver import agentevolver_routes
from server.environments.definitions import Definition
from server.environments.errors import EnvironmentFailure
from server.environments.instances import Instances, open_instances
from server.environments.limits import Limits
from server.environments.messages import error_body
from server.environments.openenv import openenv_routes
from server.environments.task_routes import task_routes
from server.surface.serving import AddressUnusable, is_loopback, serve_app

__all__ = ["environments_app", "serve_environments"]


async def serve_environments(
    definitions: Mapping[str, Definition],
    limits: Limits,
    address: tuple[str, int],
    ready: Callable[[str], None],
) -> None:
    """Serve until cancelled or asked to terminate; then every instance is ended.

    Args:
        definitions: by name; the first is also served without its name.
        limits: what is spent at most.
        address: host and port; port 0 picks a free one.
        ready: called with the URL once clients can connect.

    Raises:
        AddressUnusable: it cannot be bound, or other machines could reach it.
    """
    if not is_loopback(address[0]):
        raise AddressUnusable(
            f"{address[0]} is reachable from other machines, and environments ask for no token: serve on"
            " 127.0.0.1, ::1 or localhost"
        )
    async with open_instances(definitions, limits) as pool:
        await serve_app(
            lambda security: environments_app(pool, security),
            address,
            ready,
            max_message_bytes=limits.message_bytes,
        )


def environments_app(pool: Instances, security: TransportSecuritySettings) -> ASGIApp:
    """Return the application."""
    first, *_ = pool.definitions
    routes: list[BaseRoute] = [
        *openenv_routes(first, pool),
        *task_routes(pool),
        Mount("/agentevolver", routes=agentevolver_routes(pool)),
        *(Mount(f"/{name}", routes=openenv_routes(name, pool)) for name in pool.definitions),
    ]
    told = {EnvironmentFailure: _failure, HTTPException: _http_failure}
    return _NamesGate(Starlette(routes=routes, exception_handlers=told), security)  # pyright: ignore[reportArgumentType]


async def _failure(request: Request, error: EnvironmentFailure) -> Response:
    del request
    return JSONResponse({"detail": str(error), **error_body(error)}, status_code=error.status)


async def _http_failure(request: Request, error: HTTPException) -> Response:
    message = f"{request.method} {request.url.path}: {error.detail}; /openapi.json lists what there is"
    return JSONResponse({"detail": message, "message": message, "code": "NO_ROUTE"}, error.status_code)


class _NamesGate:
    """Turns away requests to names that are not ours, web sockets too: a page could open one."""

    def __init__(self, app: ASGIApp, security: TransportSecuritySettings) -> None:
        self._app = app
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            seen = Request({**scope, "type": "http", "method": scope.get("method", "GET")})
            refused = await self._security.validate_request(seen)
            if refused is not None and scope["type"] == "http":
                await refused(scope, receive, send)
                return
            if refused is not None:
                await send({"type": "websocket.close", "code": 1008, "reason": "wrong Host or Origin"})
                return
        await self._app(scope, receive, send)

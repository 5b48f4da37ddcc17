"""Who may do what over HTTP: the token of this machine, scopes, and what a request needs.

Scopes include each other: `admin` may `run`, `run` may `read`. Tokens of an authorization server are
checked by `jwt_tokens`; whose bank a request reaches is `principals`.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import CallNext, HandlerResult
from mcp.types import INVALID_REQUEST
from pydantic import JsonValue
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from server.surface.builtin_tools import BUILTIN_TOOLS
from server.surface.job_arguments import JOB_NAME
from server.surface.names import ADMIN_NAMES

__all__ = ["SCOPES", "MachineToken", "ScopeGate", "needed_scope", "require_scope", "token_file"]

Scope = Literal["read", "run", "admin"]
SCOPES: Final[tuple[Scope, ...]] = ("read", "run", "admin")
"""Each includes those before it."""
_RUNS: Final = frozenset({"tasks/update", "tasks/cancel"})


@dataclass(frozen=True, slots=True)
class MachineToken:
    """The one token of a server that only this machine reaches; whoever has it may do everything."""

    token: str

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return who comes with a token, None where it is not ours."""
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return None
        return AccessToken(token=token, client_id="local", scopes=list(SCOPES))


def token_file(path: Path) -> tuple[str, bool]:
    """Return the token kept in a file of its owner alone, and whether it was made now.

    Raises:
        PermissionError: others can read the file.
        OSError: it cannot be read or made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    made = secrets.token_urlsafe(32)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(made + "\n")
    except FileExistsError:
        if path.stat().st_mode & 0o077:
            raise PermissionError(f"{path} can be read by others: chmod 600 {path}") from None
        kept = path.read_text("utf-8").strip()
        if len(kept) < 32:
            raise PermissionError(f"{path} holds no token: remove it, and a new one is made") from None
        return kept, False
    return made, True


def needed_scope(method: str, name: str | None = None, arguments: JsonValue = None) -> Scope:
    """Return what a request needs: tools that only read are read with, the rest is run.

    Args:
        method: of the protocol.
        name: of the tool that is called.
        arguments: of the call; where they are not known, the least that the call may need is returned.
    """
    if method in _RUNS:
        return "run"
    if method != "tools/call":
        return "read"
    if name in ADMIN_NAMES:
        return "admin"
    if name == JOB_NAME:
        return _needed_for_job(arguments)
    tool = BUILTIN_TOOLS.get(name or "")
    hints = tool.annotations if tool is not None else None
    return "read" if hints is not None and hints.read_only_hint else "run"


def _needed_for_job(arguments: JsonValue) -> Scope:
    """Looking at jobs is reading; beginning one needs what its tool needs, and at least running."""
    match arguments:
        case {"action": "start", "tool": str(tool)} if tool in ADMIN_NAMES:
            return "admin"
        case {"action": "start" | "cancel"}:
            return "run"
        case _:
            return "read"


def _has(scopes: Iterable[str], needed: Scope) -> bool:
    return bool(set(SCOPES[SCOPES.index(needed) :]) & set(scopes))


async def require_scope(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Let a request through whose token has the scope it needs: the word that counts, in both eras."""
    user = ctx.request.scope.get("user") if ctx.request is not None else None
    if isinstance(user, AuthenticatedUser):
        params = ctx.params or {}
        name = params.get("name")
        needed = needed_scope(ctx.method, name if isinstance(name, str) else None, params.get("arguments"))
        if not _has(user.scopes, needed):
            raise MCPError(
                INVALID_REQUEST,
                f"This needs the scope {needed!r}, which your token has not",
                {"scope": needed},
            )
    return await call_next(ctx)


class ScopeGate:
    """Answers requests of 2026-07-28 that lack a scope as HTTP says: 403, with the scope to ask for.

    The headers it goes by must equal the body, which the library checks.
    """

    def __init__(self, app: ASGIApp, metadata_url: str | None) -> None:
        self._app = app
        self._metadata_url = metadata_url

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        user, headers = scope.get("user"), Headers(scope=scope)
        method = headers.get("mcp-method")
        if isinstance(user, AuthenticatedUser):
            needed = "read" if method is None else needed_scope(method, headers.get("mcp-name"))
            if not _has(user.scopes, needed):
                await self._refuse(needed, send)
                return
        await self._app(scope, receive, send)

    async def _refuse(self, needed: Scope, send: Send) -> None:
        told = f"This needs the scope {needed}"
        challenge = f'Bearer error="insufficient_scope", error_description="{told}", scope="{needed}"'
        if self._metadata_url is not None:
            challenge += f', resource_metadata="{self._metadata_url}"'
        body = json.dumps({"error": "insufficient_scope", "error_description": told}).encode()
        lines = [(b"content-type", b"application/json"), (b"www-authenticate", challenge.encode())]
        await send({"type": "http.response.start", "status": 403, "headers": lines})
        await send({"type": "http.response.body", "body": body})

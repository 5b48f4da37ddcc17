"""A tool server behind an authorization server of its own, over HTTP on loopback.

The SDK's authorization server with clients, codes and tokens in memory. A test plays the browser
with `visit`, and scripts what goes wrong with the attributes.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode

import anyio
import httpx2
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    TokenError,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from catalog.testing.scripted import ScriptedServer

__all__ = ["MORE_SCOPE", "GuardedServer", "open_guarded_server", "visit"]

_SCOPE = "tools"
MORE_SCOPE = "more"
"""A scope that is asked for only where a server names it."""


@dataclass(eq=False)
class GuardedServer(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """What the authorization server knows, and what it is told to do wrong.

    Attributes:
        tools: the tool server behind it.
        url: of the tool server.
        lifetime_seconds: how long access tokens live.
        denies: whether the person says no.
        echoes: the state that comes back instead of the one sent, None: the one sent.
        audience: what tokens are for instead of what was asked, None: what was asked.
        outage: the status that the token endpoint answers with, None: it works.
        calls_need: the scope that calls need beside the one that lets in, None: none.
        takes_documents: whether an address of a metadata document is taken as client id.
        log: what it was asked for, in order.
        asked_scopes: what each login asked for, in order.
    """

    tools: ScriptedServer
    url: str
    lifetime_seconds: int = 3_600
    denies: bool = False
    echoes: str | None = None
    audience: str | None = None
    outage: int | None = None
    calls_need: str | None = None
    takes_documents: bool = False
    log: list[str] = field(default_factory=list[str])
    asked_scopes: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    clients: dict[str, OAuthClientInformationFull] = field(
        default_factory=dict[str, OAuthClientInformationFull]
    )
    _codes: dict[str, AuthorizationCode] = field(default_factory=dict[str, AuthorizationCode])
    _access: dict[str, AccessToken] = field(default_factory=dict[str, AccessToken])
    _refresh: dict[str, RefreshToken] = field(default_factory=dict[str, RefreshToken])

    @property
    def tokens(self) -> frozenset[str]:
        """Every token that is good now."""
        return frozenset((*self._access, *self._refresh))

    def lacks_scope(self, token: str) -> bool:
        """Return whether a good token does not allow calls."""
        access = self._access.get(token)
        return self.calls_need is not None and access is not None and self.calls_need not in access.scopes

    def revoke_access(self) -> None:
        """Make every access token bad; refresh tokens stay good."""
        self._access.clear()

    def revoke_all(self) -> None:
        """Make every token bad."""
        self._access.clear()
        self._refresh.clear()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return a client that was registered."""
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Register a client."""
        self.log.append("register")
        every = f"{_SCOPE} {MORE_SCOPE}"  # a client may ask for more later
        self.clients[client_info.client_id] = client_info.model_copy(update={"scope": every})

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Return where the browser goes with the person's answer."""
        self.log.append("authorize")
        self.asked_scopes.append(frozenset(params.scopes or ()))
        state = self.echoes if self.echoes is not None else params.state or ""
        if self.denies:
            answer = {"error": "access_denied", "error_description": "not this time", "state": state}
            return f"{params.redirect_uri}?{urlencode(answer)}"
        code = secrets.token_urlsafe()
        self._codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [_SCOPE],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return f"{params.redirect_uri}?{urlencode({'code': code, 'state': state})}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """Return a code of a client."""
        found = self._codes.get(authorization_code)
        return found if found is not None and found.client_id == client.client_id else None

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """Return the tokens for a code, once."""
        del client
        self.log.append("exchange")
        self._codes.pop(authorization_code.code)
        return self._issue(
            authorization_code.client_id, authorization_code.scopes, authorization_code.resource
        )

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        """Return a refresh token of a client."""
        found = self._refresh.get(refresh_token)
        return found if found is not None and found.client_id == client.client_id else None

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Return new tokens for a refresh token, once."""
        self.log.append("refresh")
        if self._refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        return self._issue(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Return an access token that is good."""
        return self._access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Make the tokens of a client bad."""
        self.log.append("revoke")
        self._access = {t: a for t, a in self._access.items() if a.client_id != token.client_id}
        self._refresh = {t: r for t, r in self._refresh.items() if r.client_id != token.client_id}

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_urlsafe()}", f"refresh-{secrets.token_urlsafe()}"
        audience = self.audience or resource
        expires_at = int(time.time()) + self.lifetime_seconds
        self._access[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=expires_at, resource=audience
        )
        self._refresh[refresh] = RefreshToken(
            token=refresh, client_id=client_id, scopes=scopes, resource=audience
        )
        return OAuthToken(
            access_token=access,
            refresh_token=refresh,
            expires_in=self.lifetime_seconds,
            scope=" ".join(scopes),
        )


@asynccontextmanager
async def open_guarded_server(
    tools: ScriptedServer, *, lets_anybody_in: bool = False
) -> AsyncGenerator[GuardedServer]:
    """Yield a tool server that lets in only who logged in; it stops on leaving.

    Args:
        tools: the server behind.
        lets_anybody_in: whether nobody has to log in after all.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
    guarded = GuardedServer(tools, f"{origin}/mcp")
    app = tools.open().server.streamable_http_app() if lets_anybody_in else _app(guarded, origin)
    server = uvicorn.Server(
        uvicorn.Config(_Scripted(app, guarded), log_level="critical", timeout_graceful_shutdown=0)
    )
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listening])
        try:
            yield guarded
        finally:
            server.should_exit = True


async def visit(url: str) -> None:
    """Go to an address as a browser does, the way back to the one who asked included."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        await browser.get(url)


def _app(guarded: GuardedServer, origin: str) -> Starlette:
    return guarded.tools.open().server.streamable_http_app(
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(origin),
            resource_server_url=AnyHttpUrl(guarded.url),
            required_scopes=[_SCOPE],
            validate_token_resource=True,
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=[_SCOPE, MORE_SCOPE], default_scopes=[_SCOPE, MORE_SCOPE]
            ),
            revocation_options=RevocationOptions(enabled=True),
        ),
        auth_server_provider=guarded,
        token_verifier=ProviderTokenVerifier(guarded),
    )


@dataclass
class _Scripted:
    """The app, whose endpoints answer otherwise where the script says so."""

    app: Starlette
    guarded: GuardedServer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._refusal(scope) or self._answer(str(scope.get("path")))
        await (self.app if answer is None else answer)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        if scope["type"] != "http":
            return None
        headers = Headers(scope=scope)
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if headers.get("mcp-method") != "tools/call" or not self.guarded.lacks_scope(token):
            return None
        challenge = f'Bearer error="insufficient_scope", scope="{self.guarded.calls_need}"'
        return Response(status_code=403, headers={"WWW-Authenticate": challenge})

    def _answer(self, path: str) -> Response | None:
        if path == "/token" and self.guarded.outage is not None:
            return Response(status_code=self.guarded.outage)
        if path == "/.well-known/oauth-authorization-server" and self.guarded.takes_documents:
            origin = self.guarded.url.removesuffix("/mcp")
            return JSONResponse(
                {
                    "issuer": f"{origin}/",
                    "authorization_endpoint": f"{origin}/authorize",
                    "token_endpoint": f"{origin}/token",
                    "client_id_metadata_document_supported": True,
                }
            )
        return None

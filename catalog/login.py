"""Logs a person in to a server, and out again: OAuth with PKCE and a loopback redirect.

Discovery, registration and the exchange are the SDK's; here is the person's part: where they are
sent, the answer they come back with, and what is said when it comes to nothing.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from catalog.config import ServerSpec
from catalog.credentials import LoginAuth, client_metadata, open_auth
from catalog.errors import LoginFailed, NeedsLogin
from catalog.loopback import Denied, Loopback, open_loopback
from catalog.plain_text import plain_text
from catalog.secret_store import SecretStore
from catalog.tokens import KeptLogin, KeptTokens

__all__ = ["LoggedIn", "LoggedOut", "Visit", "log_in", "log_out"]

Visit = Callable[[str], Awaitable[None]]
"""Sends a person to an address, in a browser or by showing it."""

_TIMEOUT: Final = httpx2.Timeout(30.0)
_MAX_MESSAGE: Final = 500
_REFUSED: Final = (401, 403)
_BROKEN: Final = 500


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """How it stands with a server after `log_in`."""

    status: Literal["logged_in", "already", "open"]
    """`already`: the kept login still counts. `open`: the server lets anybody in."""
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoggedOut:
    """What `log_out` did."""

    was_logged_in: bool
    revoked: bool
    """Whether the authorization server took the tokens back, beside our forgetting them."""


async def log_in(spec: ServerSpec, visit: Visit, *, wait_seconds: float) -> LoggedIn:
    """Log a person in to an expanded server over HTTP, and keep the tokens.

    A login that a call found to lack scope is asked for anew, with what was granted and what lacked.

    Args:
        spec: the server; it has a place for secrets.
        visit: sends the person to the authorization server.
        wait_seconds: bound of the whole login.

    Raises:
        LoginFailed: it has no login, the person or its servers refused, or nobody came back.
        SecretsUnusable: the tokens cannot be kept.
    """
    url, secrets = _loginable(spec)
    tokens = KeptTokens(secrets, url, spec.oauth)
    try:
        with anyio.fail_after(wait_seconds):
            login = await tokens.load()
            if login.challenge is None and await _is_welcome(spec):
                login = await tokens.load()
                return _logged_in("open" if login.tokens is None else "already", login)
            await _ask(spec, url, tokens, visit)
    except TimeoutError as error:
        raise LoginFailed(spec.name, f"nobody came back within {wait_seconds:g} s") from error
    except OAuthFlowError as error:
        raise LoginFailed(spec.name, _flow_message(error)) from error
    except httpx2.HTTPError as error:
        raise LoginFailed(spec.name, f"{type(error).__name__}: {error}".rstrip(": ")) from error
    return _logged_in("logged_in", await tokens.load())


async def log_out(spec: ServerSpec) -> LoggedOut:
    """Forget the login to an expanded server, and have its tokens revoked where that can be asked.

    Raises:
        LoginFailed: the server has no login.
        SecretsUnusable: the tokens cannot be forgotten.
    """
    url, secrets = _loginable(spec)
    tokens = KeptTokens(secrets, url, spec.oauth)
    login, client = await tokens.load(), await tokens.get_client_info()
    revoked = False
    if login.tokens is not None and client is not None:
        revoked = await _revoke(login, client)
    forgotten = await tokens.forget()
    return LoggedOut(forgotten and login.tokens is not None, revoked)


def _loginable(spec: ServerSpec) -> tuple[str, SecretStore]:
    if spec.url is None:
        raise LoginFailed(spec.name, "it is started here and has no login")
    if spec.has_authorization:
        raise LoginFailed(spec.name, "its Authorization header is configured: there is nobody to log in")
    if spec.secrets is None:
        raise ValueError(f"no place to keep the tokens of {spec.name!r}")
    return spec.url, spec.secrets


async def _ask(spec: ServerSpec, url: str, tokens: KeptTokens, visit: Visit) -> None:
    """Send a person through the login; the tokens are kept when this returns."""
    login = await tokens.load()
    registered = login.client
    port = spec.oauth.callback_port or _free_port_of(registered)
    if port is None and registered is not None:
        await tokens.forget()  # it is registered for a port that is taken
    try:
        async with open_loopback(port) as loopback:
            provider = OAuthClientProvider(
                url,
                client_metadata(loopback.redirect_uri),
                tokens,
                redirect_handler=visit,
                callback_handler=lambda: _come_back(spec.name, loopback),
                client_metadata_url=spec.oauth.client_metadata_url,
            )
            tokens.context = provider.context
            auth = LoginAuth(spec.name, provider, tokens, asks=True, challenge=login.challenge)
            if not await _lets_in(spec, auth):
                raise LoginFailed(spec.name, "it refuses the tokens it was just promised")
            await tokens.keep_challenge(None)
    except OSError as error:
        raise LoginFailed(spec.name, f"no port to come back to: {error.strerror or error}") from error


async def _is_welcome(spec: ServerSpec) -> bool:
    """Return whether nobody has to log in, or a kept login still counts."""
    try:
        return await _lets_in(spec, open_auth(spec))
    except NeedsLogin:
        return False


async def _come_back(server: str, loopback: Loopback) -> AuthorizationCodeResult:
    match await loopback.answer():
        case Denied(error, description):
            raise LoginFailed(server, plain_text(f"{error}: {description}".rstrip(": "), _MAX_MESSAGE))
        case answer:
            return answer


async def _lets_in(spec: ServerSpec, auth: httpx2.Auth) -> bool:
    """Return whether a server over HTTP takes a request that authenticates so."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {
        **spec.headers,
        "Accept": "application/json, text/event-stream",
        MCP_PROTOCOL_VERSION_HEADER: LATEST_HANDSHAKE_VERSION,
    }
    over_sse = spec.transport == "sse"
    async with (
        httpx2.AsyncClient(auth=auth, timeout=_TIMEOUT, headers=headers) as client,
        client.stream(
            "GET" if over_sse else "POST", str(spec.url), json=None if over_sse else ping
        ) as response,
    ):
        if response.status_code >= _BROKEN:
            raise LoginFailed(spec.name, f"it answers HTTP {response.status_code}")
        return response.status_code not in _REFUSED


def _logged_in(status: Literal["logged_in", "already", "open"], login: KeptLogin) -> LoggedIn:
    scope = "" if login.tokens is None else login.tokens.scope or ""
    return LoggedIn(status, tuple(scope.split()))


def _free_port_of(client: OAuthClientInformationFull | None) -> int | None:
    """Return the port that a client is registered to be sent back to, None where it is taken."""
    redirects = (client.redirect_uris if client is not None else None) or []
    port = next((redirect.port for redirect in redirects if redirect.port is not None), None)
    if port is None:
        return None
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the one that will listen
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return None
    return port


def _flow_message(error: OAuthFlowError) -> str:
    text = str(error)
    if text.startswith("State parameter mismatch"):  # what follows are both states
        return "the answer that came back belongs to another login (its state differs)"
    return plain_text(text, _MAX_MESSAGE)


async def _revoke(login: KeptLogin, client: OAuthClientInformationFull) -> bool:
    """Ask the authorization server to take the tokens back; return whether it did."""
    endpoint = login.metadata.revocation_endpoint if login.metadata is not None else None
    if endpoint is None or login.tokens is None:
        return False
    refresh = login.tokens.refresh_token
    form = {
        "token": refresh or login.tokens.access_token,
        "token_type_hint": "refresh_token" if refresh else "access_token",
        "client_id": client.client_id,
    }
    if client.client_secret is not None:
        form["client_secret"] = client.client_secret
    try:
        async with httpx2.AsyncClient(timeout=_TIMEOUT) as http:
            return (await http.post(str(endpoint), data=form)).is_success
    except httpx2.HTTPError:  # forgotten here all the same; the answer says that it was not revoked
        return False

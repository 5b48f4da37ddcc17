"""Who we are to a server over HTTP: a configured header, a login kept from before, or nobody.

Nothing here asks a person. Tokens are renewed as they expire; a server that still refuses needs a
login (`catalog.login`), which is its own trouble and no other's.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Final

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import OAuthClientMetadata

from catalog.config import ServerSpec
from catalog.errors import NeedsLogin, ServerUnavailable
from catalog.tokens import KeptTokens

__all__ = ["LoginAuth", "client_metadata", "open_auth"]

_NO_REDIRECT: Final = "http://127.0.0.1/callback"
"""Of a client that never sends anybody anywhere."""
logging.getLogger("mcp.client.auth").addHandler(logging.NullHandler())  # its errors are raised as well


def open_auth(spec: ServerSpec) -> httpx2.Auth:
    """Return what authenticates the requests to an expanded server over HTTP.

    Requests raise `NeedsLogin` where the server wants a person to log in, `ServerUnavailable`
    where it refuses the configured header or its tokens cannot be renewed for now.
    """
    if spec.has_authorization or spec.secrets is None or spec.url is None:
        return _Refusals(spec)
    tokens = KeptTokens(spec.secrets, spec.url, spec.oauth)
    provider = OAuthClientProvider(spec.url, client_metadata(_NO_REDIRECT), tokens)
    tokens.context = provider.context
    return LoginAuth(spec.name, provider, tokens)


def client_metadata(redirect_uri: str) -> OAuthClientMetadata:
    """Return what we tell an authorization server of ourselves."""
    return OAuthClientMetadata.model_validate({"client_name": "skillbank", "redirect_uris": [redirect_uri]})


class _Refusals(httpx2.Auth):
    """Adds nothing, and says plainly what a refusal means."""

    def __init__(self, spec: ServerSpec) -> None:
        self._spec = spec

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request as it is."""
        response = yield request
        if not _is_refused(response):
            return
        if self._spec.has_authorization:
            raise ServerUnavailable(
                self._spec.name, f"it refuses its Authorization header (HTTP {response.status_code})"
            )
        raise NeedsLogin(self._spec.name)


class LoginAuth(httpx2.Auth):
    """Sends the kept token with each request and renews it when it expires or is refused.

    Differs from the SDK's provider, which it drives: requests with a good token do not wait for
    each other; a refused token is renewed before a person is asked; tokens that another process
    renewed are taken over; nobody is registered or asked unless `asks`.
    """

    def __init__(
        self, server: str, provider: OAuthClientProvider, tokens: KeptTokens, *, asks: bool = False
    ) -> None:
        self._server = server
        self._provider = provider
        self._tokens = tokens
        self._asks = asks

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request with a token, a second time with a renewed one where it is refused."""
        context = self._provider.context
        if context.current_tokens is not None and context.is_token_valid():
            sent = context.current_tokens.access_token
            request.headers["Authorization"] = f"Bearer {sent}"
            if not _is_refused((yield request)):
                return
            await self._distrust(sent)
        for last in (False, True):
            request.headers.pop("Authorization", None)
            flow = self._provider.async_auth_flow(request)
            try:
                outgoing = await anext(flow)
                while True:
                    response = yield outgoing
                    if self._asks:
                        outgoing = await flow.asend(response)
                        continue
                    if outgoing is not request:
                        self._check_renewal(response)
                    elif _is_refused(response):
                        break
                    outgoing = await flow.asend(response)
            except StopAsyncIteration:
                return
            finally:
                await flow.aclose()
            sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if last or not await self._distrust(sent):
                raise NeedsLogin(self._server, "its tokens are refused" if sent else "nobody is logged in")

    async def _distrust(self, refused: str) -> bool:
        """Stop using a token; return whether there is another, or a way to get one."""
        context, kept = self._provider.context, await self._tokens.load()
        if kept.tokens is not None and kept.tokens.access_token != refused:
            context.current_tokens, context.token_expiry_time = kept.tokens, kept.expires_at
            return True
        if context.current_tokens is not None and context.current_tokens.access_token == refused:
            context.token_expiry_time = 1.0
            return context.can_refresh_token()
        return False

    def _check_renewal(self, response: httpx2.Response) -> None:
        if response.status_code >= 500 or response.status_code == 429:
            raise ServerUnavailable(
                self._server, f"its authorization server answers HTTP {response.status_code}: try again later"
            )


def _is_refused(response: httpx2.Response) -> bool:
    lacks_scope = extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == 401 or (response.status_code == 403 and lacks_scope)

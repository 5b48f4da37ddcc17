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
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth
from mcp.shared.auth import OAuthClientMetadata

from catalog.config import ServerSpec
from catalog.errors import NeedsLogin, ServerUnavailable
from catalog.plain_text import plain_text
from catalog.tokens import KeptLogin, KeptTokens

__all__ = ["LoginAuth", "client_metadata", "open_auth"]

_NO_REDIRECT: Final = "http://127.0.0.1/callback"
"""Of a client that never sends anybody anywhere."""
_LONGEST_CHALLENGE: Final = 4_000
_LONGEST_SCOPE: Final = 200
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
    renewed are taken over; nobody is registered or asked unless `asks`. A refusal for want of scope
    is kept, so that the next login asks for that too.

    Args:
        server: its name, for errors.
        provider: the SDK's.
        tokens: where the login is kept.
        asks: whether a person may be sent to log in.
        challenge: a kept refusal, which is answered first as if it came now; None: there is none.
    """

    def __init__(
        self,
        server: str,
        provider: OAuthClientProvider,
        tokens: KeptTokens,
        *,
        asks: bool = False,
        challenge: str | None = None,
    ) -> None:
        self._server = server
        self._provider = provider
        self._tokens = tokens
        self._asks = asks
        self._challenge = challenge

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request with a token, a second time with a renewed one where it is refused."""
        context, refused = self._provider.context, ""
        if context.current_tokens is None:
            self._take_over(await self._tokens.load())
        can_send = context.current_tokens is not None and context.is_token_valid()
        if context.current_tokens is not None and can_send and self._challenge is None:
            refused = context.current_tokens.access_token
            request.headers["Authorization"] = f"Bearer {refused}"
            response = yield request
            if not _is_refused(response):
                return
            if _lacks_scope(response) and not await self._is_replaced(refused):
                await self._step_up(response)  # renewed, it would lack the same
                refused = ""
            del request.headers["Authorization"]
        flow = self._provider.async_auth_flow(request)
        try:
            async with self._tokens.renewing():
                await self._distrust(refused)
                outgoing = await anext(flow)
                while outgoing is not request:
                    response = yield outgoing
                    self._check_renewal(response)
                    outgoing = await flow.asend(response)
            while True:
                replayed = self._replayed(request) if outgoing is request else None
                response = replayed or (yield outgoing)
                if not self._asks and outgoing is request and _is_refused(response):
                    sent = "Authorization" in request.headers or bool(refused)
                    if sent and _lacks_scope(response):
                        await self._step_up(response)
                    raise NeedsLogin(
                        self._server, "its tokens are refused" if sent else "nobody is logged in"
                    )
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _replayed(self, request: httpx2.Request) -> httpx2.Response | None:
        """Return the kept refusal, once."""
        challenge, self._challenge = self._challenge, None
        if challenge is None:
            return None
        return httpx2.Response(403, headers={"WWW-Authenticate": challenge}, request=request)

    async def _is_replaced(self, token: str) -> bool:
        """Return whether another process got a token in place of this one meanwhile."""
        kept = (await self._tokens.load()).tokens
        return kept is not None and kept.access_token != token

    async def _step_up(self, response: httpx2.Response) -> None:
        """Have a refusal for want of scope answered where a person may be asked, else kept for a login.

        Raises:
            NeedsLogin: nobody may be asked here.
        """
        challenge = response.headers["WWW-Authenticate"][:_LONGEST_CHALLENGE]
        if self._asks:
            self._challenge = challenge
            return
        await self._tokens.keep_challenge(challenge)
        scope = plain_text(extract_scope_from_www_auth(response) or "which it does not name", _LONGEST_SCOPE)
        raise NeedsLogin(self._server, f"it wants more scope: {scope}")

    async def _distrust(self, refused: str) -> None:
        """Have a refused token replaced: by the one another process got meanwhile, else by renewal."""
        self._tokens.refused = refused
        self._take_over(await self._tokens.load())

    def _take_over(self, kept: KeptLogin) -> None:
        context = self._provider.context
        context.current_tokens = kept.tokens
        context.token_expiry_time = self._tokens.expiry(kept)

    def _check_renewal(self, response: httpx2.Response) -> None:
        if response.status_code >= 500 or response.status_code == 429:
            raise ServerUnavailable(
                self._server, f"its authorization server answers HTTP {response.status_code}: try again later"
            )


def _is_refused(response: httpx2.Response) -> bool:
    return response.status_code == 401 or _lacks_scope(response)


def _lacks_scope(response: httpx2.Response) -> bool:
    return (
        response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope"
    )

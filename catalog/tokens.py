"""What a login to a server leaves behind: tokens, the client they belong to, where they are renewed.

Kept by the address they were given for, so that a server whose address is changed never gets the
tokens of another. How one logs in belongs to `catalog.login`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio import to_thread
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from mcp.shared.auth_utils import resource_url_from_server_url
from pydantic import BaseModel, ConfigDict, ValidationError

from catalog.config import OAuthSpec
from catalog.secret_store import SecretStore

__all__ = ["KeptLogin", "KeptTokens", "login_key", "login_secrets"]

_PREFIX: Final = "login to "
_CLAIM_AGAIN_SECONDS: Final = 0.05
_LONG_AGO: Final = 1.0


def login_key(url: str) -> str:
    """Return the name under which the login to an address is kept."""
    return f"{_PREFIX}{resource_url_from_server_url(url)}"


def login_secrets(name: str, kept: str) -> Iterator[str]:
    """Yield what must not be shown of a kept secret, where it is a login."""
    if name.startswith(_PREFIX) and (login := _parsed(kept)) is not None:
        tokens, client = login.tokens, login.client
        found = (
            tokens.access_token if tokens is not None else None,
            tokens.refresh_token if tokens is not None else None,
            client.client_secret if client is not None else None,
        )
        yield from (secret for secret in found if secret is not None)


class KeptLogin(BaseModel):
    """A login as it is kept."""

    model_config = ConfigDict(frozen=True)

    tokens: OAuthToken | None = None
    expires_at: float | None = None
    """Unix seconds, None: not said."""
    client: OAuthClientInformationFull | None = None
    """As the authorization server registered it; None where it was registered by hand."""
    metadata: OAuthMetadata | None = None
    """Of the authorization server: where tokens are renewed and revoked."""
    challenge: str | None = None
    """`WWW-Authenticate` of a call that was refused for want of scope, for the next login to answer;
    None: none was."""


def _parsed(text: str) -> KeptLogin | None:
    try:
        return KeptLogin.model_validate_json(text)
    except ValidationError:  # of a version that kept it otherwise: no login
        return None


class KeptTokens:
    """The SDK's token storage over a secret store, for one address.

    Attributes:
        context: the provider's, which is told when a token that was kept expires and where it is
            renewed. Set by whoever makes the provider.
        refused: an access token that its server refused; it counts as expired, whatever was said.
    """

    def __init__(
        self, secrets: SecretStore, url: str, oauth: OAuthSpec, clock: Callable[[], float] = time.time
    ) -> None:
        self.context: OAuthContext | None = None
        self.refused = ""
        self._secrets = secrets
        self._key = login_key(url)
        self._oauth = oauth
        self._clock = clock

    @asynccontextmanager
    async def renewing(self) -> AsyncGenerator[None]:
        """Keep everybody else, in whichever process, from renewing the same tokens meanwhile.

        A refresh token may be good for one use, and a second one may cost the whole login.
        """
        while (let_go := await to_thread.run_sync(self._secrets.claim, self._key)) is None:
            await anyio.sleep(_CLAIM_AGAIN_SECONDS)
        try:
            yield
        finally:
            let_go()

    async def load(self) -> KeptLogin:
        """Return the login as it is kept now, by whichever process."""
        text = await to_thread.run_sync(self._secrets.get, self._key)
        return (None if text is None else _parsed(text)) or KeptLogin()

    async def forget(self) -> bool:
        """Forget the login; return whether there was one."""
        return await to_thread.run_sync(self._secrets.remove, self._key)

    def expiry(self, login: KeptLogin) -> float | None:
        """Return when its access token is to be renewed, in Unix seconds; None: not known."""
        if login.tokens is not None and login.tokens.access_token == self.refused:
            return _LONG_AGO
        return login.expires_at

    async def get_tokens(self) -> OAuthToken | None:
        """Return the kept tokens, None where nobody logged in."""
        login = await self.load()
        if self.context is not None:
            self.context.token_expiry_time = self.expiry(login)
            self.context.oauth_metadata = self.context.oauth_metadata or login.metadata
        return login.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep new tokens with what is known of their server."""
        expires_at = None if tokens.expires_in is None else self._clock() + tokens.expires_in
        metadata = None if self.context is None else self.context.oauth_metadata
        login = await self.load()
        await self._save(
            login.model_copy(
                update={
                    "tokens": tokens,
                    "expires_at": expires_at,
                    "metadata": metadata or login.metadata,
                }
            )
        )

    async def keep_challenge(self, challenge: str | None) -> None:
        """Keep what a login has to ask for beside what was granted, None: nothing any more."""
        login = await self.load()
        await self._save(login.model_copy(update={"challenge": challenge}))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the client, the configured one before a registered one."""
        if self._oauth.client_id is None:
            return (await self.load()).client
        secret = self._oauth.client_secret
        return OAuthClientInformationFull(
            client_id=self._oauth.client_id,
            client_secret=secret,
            token_endpoint_auth_method="none" if secret is None else "client_secret_basic",
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a client that was registered; its older tokens belonged to another and go."""
        await self._save(KeptLogin(client=client_info))

    async def _save(self, login: KeptLogin) -> None:
        await to_thread.run_sync(self._secrets.put, self._key, login.model_dump_json(exclude_none=True))

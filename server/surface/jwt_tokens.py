"""Checks the tokens of an OAuth authorization server: signed by it, for us, not expired.

Only signed tokens (JWT, RFC 9068); keys come from the server's metadata and are fetched anew when a
token names one that is not known.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt
from mcp.server.auth.provider import AccessToken

__all__ = ["JwtTokens"]

_LOG = logging.getLogger(__name__)
_ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
_FETCH_SECONDS: Final = 10.0
_FRESH_SECONDS: Final = 600.0
_PAUSE_SECONDS: Final = 30.0
"""Least time between two fetches that an unknown key causes."""
_LEEWAY_SECONDS: Final = 30.0
_LONGEST: Final = 16_384


class JwtTokens:
    """The tokens of one issuer for one resource.

    Args:
        issuer: address of the authorization server, as its tokens name it.
        resource: our address, as the audience of the tokens names it.
        client: fetches metadata and keys.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        issuer: str,
        resource: str,
        client: httpx2.AsyncClient,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer, self._resource = issuer, resource
        self._client, self._clock = client, clock
        self._keys: Mapping[str | None, jwt.PyJWK] = {}
        self._fetched_at: float | None = None
        self._fetching = anyio.Lock()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return who a token speaks for, None where it is not good; the log says why."""
        try:
            claims = await self._claims(token)
        except (jwt.PyJWTError, httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
            _LOG.warning("a token was refused: %s", type(error).__name__ if not str(error) else error)
            return None
        subject = claims.get("sub")
        client = claims.get("client_id") or claims.get("azp") or subject
        if not isinstance(client, str) or not (subject is None or isinstance(subject, str)):
            return None
        return AccessToken(
            token=token,
            client_id=client,
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]),
            resource=self._resource,
            subject=subject,
            claims={"iss": self._issuer},
        )

    async def _claims(self, token: str) -> dict[str, Any]:
        if len(token) > _LONGEST:
            raise ValueError("it is too long")
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in _ALGORITHMS:
            raise ValueError(f"it is signed with {algorithm!r}")
        key = await self._key(header.get("kid"))
        return jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=[self._resource, self._resource.rstrip("/")],
            issuer=self._issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud"]},
        )

    async def _key(self, key_id: str | None) -> jwt.PyJWK:
        async with self._fetching:
            age = None if self._fetched_at is None else self._clock() - self._fetched_at
            is_unknown = key_id not in self._keys
            if age is None or age > _FRESH_SECONDS or (is_unknown and age > _PAUSE_SECONDS):
                self._keys = await self._fetch_keys()
                self._fetched_at = self._clock()
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if key_id not in self._keys:
            raise ValueError(f"its key {key_id!r} is not one of {self._issuer}")
        return self._keys[key_id]

    async def _fetch_keys(self) -> dict[str | None, jwt.PyJWK]:
        metadata = await self._metadata()
        address = str(metadata["jwks_uri"])
        if not (
            address.startswith("https://") or urlsplit(address).hostname in ("127.0.0.1", "localhost", "::1")
        ):
            raise ValueError(f"the keys of {self._issuer} are not at an https address")
        found = cast("dict[str, Any]", await self._json(address))
        return {key.key_id: key for key in jwt.PyJWKSet.from_dict(found).keys}

    async def _metadata(self) -> dict[str, Any]:
        """Return what the server says of itself: RFC 8414 first, then OpenID Connect's."""
        parts = urlsplit(self._issuer)
        root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        places = (
            f"{root}/.well-known/oauth-authorization-server{path}",
            f"{root}/.well-known/openid-configuration{path}",
            f"{root}{path}/.well-known/openid-configuration",
        )
        for place in dict.fromkeys(places):
            try:
                found = await self._json(place)
            except httpx2.HTTPStatusError:
                continue
            metadata = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
            if str(metadata.get("issuer")).rstrip("/") == self._issuer.rstrip("/"):
                return metadata
        raise ValueError(f"{self._issuer} publishes no metadata of its own name")

    async def _json(self, address: str) -> object:
        answer = await self._client.get(address, timeout=_FETCH_SECONDS)
        answer.raise_for_status()
        return answer.json()


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    said = claims.get("scope", claims.get("scp", ""))
    return said.split() if isinstance(said, str) else [str(scope) for scope in cast("list[object]", said)]

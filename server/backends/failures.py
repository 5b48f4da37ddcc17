"""What a provider's refusal means: whether asking again can help, and what a person can do.

Statuses, error codes and messages of HTTP APIs go in; a `Setback` comes out. No key is in its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.plain_text import plain_text
from server.backends.access import Access
from server.backends.attempts import Setback, parse_retry_after
from server.backends.errors import (
    BackendMisconfigured,
    BackendOverloaded,
    BackendUnavailable,
    ContextTooLong,
)
from skills_store.redaction import Redactor

__all__ = ["Refused", "Teller"]

_SHOWN_CHARACTERS = 300
_TOO_LONG = re.compile(
    r"context.?length|exceed_context_size|context.?size|context window|maximum context|prompt is too long"
    r"|too many (input )?tokens|input is too long",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"insufficient_quota|billing|credit balance", re.IGNORECASE)
_OVERLOADED = frozenset({"overloaded_error", "rate_limit_error", "rate_limit_exceeded", "server_overloaded"})
_BROKEN = frozenset({"api_error", "server_error", "timeout_error", "internal_error"})
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_ABOUT_THE_REQUEST = frozenset({None, 400, 422})
_BUSY = frozenset({429, 503, 529})


@dataclass(frozen=True, slots=True)
class Refused:
    """A provider's error, as it said it."""

    status: int | None
    """None: it came in the middle of an answer that began well."""
    message: str
    code: str = ""
    """Its type and code, together."""
    parameter: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Teller:
    """Tells what went wrong with one backend.

    Args:
        name: of the backend, for messages.
        access: how it is reached; its key is kept out of every text.
    """

    def __init__(self, name: str, access: Access) -> None:
        self._name = name
        self._access = access
        self._redact = Redactor([access.key] if access.key else []).redact_text

    def refused(self, refused: Refused, now: float) -> Setback:
        """Return what an error of the provider means.

        Args:
            refused: as it said it.
            now: unix seconds, for a date it asks to wait for.
        """
        said = self._said(refused)
        if refused.status == 413 or (
            refused.status in _ABOUT_THE_REQUEST and _TOO_LONG.search(f"{refused.code} {refused.message}")
        ):
            return Setback(
                ContextTooLong(f"{self._name}: the prompt does not fit the model ({said})"),
                status=refused.status,
            )
        busy = refused.status in _BUSY or bool(_OVERLOADED & {*refused.code.split()})
        passing = busy or refused.status in _PASSING or bool(_BROKEN & {*refused.code.split()})
        if not passing or _NO_CREDIT.search(f"{refused.code} {refused.message}"):
            remedy = self._remedy(refused)
            return Setback(
                BackendMisconfigured(f"{self._name}: {remedy} ({said})"),
                status=refused.status,
                parameter=refused.parameter,
            )
        if busy:
            error: BackendOverloaded | BackendUnavailable = BackendOverloaded(
                f"{self._name}: it is overloaded or its limit is reached; try later ({said})"
            )
        else:
            error = BackendUnavailable(f"{self._name}: it failed on its side; try later ({said})")
        wait = parse_retry_after(
            refused.headers.get("retry-after"), refused.headers.get("retry-after-ms"), now
        )
        return Setback(error, may_pass=True, after_seconds=wait, status=refused.status)

    def unreachable(self, why: str) -> Setback:
        """Return that no answer came."""
        where = f" at {self._access.url}" if self._access.url else ""
        return Setback(
            BackendUnavailable(f"{self._name}: nobody answers{where} ({self._shown(why)}); is it running?"),
            may_pass=True,
        )

    def broke_off(self, why: str) -> Setback:
        """Return that an answer ended before its end."""
        return Setback(
            BackendUnavailable(f"{self._name}: the answer broke off ({self._shown(why)}); try again"),
            may_pass=True,
        )

    def told(self, text: str) -> str:
        """Return a message about this backend, without its key."""
        return f"{self._name}: {self._shown(text)}"

    def no_key(self) -> BackendMisconfigured:
        """Return that there is no key to ask with."""
        return BackendMisconfigured(
            f"{self._name}: there is no key: set {self._access.variable} in the environment"
        )

    def _remedy(self, refused: Refused) -> str:
        variable = self._access.variable or "the key"
        if _NO_CREDIT.search(f"{refused.code} {refused.message}"):
            return "the account has no credit or quota left: see to its billing"
        match refused.status:
            case 401:
                return f"the key was refused: check {variable}" if self._access.key else self._keyless()
            case 403:
                return f"the key in {variable} may not do this: use another key or model"
            case 404:
                return "there is no such model or address: check the name and the URL"
            case _:
                return "the request was refused"

    def _keyless(self) -> str:
        if not self._access.variable:
            return "it wants a key, and none is known for it"
        return f"it wants a key: set {self._access.variable} in the environment"

    def _said(self, refused: Refused) -> str:
        status = f"{refused.status}: " if refused.status is not None else ""
        return f"{status}{self._shown(refused.message)}"

    def _shown(self, text: str) -> str:
        return plain_text(" ".join(self._redact(text).split()), _SHOWN_CHARACTERS)

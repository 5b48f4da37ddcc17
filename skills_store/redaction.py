"""Takes secrets out of a value before anything is stored or shown.

First the secrets that are known by value, then whatever has the shape of a well-known token.
Where the known secrets come from belongs to the server's settings.
"""

# re2 has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, cast

import re2
from pydantic import JsonValue

__all__ = ["REDACTED", "SHORTEST_SECRET", "Redactor"]

REDACTED = "[redacted]"

SHORTEST_SECRET = 6
"""Characters. A shorter secret would take ordinary words out of ordinary text."""

_TOKEN_SHAPES = (
    rb"\b[Bb]earer\s+[A-Za-z0-9._~+/=-]{8,}",
    rb"\bsk-[A-Za-z0-9_-]{16,}",
    rb"\bgh[opsur]_[A-Za-z0-9]{20,}",
    rb"\bgithub_pat_[A-Za-z0-9_]{20,}",
    rb"\bAKIA[0-9A-Z]{16}\b",
    rb"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
)


class _Pattern(Protocol):
    def sub(self, replacement: bytes, text: bytes) -> bytes: ...


class Redactor:
    """Replaces secrets in the strings and keys of JSON values, in linear time.

    Args:
        secrets: exact values, such as the expanded values of a server's environment and headers.
            Those shorter than `SHORTEST_SECRET` are not looked for.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = _long_enough(secrets)
        self._pattern = _pattern_of(self._known)

    def learn(self, secrets: Iterable[str]) -> None:
        """Look for more secrets from now on, such as tokens that were just renewed."""
        known = self._known | _long_enough(secrets)
        if known != self._known:
            self._known, self._pattern = known, _pattern_of(known)

    def redact(self, value: JsonValue) -> JsonValue:
        """Return the value with every secret in it replaced by `[redacted]`.

        Keys stay distinct: those that become equal are numbered in their order.
        """
        match value:
            case str():
                return self.redact_text(value)
            case dict():
                return self._redact_object(value)
            case list():
                return [self.redact(item) for item in value]
            case _:
                return value

    def redact_text(self, text: str) -> str:
        """Return the text with every secret in it replaced by `[redacted]`."""
        # Bytes, since a result may hold lone surrogates, which the engine does not take as text.
        raw = text.encode("utf-8", "surrogatepass")
        return self._pattern.sub(REDACTED.encode(), raw).decode("utf-8", "surrogatepass")

    def _redact_object(self, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        shown: dict[str, JsonValue] = {}
        for key, item in value.items():
            name = base = self.redact_text(key)
            count = 1
            while name in shown or (name != key and name in value):
                count += 1
                name = f"{base} {count}"
            shown[name] = self.redact(item)
        return shown


def _long_enough(secrets: Iterable[str]) -> frozenset[str]:
    return frozenset(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)


def _pattern_of(known: frozenset[str]) -> _Pattern:
    longest_first = sorted(known, key=lambda secret: (-len(secret), secret))
    return _compiled(b"|".join((*(_literal(secret) for secret in longest_first), *_TOKEN_SHAPES)))


def _literal(text: str) -> bytes:
    return b"".join(b"\\x%02x" % byte for byte in text.encode("utf-8", "surrogatepass"))


def _compiled(pattern: bytes) -> _Pattern:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return cast("_Pattern", re2.compile(pattern, options))

"""Takes secrets out of a value before anything is stored or shown.

First the secrets that are known by value, then whatever has the shape of a well-known token.
Where the known secrets come from belongs to the server's settings.
"""

# re2 has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, cast

import re2
from pydantic import JsonValue

__all__ = ["REDACTED", "SHORTEST_SECRET", "Redactor"]

REDACTED = "[redacted]"

SHORTEST_SECRET = 6
"""Characters. A shorter secret would take ordinary words out of ordinary text."""

_BATCH_CHARACTERS: Final = 100_000
"""Of strings that are looked at together."""

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
    def search(self, text: bytes) -> object: ...


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
        """Return the value with every secret in it replaced by `[redacted]`; itself where there is none.

        Keys stay distinct: those that become equal are numbered in their order.
        """
        match value:
            case str():
                return self.redact_text(value)
            case dict() | list() if self._is_clean(value):
                return value
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

    def _is_clean(self, value: JsonValue) -> bool:
        """Return whether nothing in a container is to be replaced: one look at many strings at once."""
        for strings in _batches(value):
            if self._pattern.search("\0".join(strings).encode("utf-8", "surrogatepass")) is not None:
                return False
        return True

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


def _batches(value: JsonValue) -> Iterator[list[str]]:
    """Yield all keys and strings of a value, a bounded number of characters at a time."""
    strings: list[str] = []
    characters, pending = 0, [value]
    while pending:
        match pending.pop():
            case str() as text:
                strings.append(text)
                characters += len(text)
            case list() as items:
                pending.extend(items)
            case dict() as members:
                strings.extend(members)
                characters += sum(len(key) for key in members)
                pending.extend(members.values())
            case _:
                pass
        if characters > _BATCH_CHARACTERS:
            yield strings
            strings, characters = [], 0
    yield strings


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

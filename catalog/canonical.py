"""Canonical JSON and digests, the ground of every identity in the bank.

RFC 8785 bytes, written by the standard library where it agrees with the standard and by the
`rfc8785` library where it does not: numbers that need an exponent, keys that need sorting as
UTF-16. Integers beyond the range in which two of them cannot collide as IEEE doubles are quoted
under a reserved key, so that distinct values never share a digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import rfc8785
from pydantic import JsonValue

__all__ = ["JsonValue", "canonical_json", "digest"]

_EXACT: Final = 2**53 - 1
_SMALLEST_PLAIN: Final = 1e-4
_LARGEST_PLAIN: Final = 1e16
"""Between these a float is written alike by Python and by the standard."""
_MOST_NODES: Final = 10_000
"""Of a container that is written in one go, so that a thread that writes a large one lets others run."""

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode


def canonical_json(value: object) -> bytes:
    """Return the RFC 8785 bytes of a JSON value.

    Raises:
        ValueError: the value is not JSON (NaN, Infinity, a key that is no string).
    """
    try:
        return _text_of(_folded(value)[0]).encode()
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise ValueError(f"not canonical JSON: {error}") from error


def digest(value: object) -> str:
    """Return `sha256:<hex>` over the canonical JSON of a value.

    Raises:
        ValueError: the value is not JSON.
    """
    return f"sha256:{hashlib.sha256(canonical_json(value)).hexdigest()}"


@dataclass(frozen=True, slots=True)
class _Text:
    """A value that is written already, since the encoder would write it otherwise or in too large a piece."""

    text: str


def _text_of(folded: object) -> str:
    return folded.text if isinstance(folded, _Text) else _encode(folded)


def _folded(value: object) -> tuple[object, int]:
    """Return a value as the encoder can write it canonically, or written, and how many nodes it has."""
    match value:
        case bool() | None | str():
            return value, 1
        case int():
            return (value if -_EXACT <= value <= _EXACT else {"\u0000int": str(value)}), 1
        case float():
            return _number(value), 1
        case Mapping():
            return _object(cast("Mapping[object, object]", value))
        case Sequence():
            return _array(cast("Sequence[object]", value))
        case _:
            raise ValueError(f"not a JSON value: {type(value).__name__}")


def _number(value: float) -> object:
    if value.is_integer() and -_EXACT <= value <= _EXACT:
        return int(value)
    if _SMALLEST_PLAIN <= abs(value) < _LARGEST_PLAIN and not value.is_integer():
        return value
    return _Text(rfc8785.dumps(value).decode())


def _object(value: Mapping[object, object]) -> tuple[object, int]:
    members: dict[str, object] = {}
    nodes, is_plain = 1, True
    for key, item in value.items():
        if not isinstance(key, str):
            raise ValueError(f"not canonical JSON: a key is no string: {key!r}")
        members[key], inside = _folded(item)
        nodes += inside + 1
        is_plain = is_plain and key.isascii() and not isinstance(members[key], _Text)
    if is_plain and nodes <= _MOST_NODES:
        return members, nodes
    ordered = sorted(members, key=lambda key: key.encode("utf-16-be"))
    return _Text("{" + ",".join(f"{_encode(key)}:{_text_of(members[key])}" for key in ordered) + "}"), nodes


def _array(value: Iterable[object]) -> tuple[object, int]:
    items: list[object] = []
    nodes, is_plain = 1, True
    for item in value:
        folded, inside = _folded(item)
        items.append(folded)
        nodes += inside
        is_plain = is_plain and not isinstance(folded, _Text)
    if is_plain and nodes <= _MOST_NODES:
        return items, nodes
    return _Text("[" + ",".join(_text_of(item) for item in items) + "]"), nodes

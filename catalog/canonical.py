"""Canonical JSON and digests, the ground of every identity in the bank.

RFC 8785 bytes through the `rfc8785` library. Integers beyond the range in which two of
them cannot collide as IEEE doubles are quoted under a reserved key, so that distinct
values never share a digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import cast

import rfc8785
from pydantic import JsonValue

__all__ = ["JsonValue", "canonical_json", "digest"]

_EXACT = 2**53 - 1


def canonical_json(value: object) -> bytes:
    """Return the RFC 8785 bytes of a JSON value.

    Raises:
        ValueError: the value is not JSON (NaN, Infinity, a key that is no string).
    """
    try:
        return rfc8785.dumps(_quoted(value))  # pyright: ignore[reportArgumentType]
    except rfc8785.CanonicalizationError as error:
        raise ValueError(f"not canonical JSON: {error}") from error


def digest(value: object) -> str:
    """Return `sha256:<hex>` over the canonical JSON of a value.

    Raises:
        ValueError: the value is not JSON.
    """
    return f"sha256:{hashlib.sha256(canonical_json(value)).hexdigest()}"


def _quoted(value: object) -> object:
    match value:
        case bool() | None | float() | str():
            return value
        case int():
            return value if -_EXACT <= value <= _EXACT else {"\u0000int": str(value)}
        case Mapping():
            return {key: _quoted(item) for key, item in cast("Mapping[object, object]", value).items()}
        case Sequence():
            return [_quoted(item) for item in cast("Sequence[object]", value)]
        case _:
            raise ValueError(f"not a JSON value: {type(value).__name__}")

"""Where two outputs differ, as pointers: what is volatile between equal runs, what a change moved."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import JsonValue

from skills_store.workflow.model import json_pointer
from skills_store.workflow.references import pointer_parts

__all__ = ["differences", "is_moment", "value_at"]

_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[+-]\d{2}:?\d{2})?")


def differences(one: JsonValue, two: JsonValue, *, apart_from: Sequence[str] = ()) -> list[str]:
    """Return the places at which two values differ, the smallest that hold each difference.

    Args:
        one: a value.
        two: another.
        apart_from: pointers to places that are not compared, nor what is inside of them.
    """
    return [
        place
        for place in _differences(one, two, "")
        if not any(place == known or place.startswith(f"{known}/") for known in apart_from)
    ]


def _differences(one: JsonValue, two: JsonValue, pointer: str) -> list[str]:
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        return [
            place for key in one for place in _differences(one[key], two[key], pointer + json_pointer(key))
        ]
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        parts = enumerate(zip(one, two, strict=True))
        return [place for index, (a, b) in parts for place in _differences(a, b, f"{pointer}/{index}")]
    return [] if _is_same(one, two) else [pointer]


def _is_same(one: JsonValue, two: JsonValue) -> bool:
    """Return whether two values without common parts are equal; true is not 1, 1 is 1.0."""
    return one == two and isinstance(one, bool) == isinstance(two, bool)


def is_moment(value: JsonValue) -> bool:
    """Return whether a value is a date with a time of day, which tells when rather than what."""
    return isinstance(value, str) and _MOMENT.fullmatch(value) is not None


def value_at(value: JsonValue, pointer: str) -> JsonValue:
    """Return the part of a value at a pointer that `differences` gave for it."""
    for part in pointer_parts(pointer):
        if isinstance(value, dict):
            value = value[part]
        elif isinstance(value, list):
            value = value[int(part)]
    return value

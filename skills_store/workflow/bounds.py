"""What one evaluation of an expression may cost, and the error of one that cannot be done.

Work is counted, never timed, so that the same expression on the same value always ends the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue

__all__ = ["INTEGER_BITS", "Meter", "SelectorError", "SelectorMiss", "json_equal", "json_type"]

WORK = 1_000_000
"""Units of one evaluation: a visited part of the expression, an element, 64 characters of text."""
INTEGER_BITS = 4_096


class SelectorError(ValueError):
    """An expression that cannot be read, or has no value on what it is given."""


class SelectorMiss(SelectorError):  # noqa: N818  (read as what happened)
    """A name or index that is not there; the right side of `||` may stand in."""


class Meter:
    """Counts the work of one evaluation down."""

    def __init__(self, work: int = WORK) -> None:
        self._left = work

    def spend(self, units: int) -> None:
        """Take units of work.

        Raises:
            SelectorError: there are not enough left.
        """
        self._left -= units
        if self._left < 0:
            raise SelectorError("the expression needs more work than an evaluation may do")

    def weigh(self, value: object) -> None:
        """Take the work of walking a whole value, and refuse what is no finite JSON.

        Raises:
            SelectorError: it is too large, or holds a number that is not finite.
        """
        waiting: list[object] = [value]
        while waiting:
            part = waiting.pop()
            match part:
                case str():
                    self.spend(1 + len(part) // 64)
                case float() if not math.isfinite(part):
                    raise SelectorError(f"{part} is no JSON number")
                case int() if part.bit_length() > INTEGER_BITS:
                    raise SelectorError(f"an integer of {part.bit_length()} bits is too large")
                case dict():
                    members = cast("dict[str, object]", part)
                    self.spend(1 + len(members))
                    waiting.extend(members.values())
                case list():
                    items = cast("list[object]", part)
                    self.spend(1 + len(items))
                    waiting.extend(items)
                case _:
                    self.spend(1)

    def weigh_top(self, value: object) -> None:
        """Take the work of reading a value and its direct elements; refuse what is no finite number.

        Raises:
            SelectorError: it is too large or not finite.
        """
        if isinstance(value, list):
            items = cast("list[object]", value)
            self.spend(1 + len(items) // 16 + sum(len(item) // 64 for item in items if isinstance(item, str)))
        elif isinstance(value, dict):
            self.spend(1 + len(cast("dict[str, object]", value)) // 16)
        else:
            self.weigh(value)

    def weigh_all(self, values: Iterable[object]) -> None:
        """Take the work of walking several values."""
        for value in values:
            self.weigh(value)


def json_type(value: object) -> str:
    """Return the JSON type name of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def json_equal(left: JsonValue, right: JsonValue) -> bool:
    """Return whether two JSON values are equal: `1` equals `1.0` and never `true`."""
    if json_type(left) != json_type(right):
        return False
    match left, right:
        case dict(), dict():
            return left.keys() == right.keys() and all(json_equal(left[key], right[key]) for key in left)
        case list(), list():
            return len(left) == len(right) and all(map(json_equal, left, right))
        case _:
            return left == right

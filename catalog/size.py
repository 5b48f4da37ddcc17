"""How large a JSON value is, without writing it: enough to tell what must leave memory or the event loop."""

from __future__ import annotations

from typing import Final

from catalog.canonical import JsonValue

__all__ = ["LARGE_BYTES", "is_large", "rough_size"]

LARGE_BYTES: Final = 1_000_000
"""A value over this is kept on disk by its digest (`CONTRACTS`, Output of a node)."""

_NODE_BYTES: Final = 6
"""What a number, a word or a pair of brackets takes, commas included, give or take."""


def rough_size(value: JsonValue, enough: int | None = None) -> int:
    """Return about how many bytes the JSON of a value has, text counted by characters.

    Args:
        value: any JSON value.
        enough: where to stop counting; None counts everything.
    """
    size, pending = 0, [value]
    while pending and (enough is None or size <= enough):
        item = pending.pop()
        size += _NODE_BYTES
        match item:
            case str():
                size += len(item)
            case list():
                pending.extend(item)
            case dict():
                size += sum(len(key) for key in item)
                pending.extend(item.values())
            case _:
                pass
    return size


def is_large(value: JsonValue) -> bool:
    """Return whether a value is over the bound; stops looking once it is."""
    return rough_size(value, LARGE_BYTES) > LARGE_BYTES

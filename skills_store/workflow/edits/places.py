"""One place inside a JSON value: read it, set it, take it out; the value given is never changed."""

from __future__ import annotations

from typing import Protocol

from pydantic import JsonValue

from skills_store.workflow.edits.models import EditRefused
from skills_store.workflow.model import json_pointer
from skills_store.workflow.references import pointer_parts

__all__ = ["has_place", "read_place", "remove_place", "set_place"]

Container = dict[str, JsonValue] | list[JsonValue]


def read_place(value: JsonValue, pointer: str) -> JsonValue:
    """Return what stands at a pointer.

    Raises:
        EditRefused: nothing does.
    """
    for part in pointer_parts(pointer):
        match value:
            case dict() if part in value:
                value = value[part]
            case list() if (index := _index(part)) is not None and index < len(value):
                value = value[index]
            case _:
                raise EditRefused(f"nothing is at {pointer}")
    return value


def has_place(value: JsonValue, pointer: str) -> bool:
    """Return whether something, null included, stands at a pointer."""
    try:
        read_place(value, pointer)
    except EditRefused:
        return False
    return True


def set_place(value: dict[str, JsonValue], pointer: str, new: JsonValue) -> dict[str, JsonValue]:
    """Return the value with `new` at a pointer: replaced, or added to a parent that is there.

    Raises:
        EditRefused: the parent is missing, or no key or index can be added to it.
    """

    def put(parent: Container, part: str) -> None:
        if isinstance(parent, dict):
            parent[part] = new
            return
        index = len(parent) if part == "-" else _index(part)
        if index is None or index > len(parent):
            raise EditRefused(f"{pointer}: the list there has {len(parent)} elements")
        parent[index : index + 1] = [new]

    return _changed(value, pointer, put)


def remove_place(value: dict[str, JsonValue], pointer: str) -> dict[str, JsonValue]:
    """Return the value without what stands at a pointer.

    Raises:
        EditRefused: nothing does.
    """
    read_place(value, pointer)

    def take(parent: Container, part: str) -> None:
        if isinstance(parent, dict):
            del parent[part]
        else:
            del parent[int(part)]

    return _changed(value, pointer, take)


class _Change(Protocol):
    def __call__(self, parent: Container, part: str) -> None: ...


def _changed(value: dict[str, JsonValue], pointer: str, change: _Change) -> dict[str, JsonValue]:
    parts = pointer_parts(pointer)
    if not parts:
        raise EditRefused(f"{pointer!r} points at no value inside")
    copied = dict(value)
    parent: Container = copied
    for depth, part in enumerate(parts[:-1], 1):
        child = read_place(parent, json_pointer(part))
        if not isinstance(child, dict | list):
            raise EditRefused(f"{json_pointer(*parts[:depth])} holds no values inside")
        fresh: Container = dict(child) if isinstance(child, dict) else list(child)
        if isinstance(parent, dict):
            parent[part] = fresh
        else:
            parent[int(part)] = fresh
        parent = fresh
    change(parent, parts[-1])
    return copied


def _index(part: str) -> int | None:
    return int(part) if part.isdecimal() and part.isascii() else None

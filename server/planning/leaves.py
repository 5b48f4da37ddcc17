"""The places inside an output that a later node could read, from a seen value or a schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from pydantic import JsonValue

from catalog.schema import inline_refs, json_type, types
from catalog.tools import JsonSchema
from skills_store.workflow.model import json_pointer

__all__ = ["Leaf", "closed_part", "leaves_of_schema", "leaves_of_value", "output_leaves"]

_MAX_LEAVES = 60
_MAX_DEPTH = 4
_UNREADABLE: Final = re.compile(r"[#{}]")
"""Keys that no reference can name (`skills_store.workflow.references`)."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One readable place. `value` is a seen value, None when only the schema is known."""

    pointer: str
    key: str
    """Last named part of the pointer, empty for the whole output."""
    types: frozenset[str]
    value: JsonValue = None
    seen: bool = False


def output_leaves(value: JsonValue, schema: JsonSchema | None, *, seen: bool) -> list[Leaf]:
    """Return leaves of the seen value, else of the declared schema, else nothing."""
    if seen:
        return leaves_of_value(value)
    return leaves_of_schema(schema) if schema else []


def leaves_of_value(value: JsonValue) -> list[Leaf]:
    """Return the places of a value, containers before their parts, bounded in number and depth."""
    return _bounded(_walk_value(value, "", "", 0))


def leaves_of_schema(schema: JsonSchema) -> list[Leaf]:
    """Return the places a schema declares, containers before their parts."""
    return _bounded(_walk_schema(closed_part(schema, schema), "", "", 0))


def closed_part(root: JsonSchema, part: JsonSchema) -> JsonSchema:
    """Return a part of a schema that can be read without the rest: its references inlined."""
    if "$ref" not in str(part):
        return part
    defs = {key: root[key] for key in ("$defs", "definitions") if key in root}
    closed = inline_refs({**part, **defs})
    return {key: value for key, value in closed.items() if key not in ("$defs", "definitions")}


def _bounded(leaves: Iterator[Leaf]) -> list[Leaf]:
    return [leaf for leaf, _ in zip(leaves, range(_MAX_LEAVES), strict=False)]


def _walk_value(value: JsonValue, pointer: str, key: str, depth: int) -> Iterator[Leaf]:
    yield Leaf(pointer, key, frozenset({json_type(value)}), value, seen=True)
    if depth >= _MAX_DEPTH:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            if _UNREADABLE.search(name):
                continue
            yield from _walk_value(item, pointer + json_pointer(name), name, depth + 1)
    elif isinstance(value, list) and len(value) <= 3:
        for index, item in enumerate(value):
            yield from _walk_value(item, f"{pointer}/{index}", key, depth + 1)


def _walk_schema(schema: JsonSchema, pointer: str, key: str, depth: int) -> Iterator[Leaf]:
    yield Leaf(pointer, key, types(schema))
    properties = schema.get("properties")
    if depth >= _MAX_DEPTH or not isinstance(properties, dict):
        return
    for name, part in cast("dict[str, JsonSchema]", properties).items():
        if _UNREADABLE.search(name):
            continue
        yield from _walk_schema(part, pointer + json_pointer(name), name, depth + 1)

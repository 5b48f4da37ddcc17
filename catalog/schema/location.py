"""Which subschema a pointer into a value reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from catalog.canonical import JsonValue
from catalog.schema.references import pointer_tokens
from catalog.schema.validation import is_valid
from catalog.schema.variants import inlined, variant_types, variants
from catalog.tools import JsonSchema

__all__ = ["Lookup", "child_schema", "lookup"]


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a schema says about the place a pointer names."""

    found: bool
    """Whether the schema describes the place."""
    schema: JsonSchema | None
    """The schema of that place, complete in itself; None when not found."""
    available: tuple[str, ...]
    """Keys the schema declares where the pointer left it, sorted."""
    certain: bool
    """Not found: no value of this schema has the place. Found: declared by name or index."""


_OPEN: Final = Lookup(found=False, schema=None, available=(), certain=False)


def lookup(schema: JsonSchema | None, pointer: str) -> Lookup:
    """Return which subschema a pointer into a value of this schema reads.

    An open or absent schema leaves it uncertain: the value may have the place all the same.

    Raises:
        ValueError: not a JSON pointer.
        SchemaRejected: a reference in the schema names nothing.
    """
    tokens = pointer_tokens(pointer)
    if schema is None:
        return _OPEN
    here = Lookup(found=True, schema=schema, available=(), certain=True)
    parts: list[JsonSchema | bool] = [schema]
    for token in tokens:
        steps = [_step(variant, token) for part in parts for variant in _occupied(part, schema)]
        parts = [part for step in steps for part in step.parts]
        if not parts:
            return _missing(steps)
        certain = here.certain and all(step.declared for step in steps if step.parts)
        here = replace(here, certain=certain)
    return replace(here, schema=_united(parts, schema))


@dataclass(frozen=True, slots=True)
class _Step:
    """What one variant says of one token."""

    parts: tuple[JsonSchema | bool, ...] = ()
    declared: bool = False
    closed: bool = False
    available: tuple[str, ...] = ()


def _occupied(part: JsonSchema | bool, root: JsonSchema) -> list[JsonSchema]:
    """Return the variants that can hold children, or all when none can."""
    found = variants(part, root)
    return [v for v in found if variant_types(v) & {"array", "object"}] or found


def _missing(steps: list[_Step]) -> Lookup:
    available = sorted({key for step in steps for key in step.available})
    return Lookup(False, None, tuple(available), certain=all(step.closed for step in steps))


def _step(variant: JsonSchema, token: str) -> _Step:
    admitted = variant_types(variant)
    if "object" in admitted and not ("array" in admitted and "items" in variant and token.isdecimal()):
        return _into_object(variant, token)
    if "array" in admitted:
        return _into_array(variant, token)
    return _Step(closed=True)


def _into_object(variant: JsonSchema, token: str) -> _Step:
    properties = variant.get("properties")
    declared = properties if isinstance(properties, dict) else {}
    if isinstance(sub := declared.get(token), dict | bool):
        return _Step((sub,), declared=True) if sub is not False else _Step(closed=True)
    named = child_schema(variant, token)
    if isinstance(named, dict):
        return _Step((named,))
    return _Step(closed=named is False, available=tuple(declared))


def child_schema(variant: JsonSchema, key: str) -> JsonSchema | bool | None:
    """Return the schema of one key of an object, None when the object is open for any value."""
    properties = variant.get("properties")
    if isinstance(properties, dict) and isinstance(sub := properties.get(key), dict | bool):
        return sub
    patterns = variant.get("patternProperties")
    for pattern, sub in patterns.items() if isinstance(patterns, dict) else ():
        if isinstance(sub, dict | bool) and is_valid({"type": "string", "pattern": pattern}, key):
            return sub
    other = variant.get("additionalProperties")
    return other if isinstance(other, dict) or other is False else None


def _into_array(variant: JsonSchema, token: str) -> _Step:
    if not token.isdecimal():
        return _Step(closed=True)
    sub = item_schema(variant, int(token))
    if isinstance(sub, dict):
        return _Step((sub,), declared=True)
    return _Step(closed=sub is False)


def item_schema(variant: JsonSchema, index: int) -> JsonSchema | bool | None:
    """Return the schema of one item of an array, None when any value may stand there."""
    items = variant.get("items")
    prefix = items if isinstance(items, list) else variant.get("prefixItems")
    prefix = prefix if isinstance(prefix, list) else []
    rest = variant.get("additionalItems") if isinstance(items, list) else items
    sub: JsonValue = prefix[index] if index < len(prefix) else rest
    return sub if isinstance(sub, dict) or sub is False else None


def _united(parts: list[JsonSchema | bool], root: JsonSchema) -> JsonSchema:
    whole = [inlined(part, root) if isinstance(part, dict) else {} for part in parts]
    distinct = [part for index, part in enumerate(whole) if part not in whole[:index]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": [*distinct]}

"""The alternatives a schema offers, each as one plain schema: references, unions and
intersections resolved for questions that are asked about a schema instead of a value.

Merging keeps what can be kept and drops what cannot be expressed, so a variant admits at least
what its parts admit together. Whether a *value* fits is a question for `validation`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from catalog.canonical import JsonValue
from catalog.schema.bounds import bounded_cost
from catalog.schema.references import SameSchema, map_subschemas, resolve
from catalog.tools import JsonSchema

__all__ = ["JSON_TYPES", "inline_refs", "inlined", "json_type", "merge", "types", "variant_types", "variants"]

JSON_TYPES: Final = frozenset({"array", "boolean", "null", "number", "object", "string"})
MAX_VARIANTS: Final = 64

_COMBINING: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_DEFINING: Final = frozenset({"$defs", "definitions"})
_PROSE: Final = frozenset({"$comment", "default", "deprecated", "description", "examples", "title"})
_LARGER: Final = frozenset({"exclusiveMinimum", "minItems", "minLength", "minProperties", "minimum"})
_SMALLER: Final = frozenset({"exclusiveMaximum", "maxItems", "maxLength", "maxProperties", "maximum"})


def variants(schema: JsonSchema | bool, root: JsonSchema) -> list[JsonSchema]:
    """Return the alternatives of a schema without `$ref`, `allOf`, `anyOf` and `oneOf` at their top.

    Args:
        schema: the schema in question; nothing admits `False`.
        root: the document its references mean.

    Raises:
        SchemaRejected: a reference names nothing in `root`.
    """
    return _variants(schema, root, frozenset())


def _variants(schema: JsonSchema | bool, root: JsonSchema, followed: frozenset[str]) -> list[JsonSchema]:
    if isinstance(schema, bool):
        return [{}] if schema else []
    if not _COMBINING & schema.keys():
        return [schema]
    found: list[JsonSchema] = [{key: value for key, value in schema.items() if key not in _COMBINING}]
    if isinstance(reference := schema.get("$ref"), str) and reference not in followed:
        target = resolve(root, reference)
        found = _crossed(_variants(target, root, followed | {reference}), found)
    for part in _listed(schema, "allOf"):
        found = _crossed(found, _variants(part, root, followed))
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            listed = [v for part in _listed(schema, keyword) for v in _variants(part, root, followed)]
            found = _crossed(found, listed)
    return found


def _crossed(left: list[JsonSchema], right: list[JsonSchema]) -> list[JsonSchema]:
    if len(left) * len(right) > MAX_VARIANTS:
        return [{}]
    merged = [merge(one, other) for one in left for other in right]
    return [one for one in merged if one.get("type") != [] and one.get("enum") != []]


def _listed(schema: JsonSchema, keyword: str) -> list[JsonSchema | bool]:
    listed = schema.get(keyword)
    return [part for part in listed if isinstance(part, dict | bool)] if isinstance(listed, list) else []


def merge(one: JsonSchema, other: JsonSchema) -> JsonSchema:
    """Return one schema that admits at least what both admit; prose of the second wins."""
    if not one or not other:
        return one or other
    merged = {**one, **other}
    for keyword in one.keys() & other.keys():
        merged[keyword] = _merged(keyword, one[keyword], other[keyword])
    return merged


def _merged(keyword: str, one: JsonValue, other: JsonValue) -> JsonValue:
    match one, other:
        case (dict(), dict()) if keyword in ("properties", "patternProperties"):
            return {**one, **other} | {key: _both(one[key], other[key]) for key in one.keys() & other.keys()}
        case (list(), list()) if keyword == "required":
            return [*one, *(name for name in other if name not in one)]
        case (list(), list()) if keyword == "enum":
            return [value for value in one if value in other]
        case (list() | str(), list() | str()) if keyword == "type":
            return _common_types(one, other)
        case (int() | float(), int() | float()) if keyword in _LARGER | _SMALLER:
            return max(one, other) if keyword in _LARGER else min(one, other)
        case _ if keyword in ("additionalProperties", "items"):
            return _both(one, other)
        case _:
            return other


def _both(one: JsonValue, other: JsonValue) -> JsonValue:
    if one is False or other is False:
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one if one == other else {"allOf": [one, other]}
    return other if one is True else one


def _common_types(one: JsonValue, other: JsonValue) -> JsonValue:
    ours, theirs = _type_set(one), _type_set(other)
    common = {name for name in ours if name in theirs or (name == "integer" and "number" in theirs)}
    common |= {name for name in theirs if name == "integer" and "number" in ours}
    return [*sorted(common)]


def _type_set(declared: JsonValue) -> frozenset[str]:
    names = declared if isinstance(declared, list) else [declared]
    return frozenset(name for name in names if isinstance(name, str))


def json_type(value: JsonValue) -> str:
    """Return the JSON type of a value, `integer` for whole numbers written as such."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"


def variant_types(variant: JsonSchema) -> frozenset[str]:
    """Return the types one variant admits; without a declaration all of them."""
    if "const" in variant:
        return frozenset({json_type(variant["const"])})
    declared = _type_set(variant["type"]) if "type" in variant else None
    if isinstance(values := variant.get("enum"), list):
        named = frozenset(json_type(value) for value in values)
        return named if declared is None or "number" in declared else named & declared
    return JSON_TYPES if declared is None else declared


def types(schema: JsonSchema) -> frozenset[str]:
    """Return the JSON types a schema admits.

    `number` stands for every number; `integer` is there only where others are refused.
    """
    found = frozenset[str]().union(*(variant_types(variant) for variant in variants(schema, schema)))
    return found - {"integer"} if "number" in found else found


def inline_refs(schema: JsonSchema) -> JsonSchema:
    """Return the schema with local references replaced by what they name, without definitions.

    A recursive reference is cut: to `{"type": "object"}` where it names objects, else to `{}`.

    Raises:
        SchemaRejected: a reference leaves the document or names nothing.
    """
    return inlined(schema, schema)


def inlined(schema: JsonSchema, root: JsonSchema) -> JsonSchema:
    """Return `inline_refs` of a part of the document `root`."""
    return _inlined_part(SameSchema(schema), SameSchema(root))


@lru_cache(maxsize=2048)
def _inlined_part(schema: SameSchema, root: SameSchema) -> JsonSchema:
    bounded_cost(schema.schema, root.schema)
    result = _Inlining(root.schema).part(schema.schema)
    return result if isinstance(result, dict) else {}


@dataclass
class _Inlining:
    root: JsonSchema
    _done: dict[str, JsonSchema | bool] = field(default_factory=dict[str, "JsonSchema | bool"])
    _open: set[str] = field(default_factory=set[str])

    def part(self, schema: JsonSchema | bool) -> JsonSchema | bool:
        if isinstance(schema, bool):
            return schema
        rest = {key: value for key, value in schema.items() if key != "$ref" and key not in _DEFINING}
        rest = map_subschemas(rest, self.part)
        if not isinstance(reference := schema.get("$ref"), str):
            return rest
        target = self._target(reference)
        if isinstance(target, bool):
            return False if target is False else rest
        if target.keys() & rest.keys() - _PROSE:
            return {"allOf": [target], **rest} if "allOf" not in rest else {"allOf": [target, rest]}
        return {**target, **rest}

    def _target(self, reference: str) -> JsonSchema | bool:
        target = resolve(self.root, reference)
        if reference in self._open:
            return {"type": "object"} if isinstance(target, dict) and target.get("type") == "object" else {}
        if reference not in self._done:
            self._open.add(reference)
            self._done[reference] = self.part(target)
            self._open.discard(reference)
        return self._done[reference]

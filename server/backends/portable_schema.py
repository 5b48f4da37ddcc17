"""JSON Schemas as providers take them: a stricter or a plainer dialect of what was asked for.

What a dialect cannot say is left out, never tightened but for closing objects: whoever asked
validates the answer with the true schema. A schema that cannot be closed without losing answers is
not translated at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from catalog.tools import JsonSchema

__all__ = ["closed_schema", "plain_schema", "without_added_nulls"]

_Node = Mapping[str, JsonValue]

_OPEN = ("patternProperties", "unevaluatedProperties", "prefixItems", "allOf", "definitions")
_UNENFORCED = frozenset(
    {
        "$schema", "$id", "$comment", "default", "examples", "format", "pattern", "not", "if", "then", "else",
        "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "uniqueItems",
        "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "unevaluatedProperties", "contains",
    }
)  # fmt: skip
_LONGEST = 1_000
"""Larger bounds of length make grammars that servers refuse."""


class _CannotClose(Exception):  # noqa: N818  (caught in this module)
    pass


def closed_schema(schema: JsonSchema, *, all_required: bool) -> dict[str, JsonValue] | None:
    """Return the schema with every object closed, as hosted providers enforce it.

    Args:
        schema: of the answer.
        all_required: whether every property must be required; the optional ones then may be null,
            see `without_added_nulls`.

    Returns:
        None where closing it would forbid answers that it allows: objects with free keys, schemas
        without a type.
    """
    if schema.get("type") != "object":
        return None
    try:
        return _closed(schema, all_required)
    except _CannotClose:
        return None


def _closed(schema: JsonValue, strict: bool) -> dict[str, JsonValue]:
    if not isinstance(schema, dict) or any(key in schema for key in _OPEN):
        raise _CannotClose
    shown: dict[str, JsonValue] = {
        key: schema[key] for key in ("title", "description") if isinstance(schema.get(key), str)
    }
    if isinstance(definitions := schema.get("$defs"), dict):
        shown["$defs"] = {name: _closed(part, strict) for name, part in definitions.items()}
    kind = schema.get("type")
    if "$ref" in schema:
        return {key: value for key, value in (shown | schema).items() if key in ("$ref", "$defs")}
    if "enum" in schema or "const" in schema:
        shown.update({key: schema[key] for key in ("type", "enum", "const") if key in schema})
    elif kind == "object":
        shown.update(_closed_object(schema, strict))
    elif kind == "array":
        shown.update(type="array", items=_closed(schema.get("items", True), strict))
    elif isinstance(kind, list):
        shown["anyOf"] = [_closed({**schema, "type": each}, strict) for each in kind]
    elif isinstance(kind, str):
        shown["type"] = kind
    else:
        shown["anyOf"] = _closed_branches(schema, strict)
    return shown


def _closed_branches(schema: _Node, strict: bool) -> list[JsonValue]:
    branches = schema.get("anyOf", schema.get("oneOf"))
    if not isinstance(branches, list):
        raise _CannotClose
    return [_closed(branch, strict) for branch in branches]


def _closed_object(schema: _Node, strict: bool) -> dict[str, JsonValue]:
    properties = schema.get("properties")
    if schema.get("additionalProperties", properties in (None, {})) is not False and (
        properties in (None, {}) or "additionalProperties" in schema
    ):
        raise _CannotClose
    named = cast("dict[str, JsonValue]", properties or {})
    required = cast("list[str]", schema.get("required") or [])
    closed: dict[str, JsonValue] = {}
    for name, part in named.items():
        inner = _closed(part, strict)
        closed[name] = {"anyOf": [inner, {"type": "null"}]} if strict and name not in required else inner
    wanted = [*named] if strict else [name for name in required if name in named]
    return {
        "type": "object",
        "properties": closed,
        "required": cast("list[JsonValue]", wanted),
        "additionalProperties": False,
    }


def plain_schema(schema: JsonSchema) -> dict[str, JsonValue]:
    """Return the schema without what local servers refuse, misread or ignore."""
    return cast("dict[str, JsonValue]", _plain(cast("JsonValue", schema)))


def _plain(schema: JsonValue) -> JsonValue:
    if not isinstance(schema, dict):
        return {} if schema is True else schema
    shown: dict[str, JsonValue] = {}
    for key, value in schema.items():
        match key, value:
            case (("properties" | "$defs" | "definitions"), dict()):
                shown[key] = {name: _plain(part) for name, part in value.items()}
            case (("anyOf" | "oneOf" | "allOf"), list()):
                if "properties" not in schema:
                    # Branches that lost a keyword may overlap, which one-of would not allow.
                    shown["anyOf" if key == "oneOf" else key] = [_plain(part) for part in value]
            case "items", _:
                shown[key] = _plain(value)
            case (("minimum" | "maximum"), _) if schema.get("type") != "integer":
                continue
            case (("maxLength" | "minLength" | "maxItems" | "minItems"), int()) if value > _LONGEST:
                continue
            case _ if key not in _UNENFORCED:
                shown[key] = value
            case _:
                continue
    return shown


def without_added_nulls(text: str, schema: JsonSchema) -> str:
    """Return an answer to an all-required schema without the nulls that stand for absent properties.

    A text that is no JSON is returned as it is.
    """
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(_pruned(value, schema, schema), ensure_ascii=False)


def _pruned(value: JsonValue, schema: JsonValue, root: JsonSchema) -> JsonValue:
    meant = _resolved(schema, root)
    if isinstance(value, list):
        return [_pruned(item, meant.get("items"), root) for item in value]
    if not isinstance(value, dict):
        return value
    branch = _branch_for(value, meant, root)
    properties = branch.get("properties")
    known = properties if isinstance(properties, dict) else {}
    required = branch.get("required")
    kept = required if isinstance(required, list) else []
    return {
        key: _pruned(item, known.get(key), root)
        for key, item in value.items()
        if item is not None or key in kept or key not in known
    }


def _branch_for(value: Mapping[str, JsonValue], schema: _Node, root: JsonSchema) -> _Node:
    """Return the branch of a union that an object is of: the first whose constants it has."""
    for union in ("anyOf", "oneOf"):
        branches = schema.get(union)
        if isinstance(branches, list) and "properties" not in schema:
            for branch in (_resolved(each, root) for each in branches):
                properties = branch.get("properties")
                if isinstance(properties, dict) and _fits(value, properties):
                    return branch
    return schema


def _fits(value: Mapping[str, JsonValue], properties: _Node) -> bool:
    return value.keys() <= properties.keys() and all(
        part["const"] == value.get(name)
        for name, part in properties.items()
        if isinstance(part, dict) and "const" in part
    )


def _resolved(schema: JsonValue, root: JsonSchema) -> _Node:
    seen = 0
    while isinstance(schema, dict) and isinstance(name := schema.get("$ref"), str) and seen < 20:
        definitions = root.get("$defs")
        found = definitions.get(name.removeprefix("#/$defs/")) if isinstance(definitions, dict) else None
        schema, seen = found, seen + 1
    return schema if isinstance(schema, dict) else {}

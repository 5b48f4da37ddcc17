"""The JSON Schema of a plan: tool names an enumeration, arguments as that tool takes them.

Schemas of strangers are cut down to what constrained decoders honour; what is cut is checked after
the answer came. A reference may stand where the type of some output fits, and nowhere else: where
only a reference is admitted, a model that knows the value writes a reference all the same, which is
valid, wrong, and seen by no schema. For the same reason a scalar may stand for a list of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from catalog.schema import types
from catalog.tools import JsonSchema, Tool
from server.planning.leaves import closed_part, leaves_of_schema

__all__ = ["arguments_schema", "choice_schema", "output_types", "plan_schema", "reference_schema"]

MOST_NODES = 8
_REFERENCE = r"^\$(n[1-9]|inputs)(\.[A-Za-z0-9_]+)*$"
_DEPTH = 3
_MOST_VALUES = 64
_SCALARS = frozenset({"string", "number", "integer", "boolean"})
_EVERYTHING = frozenset({"string", "number", "integer", "boolean", "array", "object"})


def plan_schema(
    tools: Mapping[str, Tool], wanted: Sequence[str] = (), *, has_inputs: bool = False
) -> JsonSchema:
    """Return the schema of a whole plan.

    Args:
        tools: by the names a model calls them by.
        wanted: names of the outputs; empty: one output `result`.
        has_inputs: whether arguments may refer to inputs of the task, whatever their type.
    """
    given = frozenset[str]().union(*(output_types(tool) for tool in tools.values()))
    readable = _EVERYTHING if has_inputs else given
    nodes: list[JsonValue] = [_node(label, tool, readable) for label, tool in tools.items()]
    outputs: JsonSchema = {name: {"type": "string", "pattern": _REFERENCE} for name in wanted or ("result",)}
    return _closed(
        {
            "nodes": {"type": "array", "minItems": 1, "maxItems": MOST_NODES, "items": {"anyOf": nodes}},
            "outputs": _closed(outputs),
        }
    )


def choice_schema(labels: Iterable[str]) -> JsonSchema:
    """Return the schema of the first stage: which tools are called, in order."""
    names = list[JsonValue](labels)
    return _closed(
        {"tools": {"type": "array", "minItems": 1, "maxItems": MOST_NODES, "items": {"enum": names}}}
    )


def reference_schema(references: Iterable[str]) -> JsonSchema:
    """Return the schema of one of some known references."""
    return {"enum": list[JsonValue](references)}


def output_types(tool: Tool) -> frozenset[str]:
    """Return the types of what can be read from a tool's answer; all scalars where it declares nothing."""
    declared = leaves_of_schema(tool.output_schema) if tool.output_schema else []
    found = frozenset[str]().union(*(leaf.types for leaf in declared)) - {"null"}
    return found if len(declared) > 1 else found | _SCALARS | {"array"}


def arguments_schema(tool: Tool, readable: frozenset[str], references: Sequence[str] = ()) -> JsonSchema:
    """Return the schema of a tool's arguments as they may be written in a plan.

    Args:
        tool: whose arguments.
        readable: types that outputs of earlier nodes, or inputs, have.
        references: those that may be written; empty: any of the form `$n1.field`.
    """
    schema = closed_part(tool.input_schema, tool.input_schema)
    any_reference: JsonSchema = {"type": "string", "pattern": _REFERENCE}
    reference = reference_schema(references) if references else any_reference
    properties = schema.get("properties")
    named = cast("JsonSchema", properties) if isinstance(properties, dict) else {}
    required = schema.get("required")
    return {
        "type": "object",
        "properties": {
            name: _value(part, readable, reference, 0) if isinstance(part, dict) else {}
            for name, part in named.items()
        },
        "required": [n for n in (required if isinstance(required, list) else []) if n in named],
        "additionalProperties": False,
    }


def _node(label: str, tool: Tool, readable: frozenset[str]) -> JsonSchema:
    # The discriminating name comes first: some decoders refuse alternatives that begin alike.
    return _closed(
        {
            "tool": {"const": label},
            "id": {"type": "string", "pattern": "^n[1-9]$"},
            "arguments": arguments_schema(tool, readable),
        }
    )


def _closed(properties: JsonSchema) -> JsonSchema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _value(schema: JsonSchema, readable: frozenset[str], reference: JsonSchema, depth: int) -> JsonSchema:
    """Return what may be written for a value: it, a scalar where a list of it is wanted, a reference."""
    plain = _plain(schema, readable, reference, depth)
    admitted = types(schema) - {"null"}
    if plain.get("type") == "string" and "enum" not in plain:
        return plain  # any text, so a reference too
    options = [plain]
    items = plain.get("items")
    if plain.get("type") == "array" and isinstance(items, dict) and items.get("type") in _SCALARS:
        options.append(items)
    fits = admitted & readable or ("number" in admitted and "integer" in readable)
    if fits or len(admitted) > 1:
        options.append(reference)
    unique = [option for place, option in enumerate(options) if option not in options[:place]]
    return {"anyOf": list[JsonValue](unique)} if len(unique) > 1 else plain


def _plain(schema: JsonSchema, readable: frozenset[str], reference: JsonSchema, depth: int) -> JsonSchema:
    """Return a schema without what decoders ignore or refuse."""
    values = schema.get("enum")
    if isinstance(values, list) and 0 < len(values) <= _MOST_VALUES:
        return {"enum": [value for value in values if value is not None]}
    if "const" in schema:
        return {"const": schema["const"]}
    admitted = sorted(types(schema) - {"null"})
    if len(admitted) != 1 or depth >= _DEPTH:
        kinds = [kind for kind in admitted if kind in _SCALARS]
        return {"type": list[JsonValue](kinds)} if kinds and len(kinds) == len(admitted) else {}
    match admitted[0]:
        case "array":
            items = schema.get("items")
            inner = _value(items, readable, reference, depth + 1) if isinstance(items, dict) else {}
            return {"type": "array", "items": inner} if inner else {"type": "array"}
        case "object":
            return _object(schema, readable, reference, depth)
        case kind:
            return {"type": kind}


def _object(schema: JsonSchema, readable: frozenset[str], reference: JsonSchema, depth: int) -> JsonSchema:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return {"type": "object"}
    parts = {
        name: _value(part, readable, reference, depth + 1) if isinstance(part, dict) else {}
        for name, part in properties.items()
    }
    required = schema.get("required")
    needed: list[JsonValue] = [n for n in (required if isinstance(required, list) else []) if n in parts]
    closed: JsonSchema = {"type": "object", "properties": cast("JsonSchema", parts), "required": needed}
    return {**closed, "additionalProperties": False}

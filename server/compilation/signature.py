"""The typed border of a compiled skill: inputs from what they feed, outputs from what was seen.

Constraints are copied from the upstream schemas an input feeds; where two slots disagree, only
what both allow is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from catalog.schema import json_type, lookup, portable_schema
from catalog.tools import JsonSchema, Snapshot
from server.planning.leaves import closed_part
from server.planning.view import argument_schema
from skills_store.skill import Signature
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found, Reference
from skills_store.workflow.scan import scan

__all__ = ["compile_signature"]

_HIGHEST = ("minimum", "exclusiveMinimum", "minLength", "minItems")
_LOWEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")
_WHERE_EQUAL = ("pattern", "format", "items")


def compile_signature(workflow: Workflow, outputs: Mapping[str, JsonValue], snapshot: Snapshot) -> Signature:
    """Return the portable signature of a workflow.

    Args:
        workflow: the skill's body.
        outputs: values its outputs had in the verified run; they type what no schema types.
        snapshot: the upstream tools.
    """
    return Signature(
        input_schema=portable_schema(_inputs(workflow, snapshot)),
        output_schema=portable_schema(_outputs(workflow, outputs, snapshot)),
    )


def _inputs(workflow: Workflow, snapshot: Snapshot) -> JsonSchema:
    declared = workflow.inputs.get("properties")
    named = declared if isinstance(declared, dict) else {}
    properties: dict[str, JsonValue] = {
        name: _input(workflow, name, part if isinstance(part, dict) else {}, snapshot)
        for name, part in named.items()
    }
    required = workflow.inputs.get("required")
    return {
        "type": "object",
        "properties": properties,
        "required": required if isinstance(required, list) else [],
        "additionalProperties": False,
    }


def _input(workflow: Workflow, name: str, declared: JsonSchema, snapshot: Snapshot) -> JsonSchema:
    schema = dict(declared)
    slots = list(_fed_slots(workflow, name, snapshot))
    for slot in slots:
        for key in ("type", "description"):
            if key not in schema and key in slot and (key != "type" or "anyOf" not in schema):
                schema[key] = slot[key]
    if schema.get("type") == "number" and any(slot.get("type") == "integer" for slot in slots):
        schema["type"] = "integer"  # a number seen once is typed widely; what takes it knows better
    narrowed = {**schema, **_narrowed([declared, *slots])}
    narrowed.setdefault("description", name.replace("_", " "))
    return narrowed


def _narrowed(schemas: Sequence[JsonSchema]) -> JsonSchema:
    """Return the constraints under which a value fits all of these schemas."""
    kept: JsonSchema = {}
    enums = [schema["enum"] for schema in schemas if isinstance(schema.get("enum"), list)]
    options = _in_all(cast("list[list[JsonValue]]", enums))
    if options:
        kept["enum"] = options
    for keys, strictest in ((_HIGHEST, max), (_LOWEST, min)):
        for key in keys:
            bounds = [bound for schema in schemas if _is_number(bound := schema.get(key))]
            if bounds:
                kept[key] = strictest(cast("list[float]", bounds))
    for key in _WHERE_EQUAL:
        said = [schema[key] for schema in schemas if key in schema]
        if said and all(one == said[0] for one in said):
            kept[key] = said[0]
    return kept


def _in_all(enums: Sequence[list[JsonValue]]) -> list[JsonValue]:
    first = enums[0] if enums else []
    return [option for option in first if all(option in other for other in enums)]


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fed_slots(workflow: Workflow, name: str, snapshot: Snapshot) -> Iterator[JsonSchema]:
    """Yield the schemas of the arguments that an input surely is given to as a whole."""
    whole = Reference("inputs", name)
    for node in workflow.nodes:
        tool = snapshot.get(node.tool) if node.tool and node.when is None else None
        for argument, value in node.arguments.items():
            if value == str(whole) and tool is not None:
                yield argument_schema(tool, argument)


def _outputs(workflow: Workflow, outputs: Mapping[str, JsonValue], snapshot: Snapshot) -> JsonSchema:
    properties: dict[str, JsonValue] = {
        name: _output(workflow, name, value, outputs.get(name), snapshot)
        for name, value in workflow.outputs.items()
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def _output(
    workflow: Workflow, name: str, value: JsonValue, seen: JsonValue, snapshot: Snapshot
) -> JsonSchema:
    found = [item for item in scan(value) if isinstance(item, Found)]
    whole = found[0].reference if len(found) == 1 and found[0].whole and found[0].pointer == "" else None
    node = workflow.node(whole.name) if whole and whole.root == "nodes" else None
    declared = _declared(node, whole, snapshot) if node and whole else None
    schema = declared or _seen_schema(seen)
    source = f", read from {node.target}" if node else ""
    schema.setdefault("description", f"{name.replace('_', ' ')}{source}")
    return schema


def _declared(node: Node, reference: Reference, snapshot: Snapshot) -> JsonSchema | None:
    """Return what the tool declares at the pointer, when it types it and the node runs surely once."""
    tool = snapshot.get(node.tool) if node.tool else None
    if tool is None or node.for_each is not None or node.when is not None:
        return None
    found = lookup(tool.output_schema, reference.pointer)
    if not found.found or not found.schema or "type" not in found.schema:
        return None
    return dict(closed_part(tool.output_schema or {}, found.schema))


def _seen_schema(value: JsonValue) -> JsonSchema:
    kind = json_type(value)
    match value:
        case None:
            return {}
        case int() if not isinstance(value, bool):
            return {"type": "number"}
        case list():
            return {"type": "array", "items": _items(value)}
        case _:
            return {"type": kind}


def _items(values: list[JsonValue]) -> JsonSchema:
    kinds = {json_type(value) for value in values}
    if len(kinds) == 1 and kinds <= {"string", "object", "boolean"}:
        return {"type": kinds.pop()}
    return {"type": "number"} if kinds and kinds <= {"number", "integer"} else {}

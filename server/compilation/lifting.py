"""Lifting: literals that a task and a run share become typed inputs, equal ones one input.

Paper: FlowEvo (democase_sql adapter; facts §3.8 step 2). Differs: where the workflow declares
inputs, those are the signature; what else the task says stays frozen, and is named as frozen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.schema import json_type
from catalog.tools import JsonSchema, Snapshot
from catalog.vocabulary import STOP_WORDS
from server.planning.literals import TaskLiteralKind, mentions, task_literals
from server.planning.view import argument_schema
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import is_selector, pointer_parts

__all__ = ["Lifted", "Place", "declared_inputs", "lift_literals", "literal_places"]

_VALUES: frozenset[TaskLiteralKind] = frozenset(
    {"quoted", "url", "email", "date", "time", "zone", "path", "number"}
)
"""Kinds of task literals that are values whatever the sentence is; a name or a word may be prose."""


@dataclass(frozen=True, slots=True)
class Place:
    """A scalar literal in a node's arguments. `argument` is the top-level name it stands under."""

    node: str
    argument: str
    pointer: str
    value: JsonValue


@dataclass(frozen=True, slots=True)
class Lifted:
    """A workflow whose shared literals are inputs now, and the values that reproduce the run."""

    workflow: Workflow
    inputs: dict[str, JsonValue]
    uncarried: tuple[str, ...] = ()
    """Values the task states that no input carries, as the task writes them."""


def declared_inputs(workflow: Workflow) -> tuple[str, ...]:
    """Return the names of the inputs a workflow declares."""
    properties = workflow.inputs.get("properties")
    return tuple(properties) if isinstance(properties, dict) else ()


def lift_literals(
    workflow: Workflow, task: str, inputs: Mapping[str, JsonValue], snapshot: Snapshot
) -> Lifted:
    """Return the workflow with the task's literals as inputs, or as it is where it declares its own.

    Args:
        workflow: what ran.
        task: the task in a person's words, empty when there is none.
        inputs: values the run was given.
        snapshot: tools, for the schemas that inputs take over.
    """
    if declared_inputs(workflow):
        return Lifted(workflow, dict(inputs))
    shared = [place for place in literal_places(workflow) if _is_shared(place.value, task)]
    lifted = _with_inputs(workflow, shared, snapshot) if shared else Lifted(workflow, {})
    uncarried = [
        literal.text
        for literal in task_literals(task)
        if literal.kind in _VALUES and not _is_carried(literal.value, lifted.inputs)
    ]
    return Lifted(lifted.workflow, lifted.inputs, tuple(dict.fromkeys(uncarried)))


def _is_shared(value: JsonValue, task: str) -> bool:
    """Return whether a task states a value; a word that every sentence has says nothing."""
    return mentions(task, value) and str(value).strip().lower() not in STOP_WORDS


def _is_carried(value: JsonValue, inputs: Mapping[str, JsonValue]) -> bool:
    return any(_key(value) == _key(given) for given in inputs.values())


def _key(value: JsonValue) -> tuple[str, JsonValue]:
    """Return what makes two literals one: type and value, text whatever its case."""
    match value:
        case bool():
            return "boolean", value
        case int() | float():
            return "number", float(value)
        case str():
            return "string", value.strip().lower()
        case _:
            return json_type(value), str(value)


def literal_places(workflow: Workflow) -> Iterator[Place]:
    """Yield every scalar literal inside arguments, in document order."""
    for node in workflow.nodes:
        for argument, value in node.arguments.items():
            yield from _places(node, argument, value, json_pointer(argument))


def _places(node: Node, argument: str, value: JsonValue, pointer: str) -> Iterator[Place]:
    match value:
        case str() if value.startswith("$") or "{$" in value:
            return
        case dict() if is_selector(value) or set(value) == {"$literal"}:
            return
        case dict():
            for key, item in value.items():
                yield from _places(node, argument, item, pointer + json_pointer(key))
        case list():
            for index, item in enumerate(value):
                yield from _places(node, argument, item, f"{pointer}/{index}")
        case _:
            yield Place(node.id, argument, pointer, value)


def _with_inputs(workflow: Workflow, shared: list[Place], snapshot: Snapshot) -> Lifted:
    names: dict[tuple[str, JsonValue], str] = {}
    values: dict[str, JsonValue] = {}
    properties: dict[str, JsonValue] = {}
    for place in shared:
        key = _key(place.value)
        if key not in names:
            names[key] = _input_name(place, values)
            values[names[key]] = place.value
            properties[names[key]] = _schema_of(workflow, place, snapshot)
        workflow = _replaced(workflow, place, f"$inputs.{names[key]}")
    schema: JsonSchema = {
        "type": "object",
        "properties": properties,
        "required": list(values),
        "additionalProperties": False,
    }
    return Lifted(workflow.model_copy(update={"inputs": schema}), values)


def _input_name(place: Place, taken: Mapping[str, JsonValue]) -> str:
    stem = re.sub(r"\W+", "_", place.argument, flags=re.ASCII).strip("_").lower() or "value"
    stem = stem if re.match(r"[a-z_]", stem) else f"in_{stem}"
    options = [stem, f"{place.node}_{stem}", *(f"{stem}_{i}" for i in range(2, 100))]
    return next(name for name in options if name not in taken)


def _schema_of(workflow: Workflow, place: Place, snapshot: Snapshot) -> JsonSchema:
    node = workflow.node(place.node)
    tool = snapshot.get(node.tool) if node and node.tool else None
    schema = argument_schema(tool, place.argument) if place.pointer.count("/") == 1 else {}
    kept = {key: value for key, value in schema.items() if key not in ("default", "title", "examples")}
    return kept or {"type": json_type(place.value)}


def _replaced(workflow: Workflow, place: Place, reference: str) -> Workflow:
    node = workflow.node(place.node)
    if node is None:
        raise KeyError(place.node)
    arguments = _put(node.arguments, pointer_parts(place.pointer), reference)
    return workflow.replacing(node.model_copy(update={"arguments": arguments}))


def _put(value: JsonValue, parts: list[str], new: JsonValue) -> JsonValue:
    if not parts:
        return new
    if isinstance(value, dict):
        return {key: _put(item, parts[1:], new) if key == parts[0] else item for key, item in value.items()}
    if isinstance(value, list):
        return [_put(v, parts[1:], new) if str(i) == parts[0] else v for i, v in enumerate(value)]
    raise KeyError(parts[0])

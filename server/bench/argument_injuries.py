"""Injuries to arguments: missing, misnamed, of the wrong type, or outside of a closed set."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import JsonValue

from server.bench.injury import Injury, Scene, with_argument
from server.bench.mistakes import misnamed_arguments, wrong_choices
from skills_store.workflow.model import Node
from skills_store.workflow.references import is_selector

__all__ = ["misnamed", "missing", "wrong_types", "wrong_values"]


def missing(scene: Scene) -> Iterator[Injury]:
    """Yield workflows with one required argument left out."""
    for node in scene.workflow.nodes:
        for argument in scene.required(node):
            if argument in node.arguments:
                kept = {key: value for key, value in node.arguments.items() if key != argument}
                changed = node.model_copy(update={"arguments": kept})
                detail = f"{node.id} lacks {argument}"
                yield Injury("left_out", node.id, detail, scene.workflow.replacing(changed))


def misnamed(scene: Scene) -> Iterator[Injury]:
    """Yield workflows with one argument under a name that its tool does not have."""
    for node in scene.workflow.nodes:
        known = scene.argument_names(node)
        for argument in node.arguments:
            if argument not in known:
                continue
            for wrong in misnamed_arguments(argument):
                if wrong in known or wrong in node.arguments:
                    continue
                renamed = {wrong if key == argument else key: v for key, v in node.arguments.items()}
                changed = node.model_copy(update={"arguments": renamed})
                detail = f"{node.id} calls {argument} {wrong}"
                yield Injury("renamed", node.id, detail, scene.workflow.replacing(changed))


def wrong_types(scene: Scene) -> Iterator[Injury]:
    """Yield workflows with one argument of another JSON type than its tool asks for."""
    for node in scene.workflow.nodes:
        for argument, value in node.arguments.items():
            if is_selector(value):
                continue
            for variant, wrong in _retyped(scene, node, argument):
                detail = f"{node.id} gives {argument} as {json.dumps(wrong, ensure_ascii=False)}"
                yield Injury(variant, node.id, detail, with_argument(scene, node, argument, wrong))


def _retyped(scene: Scene, node: Node, argument: str) -> Iterator[tuple[str, JsonValue]]:
    value = node.arguments[argument]
    wanted = scene.argument_schema(node, argument).get("type")
    is_reference = isinstance(value, str) and value.startswith("$") and not value.startswith("$$")
    if wanted in ("number", "integer"):
        unit = node.arguments.get("from_unit", "units")
        if is_reference:
            yield "text_with_unit", f"{{{value}}} {unit}"
        elif isinstance(value, int | float):
            yield "text_with_unit", f"{value} {unit}"
    if wanted in ("number", "integer", "string", "boolean"):
        yield "wrapped", [value]
        yield "object_for_scalar", {"value": value}
        if is_reference and isinstance(value, str) and "#" in value and value.startswith("$nodes."):
            yield "object_for_scalar", value.partition("#")[0]
    if wanted == "array":
        if is_reference:
            yield "list_as_text", f"{{{value}}}"
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            yield "first_of_list", value[0] if value else ""


def wrong_values(scene: Scene) -> Iterator[Injury]:
    """Yield workflows with one value outside of the closed set that its tool knows."""
    for node in scene.workflow.nodes:
        for argument, value in node.arguments.items():
            if not isinstance(value, str) or value.startswith("$"):
                continue
            options = scene.argument_schema(node, argument).get("enum")
            listed = tuple(str(option) for option in options) if isinstance(options, list) else ()
            for wrong in wrong_choices(argument, value, listed):
                detail = f"{node.id} gives {argument} as {wrong!r} instead of {value!r}"
                yield Injury("not_in_set", node.id, detail, with_argument(scene, node, argument, wrong))

"""The literals of a workflow: where they stand, and putting something else there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from skills_store.workflow.edits.places import set_place
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import is_selector

__all__ = ["Place", "list_places", "literal_places", "with_argument"]


@dataclass(frozen=True, slots=True)
class Place:
    """A literal in a node's arguments. `argument` is the top-level name it stands under."""

    node: str
    argument: str
    pointer: str
    value: JsonValue


def literal_places(workflow: Workflow) -> Iterator[Place]:
    """Yield every scalar literal inside arguments, in document order.

    What a selector is given beside its context (`with`) is looked into; quoted literals are not.
    """
    for node in workflow.nodes:
        for argument, value in node.arguments.items():
            yield from _scalars(node, argument, value, json_pointer(argument))


def list_places(workflow: Workflow) -> Iterator[Place]:
    """Yield every list of two or more scalar literals inside arguments, in document order."""
    for node in workflow.nodes:
        for argument, value in node.arguments.items():
            yield from _lists(node, argument, value, json_pointer(argument))


def with_argument(workflow: Workflow, place: Place, new: JsonValue) -> Workflow:
    """Return the workflow with something else at a place.

    Raises:
        KeyError: it has no such node.
    """
    node = workflow.node(place.node)
    if node is None:
        raise KeyError(place.node)
    return workflow.replacing(
        node.model_copy(update={"arguments": set_place(node.arguments, place.pointer, new)})
    )


def _scalars(node: Node, argument: str, value: JsonValue, pointer: str) -> Iterator[Place]:
    match value:
        case str() if value.startswith("$") or "{$" in value:
            return
        case dict() if is_selector(value):
            if "with" in value:
                yield from _scalars(node, argument, value["with"], f"{pointer}/with")
        case dict() if set(value) == {"$literal"}:
            return
        case dict():
            for key, item in value.items():
                yield from _scalars(node, argument, item, pointer + json_pointer(key))
        case list():
            for index, item in enumerate(value):
                yield from _scalars(node, argument, item, f"{pointer}/{index}")
        case _:
            yield Place(node.id, argument, pointer, value)


def _lists(node: Node, argument: str, value: JsonValue, pointer: str) -> Iterator[Place]:
    match value:
        case dict() if is_selector(value) or set(value) == {"$literal"}:
            return
        case dict():
            for key, item in value.items():
                yield from _lists(node, argument, item, pointer + json_pointer(key))
        case list() if len(value) > 1 and all(_is_plain(item) for item in value):
            yield Place(node.id, argument, pointer, value)
        case list():
            for index, item in enumerate(value):
                yield from _lists(node, argument, item, f"{pointer}/{index}")
        case _:
            return


def _is_plain(value: JsonValue) -> bool:
    if isinstance(value, str):
        return not value.startswith("$") and "{$" not in value
    return not isinstance(value, dict | list)

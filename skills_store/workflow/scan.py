"""Every reference of a value, and every part of it that cannot be read.

`references.find_references` stops at the first unreadable part; a check and a graph go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pydantic import JsonValue

from skills_store.workflow.model import Node, json_pointer
from skills_store.workflow.references import ExpressionError, Found, find_references, is_selector

__all__ = ["Unreadable", "node_references", "node_values", "scan"]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of a value that cannot be read, and why."""

    pointer: str
    message: str


def scan(value: JsonValue, pointer: str = "") -> Iterator[Found | Unreadable]:
    """Yield every reference of a value and every unreadable part, in the order of the document."""
    match value:
        case str():
            yield from _scan_text(value, pointer)
        case dict() if set(value) == {"$literal"}:
            return
        case dict() if is_selector(value):
            for key in ("context", "with"):
                for found in scan(value.get(key), f"{pointer}/{key}"):
                    yield found if isinstance(found, Unreadable) else replace(found, whole=False)
        case dict():
            for key, item in value.items():
                yield from scan(item, pointer + json_pointer(key))
        case list():
            for index, item in enumerate(value):
                yield from scan(item, f"{pointer}/{index}")
        case _:
            return


def _scan_text(text: str, pointer: str) -> Iterator[Found | Unreadable]:
    if "$" not in text:
        return
    try:
        yield from list(find_references(text, pointer))
    except ExpressionError as error:
        yield Unreadable(pointer, str(error))


def node_values(node: Node) -> Iterator[tuple[str, JsonValue]]:
    """Yield the fields of a node that may hold references, with their names, in document order."""
    yield "arguments", node.arguments
    yield "for_each", node.for_each
    yield "when", node.when


def node_references(node: Node) -> Iterator[Found]:
    """Yield the readable references of a node; pointers start at the node."""
    for name, value in node_values(node):
        for found in scan(value, f"/{name}"):
            if isinstance(found, Found):
                yield found

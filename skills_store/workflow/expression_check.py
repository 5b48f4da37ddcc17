"""References, templates, selectors and assertions of a document: can they be read, do they read something?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from skills_store.workflow.assertions import assertion_problem, named_nodes
from skills_store.workflow.faults import DanglingReference, Fault, Malformed
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import Found, Reference, is_selector
from skills_store.workflow.scan import Unreadable, scan
from skills_store.workflow.selectors import selector_problem
from skills_store.workflow.sources import Sources

__all__ = ["Reader", "check_assertions", "check_expressions"]


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: a node, or None for the workflow's outputs, and whether `$item` may stand there."""

    node: Node | None = None
    sees_item: bool = True

    @property
    def node_id(self) -> str | None:
        """Id of the node, None for an output."""
        return self.node.id if self.node else None


def check_expressions(value: JsonValue, pointer: str, reader: Reader, sources: Sources) -> list[Fault]:
    """Return the faults of every expression in a value, in document order."""
    faults: list[Fault] = []
    for part in scan(value, pointer):
        if isinstance(part, Unreadable):
            faults.append(Malformed(message=part.message, pointer=part.pointer, node=reader.node_id))
        elif (fault := _dangling(part, reader, sources)) is not None:
            faults.append(fault)
    faults.extend(
        Malformed(message=message, pointer=place, node=reader.node_id)
        for place, message in _selector_problems(value, pointer)
    )
    return faults


def _dangling(found: Found, reader: Reader, sources: Sources) -> Fault | None:
    reference: Reference = found.reference
    hidden_item = reference.root == "item" and not reader.sees_item
    missing = sources.missing(reference, None if hidden_item else reader.node)
    if missing is None:
        return None
    listed = f"; there: {', '.join(missing.available[:20])}" if missing.available else ""
    return DanglingReference(
        message=f"{reference}: {missing.message}{listed}",
        node=reader.node_id,
        pointer=found.pointer,
        reference=str(reference),
        available=missing.available,
    )


def _selector_problems(value: JsonValue, pointer: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict() if set(value) == {"$literal"}:
            return
        case dict() if is_selector(value):
            yield from _selector_problem(value, pointer)
            yield from _selector_problems(value["context"], f"{pointer}/context")
            yield from _selector_problems(value.get("with"), f"{pointer}/with")
        case dict():
            if set(value) - {"with"} == {"context", "selector", "type"}:
                yield f"{pointer}/type", f"a selector of type {value['type']!r}; only 'jmespath' is known"
            for key, item in value.items():
                yield from _selector_problems(item, pointer + json_pointer(key))
        case list():
            for index, item in enumerate(value):
                yield from _selector_problems(item, f"{pointer}/{index}")
        case _:
            return


def _selector_problem(value: dict[str, JsonValue], pointer: str) -> Iterator[tuple[str, str]]:
    expression, named = value["selector"], value.get("with")
    if not isinstance(expression, str):
        yield f"{pointer}/selector", "'selector' must be a jmespath expression"
    elif (problem := selector_problem(expression)) is not None:
        yield f"{pointer}/selector", problem
    if named is not None and not isinstance(named, dict) and not _is_reference(named):
        yield f"{pointer}/with", "'with' must be an object of named values"


def _is_reference(value: JsonValue) -> bool:
    return isinstance(value, str) and value.startswith("$")


def check_assertions(
    expressions: tuple[str, ...], pointer: str, node: Node | None, workflow: Workflow
) -> list[Fault]:
    """Return the faults of assertions: those that cannot be read, and nodes they name that are not there."""
    faults: list[Fault] = []
    node_id = node.id if node else None
    for index, expression in enumerate(expressions):
        place = f"{pointer}/{index}"
        if (problem := assertion_problem(expression)) is not None:
            faults.append(Malformed(message=problem, pointer=place, node=node_id))
        unknown = (name for name in sorted(named_nodes(expression)) if workflow.node(name) is None)
        faults.extend(_unknown_node(name, place, node_id, workflow) for name in unknown)
    return faults


def _unknown_node(name: str, pointer: str, node_id: str | None, workflow: Workflow) -> Fault:
    available = tuple(node.id for node in workflow.nodes)
    message = f"the assertion names node {name!r}, which is not there"
    return DanglingReference(
        message=message, pointer=pointer, node=node_id, reference=f"nodes.{name}", available=available
    )

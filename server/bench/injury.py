"""One injury: a small change that should break a workflow, and the place it was done at.

The kinds of injury are in `tool_injuries`, `argument_injuries` and `flow_injuries`; choosing among
them is `server.bench.damage`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.tools import JsonSchema, Snapshot, Tool
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Reference, find_references, map_references

__all__ = ["Injury", "Scene", "changed_references", "node_references", "with_argument"]


@dataclass(frozen=True, slots=True)
class Injury:
    """A workflow with one thing wrong more than before."""

    variant: str
    """In which of the ways of its kind."""
    node: str | None
    """Id of the node that was hurt; None: the workflow's outputs."""
    detail: str
    """What was done, for a person who reads the benchmark's cases."""
    workflow: Workflow

    @property
    def place(self) -> tuple[str, str | None, str]:
        """What tells it from every other injury of its kind to the same workflow."""
        return self.variant, self.node, self.detail


@dataclass(frozen=True, slots=True)
class Scene:
    """What an injury may be done to."""

    workflow: Workflow
    snapshot: Snapshot

    def tool(self, node: Node) -> Tool | None:
        """Return the tool a node calls, None when it calls a skill or an unknown tool."""
        return None if node.tool is None else self.snapshot.get(node.tool)

    def argument_schema(self, node: Node, argument: str) -> JsonSchema:
        """Return the schema of an argument, empty when the tool says nothing."""
        tool = self.tool(node)
        properties = tool.input_schema.get("properties") if tool else None
        found = properties.get(argument) if isinstance(properties, dict) else None
        return found if isinstance(found, dict) else {}

    def argument_names(self, node: Node) -> tuple[str, ...]:
        """Return the names of all arguments of a node's tool."""
        tool = self.tool(node)
        properties = tool.input_schema.get("properties") if tool else None
        return tuple(properties) if isinstance(properties, dict) else ()

    def required(self, node: Node) -> tuple[str, ...]:
        """Return the names of the arguments that a node's tool must be given."""
        tool = self.tool(node)
        names = tool.input_schema.get("required") if tool else None
        return tuple(str(name) for name in names) if isinstance(names, list) else ()


def with_argument(scene: Scene, node: Node, argument: str, value: JsonValue) -> Workflow:
    """Return the workflow with one argument of a node replaced."""
    changed = node.model_copy(update={"arguments": {**node.arguments, argument: value}})
    return scene.workflow.replacing(changed)


def node_references(node: Node) -> list[Reference]:
    """Return the distinct references a node reads, in the order they stand."""
    found = [f.reference for value in _values(node) for f in find_references(value)]
    return list(dict.fromkeys(found))


def changed_references(node: Node, change: Callable[[Reference], Reference]) -> Node:
    """Return the node with every reference it reads replaced by `change(reference)`."""
    return node.model_copy(
        update={
            "arguments": {key: map_references(value, change) for key, value in node.arguments.items()},
            "for_each": map_references(node.for_each, change),
            "when": map_references(node.when, change),
        }
    )


def _values(node: Node) -> list[JsonValue]:
    return [node.for_each, node.when, dict(node.arguments)]

"""What is known, before a run, of the values that references will read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.errors import SchemaRejected
from catalog.schema import Lookup, lookup
from catalog.tools import JsonSchema, Snapshot
from skills_store.skill import Signature
from skills_store.workflow.model import Node, SkillRef, Workflow, json_pointer
from skills_store.workflow.references import ExpressionError, Reference, parse_reference

__all__ = ["Missing", "Sources"]

_UNKNOWN = Lookup(found=False, schema=None, available=(), certain=False)


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a reference reads nothing, and what is there instead."""

    message: str
    available: tuple[str, ...] = ()


class Sources:
    """The declared schemas behind the references of one workflow.

    Args:
        workflow: whose references are asked about.
        snapshot: the tools that its nodes call.
        skills: signatures by `name@version`, or by name.
    """

    def __init__(self, workflow: Workflow, snapshot: Snapshot, skills: Mapping[str, Signature]) -> None:
        self._workflow = workflow
        self._snapshot = snapshot
        self._skills = skills
        self._outputs = {node.id: self._output_schema(node) for node in workflow.nodes}

    def skill(self, skill: SkillRef) -> Signature | None:
        """Return the signature of a skill, None when it is not known."""
        return self._skills.get(f"{skill.name}@{skill.version}") or self._skills.get(skill.name)

    def input_schema(self, node: Node) -> JsonSchema | None:
        """Return the schema of a node's arguments, None when its target is not known."""
        if node.skill is not None:
            signature = self.skill(node.skill)
            return signature.input_schema if signature else None
        if node.code is not None:
            return node.code.takes
        tool = self._snapshot.get(node.tool) if node.tool else None
        return tool.input_schema if tool else None

    def schema(self, reference: Reference, node: Node | None) -> JsonSchema | None:
        """Return what a reference of a node (None: of an output) reads; None when nothing declares it."""
        return self._looked_up(reference, node).schema

    def missing(self, reference: Reference, node: Node | None) -> Missing | None:
        """Return why a reference certainly reads nothing, or None when it may read something."""
        return self._missing_root(reference, node) or self._missing_pointer(reference, node)

    def _missing_root(self, reference: Reference, node: Node | None) -> Missing | None:
        match reference.root:
            case "inputs":
                if reference.name in (declared := _properties(self._workflow.inputs)):
                    return None
                return Missing(f"no input {reference.name!r} is declared", tuple(sorted(declared)))
            case "item":
                if node is not None and node.for_each is not None:
                    return None
                return Missing("$item stands outside of a for_each node")
            case "nodes":
                return self._missing_node(reference.name, node)

    def _missing_node(self, node_id: str, node: Node | None) -> Missing | None:
        own_id = node.id if node else None
        others = tuple(n.id for n in self._workflow.nodes if n.id != own_id)
        if node_id == own_id:
            return Missing("a node cannot read its own output", others)
        read = self._workflow.node(node_id)
        if read is None:
            return Missing(f"no node {node_id!r}", others)
        if read.when is False:
            return Missing(f"node {node_id!r} is never run: its 'when' is false", others)
        return None

    def _missing_pointer(self, reference: Reference, node: Node | None) -> Missing | None:
        if not reference.pointer:
            return None
        found = self._looked_up(reference, node)
        if found.found or not found.certain:
            return None
        mapped = self._workflow.node(reference.name) if reference.root == "nodes" else None
        hint = "; it is a list, one output per item" if mapped and mapped.for_each is not None else ""
        source = reference.at("")
        return Missing(f"{source} has nothing at {reference.pointer}{hint}", found.available)

    def _looked_up(self, reference: Reference, node: Node | None) -> Lookup:
        match reference.root:
            case "inputs":
                whole, place = self._workflow.inputs, json_pointer(reference.name) + reference.pointer
            case "nodes":
                whole, place = self._outputs.get(reference.name), reference.pointer
            case "item":
                whole, place = self._item_schema(node), reference.pointer
        return _look_up(whole, place)

    def _item_schema(self, node: Node | None) -> JsonSchema | None:
        if node is None or not isinstance(node.for_each, str):
            return None
        try:
            listed = parse_reference(node.for_each)
        except ExpressionError:
            return None
        if listed.root == "item":
            return None
        return self._looked_up(listed.at(f"{listed.pointer}/0"), node).schema

    def _output_schema(self, node: Node) -> JsonSchema | None:
        if node.skill is not None:
            signature = self.skill(node.skill)
            one = signature.output_schema if signature else None
        elif node.code is not None:
            one = node.code.gives
        else:
            tool = self._snapshot.get(node.tool) if node.tool else None
            one = tool.output_schema if tool else None
        if node.for_each is None:
            return one
        return {"type": "array"} if one is None else _array_of(one)


def _look_up(schema: JsonSchema | None, pointer: str) -> Lookup:
    try:
        return lookup(schema, pointer)
    except SchemaRejected:
        return _UNKNOWN  # a schema that cannot be read declares nothing; the catalog reports it
    except ValueError:
        return Lookup(found=False, schema=None, available=(), certain=True)  # no pointer reads that


def _array_of(items: JsonSchema) -> JsonSchema:
    """Return the schema of a list, its definitions moved to where their references look for them."""
    definitions: dict[str, JsonValue] = {key: items[key] for key in ("$defs", "definitions") if key in items}
    return {"type": "array", "items": items, **definitions}


def _properties(schema: JsonSchema) -> Mapping[str, JsonValue]:
    declared = schema.get("properties")
    return declared if isinstance(declared, dict) else {}

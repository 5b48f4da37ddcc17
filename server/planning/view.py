"""What a proposer of plans or edits may see: the workflow, the world, and no assertion.

`CONTRACTS`, Assertions: proposers never see the literals of an assertion, so a view carries
faults with `check_failed` stripped to the fact that the check failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import JsonValue

from catalog.effects import Effect, EffectTable, Reset
from catalog.labels import Label, LabelTable, labels_of
from catalog.search import ToolIndex
from catalog.tools import JsonSchema, Snapshot, Tool, ToolId
from server.planning.leaves import Leaf, closed_part, output_leaves
from server.planning.literals import TaskLiteral, clauses, task_literals, wording
from skills_store.workflow.faults import CheckFailed, Fault, Malformed, PostconditionFailed
from skills_store.workflow.graph import dependencies, descendants, unused
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found, pointer_parts
from skills_store.workflow.scan import node_references, scan

__all__ = ["View", "World", "answers_of", "argument_schema", "references_in"]


_HITS = 8


@dataclass(frozen=True)
class World:
    """What stays the same over one search: the task, its inputs, the tools there are."""

    task: str
    inputs: Mapping[str, JsonValue]
    snapshot: Snapshot
    effects: EffectTable
    index: ToolIndex
    labelled: LabelTable = field(default_factory=LabelTable)
    """What the operator says of labels and granted flows."""
    planned: bool = False
    """Whether what is repaired was planned for this task, so that a change nobody asked for may be left
    out and another plan is soon tried; False: somebody wrote it, and means what it does."""

    @cached_property
    def literals(self) -> list[TaskLiteral]:
        """Values the task mentions."""
        return task_literals(self.task)

    @cached_property
    def spoken_of(self) -> Mapping[ToolId, float]:
        """How much the task, or a clause of it, speaks of a tool, in (0, 1]; tools not found are left out."""
        found: dict[ToolId, float] = {}
        for said in (self.task, *clauses(self.task)):
            for hit in self.index.search(wording(said), limit=_HITS) if said else ():
                found[hit.tool.id] = max(hit.score, found.get(hit.tool.id, 0.0))
        return found

    @cached_property
    def labels(self) -> Mapping[ToolId, frozenset[Label]]:
        """What each known tool does with information."""
        return {tool.id: labels_of(tool, self.effect(tool.id), self.labelled) for tool in self.snapshot}

    def effect(self, tool: ToolId) -> Effect:
        """Return the effect class of a tool."""
        return self.effects.effect(tool)

    def may_repeat(self, tool: ToolId) -> bool:
        """Return whether a tool may be called at will: free, undone by a fresh process, or not there."""
        if tool not in self.snapshot:
            return True
        return self.effect(tool).is_free or self.effects.reset_mode(tool.server) is not Reset.NONE


@dataclass(frozen=True)
class View:
    """One workflow in its world, with what running it has shown so far."""

    world: World
    workflow: Workflow
    outputs: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Outputs of this workflow's nodes that were seen, by node id."""
    seen_tools: Mapping[ToolId, JsonValue] = field(default_factory=dict[ToolId, JsonValue])
    """An output that each tool was seen to give in any candidate."""
    faults: tuple[Fault, ...] = ()

    @cached_property
    def visible_faults(self) -> tuple[Fault, ...]:
        """The faults without what an assertion says."""
        return tuple(_blinded(fault) for fault in self.faults)

    def tool(self, node: Node) -> Tool | None:
        """Return the tool a node calls, None for unknown tools and skill nodes."""
        return self.world.snapshot.get(node.tool) if node.tool else None

    def leaves(self, node: Node) -> list[Leaf]:
        """Return what can be read from a node's output, seen before declared."""
        if node.id in self.outputs:
            return output_leaves(self.outputs[node.id], None, seen=True)
        tool = self.tool(node)
        if node.tool is not None and node.tool in self.seen_tools and node.for_each is None:
            return output_leaves(self.seen_tools[node.tool], None, seen=True)
        if node.for_each is not None:
            return [Leaf("", "", frozenset({"array"}))]
        return output_leaves(None, tool.output_schema if tool else None, seen=False)

    def readable_from(self, node_id: str) -> list[Node]:
        """Return the nodes a node may read without closing a cycle, nearest in the document first."""
        if self.workflow.node(node_id) is None:
            return list(self.workflow.nodes)
        later = descendants(self.workflow, node_id)
        position = self.workflow.index(node_id)
        free = [node for node in self.workflow.nodes if node.id != node_id and node.id not in later]
        return sorted(free, key=lambda node: abs(self.workflow.index(node.id) - position))

    @cached_property
    def used_inputs(self) -> frozenset[str]:
        """Names of inputs that some node or output reads."""
        return frozenset(f.reference.name for f in self.all_references if f.reference.root == "inputs")

    @cached_property
    def unused_inputs(self) -> tuple[str, ...]:
        """Given inputs that nothing reads: a strong sign of a lost link."""
        return tuple(name for name in self.world.inputs if name not in self.used_inputs)

    @cached_property
    def unused_nodes(self) -> tuple[Node, ...]:
        """Nodes whose output neither another needed node nor an output of the workflow reads."""
        read = {f.reference.name for f in self.all_references if f.reference.root == "nodes"}
        idle = unused(self.workflow) - read
        return tuple(node for node in self.workflow.nodes if node.id in idle)

    @cached_property
    def all_references(self) -> tuple[Found, ...]:
        """Every readable reference of the document."""
        found = [f for node in self.workflow.nodes for f in node_references(node)]
        return (*found, *references_in(self.workflow.outputs))

    @cached_property
    def edges(self) -> Mapping[str, frozenset[str]]:
        """Direct dependencies by node id."""
        return dependencies(self.workflow)

    def input_schema(self, name: str) -> JsonSchema:
        """Return the declared schema of an input, empty when undeclared."""
        properties = self.workflow.inputs.get("properties")
        schema = properties.get(name) if isinstance(properties, dict) else None
        return schema if isinstance(schema, dict) else {}


def argument_schema(tool: Tool | None, argument: str) -> JsonSchema:
    """Return the schema of one argument of a tool, empty when unknown."""
    properties = tool.input_schema.get("properties") if tool else None
    schema = properties.get(argument) if isinstance(properties, dict) else None
    return closed_part(tool.input_schema, schema) if tool and isinstance(schema, dict) else {}


def answers_of(node: Node, output: JsonValue) -> list[JsonValue]:
    """Return the answers of a node's tool in what the node gave: its first where it is mapped over a list."""
    if node.for_each is None:
        return [output]
    answers: list[JsonValue] = output if isinstance(output, list) else []
    first = next((answer for answer in answers if answer is not None), None)
    return [] if first is None else [first]


def references_in(value: JsonValue) -> list[Found]:
    """Return the references that can be read in a value; malformed parts yield none."""
    return [found for found in scan(value) if isinstance(found, Found)]


def _blinded(fault: Fault) -> Fault:
    if isinstance(fault, CheckFailed | PostconditionFailed):
        return fault.model_copy(update={"message": "the check does not hold", "found": None})
    if isinstance(fault, Malformed) and _is_check(fault.pointer):
        return fault.model_copy(update={"message": "the check cannot be read"})
    return fault


def _is_check(pointer: str) -> bool:
    """Return whether a pointer leads into an `expect`, of a node or of the workflow."""
    parts = pointer_parts(pointer)
    return parts[:1] == ["expect"] or (parts[:1] == ["nodes"] and parts[2:3] == ["expect"])

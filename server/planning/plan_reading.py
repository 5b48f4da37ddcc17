"""From what a model answered to a workflow: what models really send is accepted, the rest is faults.

A plan in a model's own words is small: `{"nodes": [{"tool", "id", "arguments"}], "outputs"}` with
references such as `$n1.field`. Accepted besides: fences and talk around it, other words for the
same keys, JSON inside strings, tools called `server.tool` or `server/tool`, references in our own
and in template spelling, `depends_on`. Never raises: a fault says what the next attempt must do
better. What a tool takes is checked afterwards, by `skills_store.workflow.check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue, ValidationError

from catalog.schema import json_type, types
from catalog.tools import JsonSchema, Tool
from server.planning.answer_json import NotJson, read_json
from server.planning.deterministic import inputs_schema, last_nodes, likely_output
from server.planning.plan_entries import (
    MOST_NODES,
    Ids,
    called_tool,
    entries_of,
    ids_of,
    said_arguments,
    said_order,
    said_outputs,
    unstringed,
)
from server.planning.plan_references import Spoken
from server.planning.slots import input_reference
from server.planning.spoken_tools import Vocabulary
from server.planning.view import View, argument_schema
from skills_store.workflow.faults import Fault, Malformed
from skills_store.workflow.graph import data_dependencies, descendants
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found, Reference
from skills_store.workflow.scan import scan

__all__ = ["PlanReading", "read_plan"]


@dataclass(frozen=True, slots=True)
class PlanReading:
    """What was understood. `workflow` is None when there was nothing to run; `faults` say what was wrong."""

    workflow: Workflow | None
    faults: tuple[Fault, ...] = ()


def read_plan(text: str, vocabulary: Vocabulary, *, is_cut_off: bool = False) -> PlanReading:
    """Return the workflow a model's answer means, and what of it could not be understood.

    Args:
        text: the answer as it came.
        vocabulary: the tools and outputs it may speak of.
        is_cut_off: whether the model stopped because it was out of tokens.
    """
    try:
        document = read_json(text)
    except NotJson as error:
        why = (
            "the answer was cut off before its JSON ended: answer with fewer steps"
            if is_cut_off
            else str(error)
        )
        return PlanReading(None, (Malformed(message=why),))
    return _Draft(vocabulary).read(document)


@dataclass
class _Draft:
    """One reading under way."""

    vocabulary: Vocabulary
    faults: list[Fault] = field(default_factory=list[Fault])

    def read(self, document: JsonValue) -> PlanReading:
        entries: list[dict[str, JsonValue]] = []
        for entry in entries_of(document):
            if isinstance(entry, dict):
                entries.append(entry)
            else:
                message = f"a node is an object, this is a {json_type(entry)}"
                self.faults.append(Malformed(message=message))
        if not entries:
            message = (
                'the answer holds no plan: expected {"nodes": [{"tool", "id", "arguments"}], "outputs": {}}'
            )
            return PlanReading(None, (*self.faults, Malformed(message=message)))
        if len(entries) > MOST_NODES:
            message = f"the plan has {len(entries)} nodes, at most {MOST_NODES} are allowed"
            return PlanReading(None, (*self.faults, Malformed(message=message)))
        ids = ids_of(entries)
        spoken = Spoken(ids.said, frozenset(self.vocabulary.world.inputs))
        nodes = [self._node(entry, ids.own[place], spoken) for place, entry in enumerate(entries)]
        kept = tuple(node for node in nodes if node is not None)
        if not kept:
            return PlanReading(None, tuple(self.faults))
        workflow = Workflow(name="plan", inputs=inputs_schema(self.vocabulary.world), nodes=kept, outputs={})
        workflow = _ordered(workflow, entries, ids)
        outputs = self._outputs(document, spoken, workflow)
        return PlanReading(workflow.model_copy(update={"outputs": outputs}), tuple(self.faults))

    def _node(self, entry: dict[str, JsonValue], node_id: str, spoken: Spoken) -> Node | None:
        said = called_tool(entry)
        if not said:
            message = f"node {node_id!r} names no tool: give it under 'tool'"
            self.faults.append(Malformed(message=message, node=node_id))
            return None
        tool_id = self.vocabulary.tool(said)
        tool = self.vocabulary.world.snapshot.get(tool_id)
        arguments = self._arguments(entry, node_id, tool, spoken)
        mapped = (
            spoken.meant(entry.get("for_each")) if isinstance(entry.get("for_each"), str | dict) else None
        )
        try:
            return Node(id=node_id, tool=tool_id, arguments=arguments, for_each=mapped)
        except ValidationError as error:
            self.faults.append(
                Malformed(message=f"node {node_id!r}: {error.errors()[0]['msg']}", node=node_id)
            )
            return None

    def _arguments(
        self, entry: dict[str, JsonValue], node_id: str, tool: Tool | None, spoken: Spoken
    ) -> dict[str, JsonValue]:
        given = said_arguments(entry)
        if given is None:
            return {}
        if not isinstance(given, dict):
            message = f"the arguments of node {node_id!r} are an object by name, this is a {json_type(given)}"
            self.faults.append(Malformed(message=message, node=node_id))
            return {}
        required = tool.input_schema.get("required") if tool else None
        needed = required if isinstance(required, list) else []
        return {
            name: self._formed(self._lifted(spoken.meant(value)), argument_schema(tool, name))
            for name, value in given.items()
            if value is not None or name in needed
        }

    def _lifted(self, value: JsonValue) -> JsonValue:
        """Return the value with each part that exactly one input has replaced by a reference to it."""
        reference = input_reference(value, View(self.vocabulary.world, _NOTHING))
        if reference is not None:
            return reference
        match value:
            case list():
                return [self._lifted(item) for item in value]
            case dict():
                return {key: self._lifted(item) for key, item in value.items()}
            case _:
                return value

    def _formed(self, value: JsonValue, schema: JsonSchema) -> JsonValue:
        """Return the value as its schema wants it where only the form differs.

        That is a scalar for a list of one, an input that is a list for a list of it, JSON in a text.
        """
        admitted = (types(schema) if schema else frozenset[str]()) - {"null"}
        if isinstance(value, str) and admitted and admitted <= {"array", "object"}:
            value = unstringed(value)
        if admitted != frozenset({"array"}):
            return value
        items = schema.get("items")
        inner = types(items) if isinstance(items, dict) else frozenset[str]()
        if isinstance(value, list) and len(value) == 1 and inner and "array" not in inner:
            return value[0] if self._is_list(value[0]) else value
        is_scalar = isinstance(value, int | float) or (isinstance(value, str) and not value.startswith("$"))
        return [value] if is_scalar else value

    def _is_list(self, value: JsonValue) -> bool:
        """Return whether a value is a list, or a reference to an input that is one."""
        given = self.vocabulary.world.inputs
        is_input = isinstance(value, str) and value.startswith("$inputs.")
        return isinstance(given.get(str(value).removeprefix("$inputs.")) if is_input else value, list)

    def _outputs(self, document: JsonValue, spoken: Spoken, workflow: Workflow) -> dict[str, JsonValue]:
        """Return the wanted outputs, each as the plan says, else as is most likely meant."""
        said = said_outputs(document)
        read = {name: spoken.meant(value) for name, value in said.items()}
        fed = {name: value for name, value in read.items() if _reads_a_node(value, workflow)}
        wanted = self.vocabulary.wanted or tuple(fed)[:8] or ("result",)
        rest = [name for name in fed if name not in wanted]
        view = View(self.vocabulary.world, workflow.model_copy(update={"nodes": last_nodes(workflow)}))
        found: dict[str, JsonValue] = {}
        for name in wanted:
            if name in fed:
                found[name] = fed[name]
            elif len(wanted) == 1 and len(rest) == 1:
                found[name] = fed[rest[0]]
            else:
                found[name] = likely_output(view, name)
        return found


_NOTHING = Workflow(name="plan", inputs={"type": "object"}, nodes=(), outputs={})


def _ordered(workflow: Workflow, entries: Sequence[dict[str, JsonValue]], ids: Ids) -> Workflow:
    """Return the workflow with the order its nodes ask for, where no data says it and no cycle results."""
    for place, entry in enumerate(entries):
        node = workflow.node(ids.own[place])
        for name in said_order(entry):
            other = ids.said.get(name)
            if node is None or other is None or other == node.id or workflow.node(other) is None:
                continue
            if other in data_dependencies(workflow)[node.id] or other in descendants(workflow, node.id):
                continue
            if other not in node.after:
                node = node.model_copy(update={"after": (*node.after, other)})
                workflow = workflow.replacing(node)
    return workflow


def _reads_a_node(value: JsonValue, workflow: Workflow) -> bool:
    """Return whether a tool feeds an output: a model may not answer by itself."""
    found = [item.reference for item in scan(value) if isinstance(item, Found)]
    return any(_is_known(reference, workflow) for reference in found)


def _is_known(reference: Reference, workflow: Workflow) -> bool:
    return reference.root == "nodes" and workflow.node(reference.name) is not None

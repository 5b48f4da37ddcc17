"""From what a model answered to a workflow: what models really send is accepted, the rest is faults.

A plan in a model's own words is small: `{"nodes": [{"tool", "id", "arguments"}], "outputs"}` with
references such as `$n1.field`. Accepted besides: fences and talk around it, other words for the
same keys, JSON inside strings, tools called `server.tool` or `server/tool`, references in our own
and in template spelling, `depends_on`. Never raises: a fault says what the next attempt must do
better. What a tool takes is checked afterwards, by `skills_store.workflow.check`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue, ValidationError

from catalog.schema import json_type, types
from catalog.tools import JsonSchema, Tool, ToolId
from server.planning.answer_json import NotJson, read_json
from server.planning.deterministic import inputs_schema, last_nodes, likely_output
from server.planning.plan_references import Spoken
from server.planning.slots import input_reference
from server.planning.view import View, World, argument_schema
from skills_store.workflow.faults import Fault, Malformed
from skills_store.workflow.graph import data_dependencies, descendants
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found, Reference
from skills_store.workflow.scan import scan

__all__ = ["PlanReading", "Vocabulary", "read_plan"]

_LISTS = ("nodes", "steps", "plan", "calls", "tool_calls", "workflow", "actions", "tasks")
_TOOL = ("tool", "tool_name", "name", "function", "action", "tool_ref")
_ARGUMENTS = ("arguments", "args", "params", "parameters", "input", "inputs", "tool_input")
_ID = ("id", "node_id", "step_id", "step", "node")
_AFTER = ("depends_on", "after", "requires", "dependencies")
_OUTPUTS = ("outputs", "output", "result", "results", "answer")
_MOST_NODES = 40


@dataclass(frozen=True)
class Vocabulary:
    """What the words of a plan can mean: the tools by label, the world, the outputs that are wanted."""

    world: World
    by_label: Mapping[str, Tool]
    wanted: tuple[str, ...] = ()
    """Names of the outputs the caller will look at; empty: one output `result`."""

    def tool(self, said: str) -> ToolId:
        """Return the tool that is meant; one that is unknown is kept as it was said."""
        name = re.sub(r"\(.*\)$", "", said.strip(), flags=re.DOTALL)
        if name in self.by_label:
            return self.by_label[name].id
        parts = [part for part in re.split(r"::|__|[./:]", name) if part]
        known = {(i.server.casefold(), i.tool.casefold()): i for i in self.world.snapshot.tools}
        for cut in range(1, len(parts)):
            for joint in (".", "_", "-", "/"):
                pair = (joint.join(parts[:cut]).casefold(), joint.join(parts[cut:]).casefold())
                if pair in known:
                    return known[pair]
        for said_name in (name, "".join(parts[-1:])):
            bare = [i for pair, i in known.items() if pair[1] == said_name.casefold()]
            if len(bare) == 1:
                return bare[0]
        server, tool = (parts[0], ".".join(parts[1:])) if len(parts) > 1 else ("unknown", name or "unnamed")
        return ToolId(server, tool)


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
        for entry in _entries(document):
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
        if len(entries) > _MOST_NODES:
            message = f"the plan has {len(entries)} nodes, at most {_MOST_NODES} are allowed"
            return PlanReading(None, (*self.faults, Malformed(message=message)))
        ids = _ids(entries)
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
        said = _called(entry)
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
        given = _first(entry, _ARGUMENTS)
        function = entry.get("function")
        if given is None and isinstance(function, dict):
            given = _first(function, _ARGUMENTS)
        given = _unstringed(given)
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
            value = _unstringed(value)
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
        said = _said_outputs(document)
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


@dataclass(frozen=True, slots=True)
class _Ids:
    """The ids of a plan's nodes, ours by place and by what the plan calls them."""

    own: tuple[str, ...]
    said: dict[str, str]


def _ids(entries: Sequence[dict[str, JsonValue]]) -> _Ids:
    own: list[str] = []
    said: dict[str, str] = {}
    for place, entry in enumerate(entries, 1):
        name = next((str(entry[key]) for key in _ID if isinstance(entry.get(key), str | int)), f"n{place}")
        stem = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")[:40]
        stem = stem if re.match(r"[a-z]", stem) else f"n{stem or place}"
        free = (stem, *(f"{stem}_{number}" for number in range(2, _MOST_NODES + 2)))
        mine = next(option for option in free if option not in own)
        own.append(mine)
        said.setdefault(name, mine)
    return _Ids(tuple(own), said)


def _entries(document: JsonValue, depth: int = 0) -> list[JsonValue]:
    """Return what stands where nodes belong."""
    document = _unstringed(document)
    if isinstance(document, list):
        return document
    if not isinstance(document, dict) or depth > 3:
        return []
    for key in _LISTS:
        found = _unstringed(document.get(key))
        if isinstance(found, list):
            return found
        if isinstance(found, dict):
            inner = _entries(found, depth + 1)
            if inner:
                return inner
            if found and all(isinstance(value, dict) for value in found.values()):
                return [{"id": name, **cast("dict[str, JsonValue]", value)} for name, value in found.items()]
    return [document] if _called(document) and _first(document, _ARGUMENTS) is not None else []


def _called(entry: Mapping[str, JsonValue]) -> str:
    """Return the name of the tool a node calls as the plan says it, empty when it says none."""
    for key in _TOOL:
        match entry.get(key):
            case str() as name if name.strip():
                server = entry.get("server")
                return f"{server}/{name}" if isinstance(server, str) and server else name
            case dict() as inner:
                if name := _called(inner):
                    return name
            case _:
                continue
    return ""


def _first(entry: Mapping[str, JsonValue], keys: Sequence[str]) -> JsonValue:
    return next((entry[key] for key in keys if entry.get(key) is not None), None)


def _unstringed(value: JsonValue) -> JsonValue:
    """Return what a text holds when it is JSON of an object or list, else the value."""
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "["):
        return value
    try:
        return read_json(value)
    except NotJson:
        return value


def _ordered(workflow: Workflow, entries: Sequence[dict[str, JsonValue]], ids: _Ids) -> Workflow:
    """Return the workflow with the order its nodes ask for, where no data says it and no cycle results."""
    for place, entry in enumerate(entries):
        node = workflow.node(ids.own[place])
        asked = _first(entry, _AFTER)
        for name in asked if isinstance(asked, list) else [asked]:
            other = ids.said.get(str(name).removeprefix("$"))
            if node is None or other is None or other == node.id or workflow.node(other) is None:
                continue
            if other in data_dependencies(workflow)[node.id] or other in descendants(workflow, node.id):
                continue
            if other not in node.after:
                node = node.model_copy(update={"after": (*node.after, other)})
                workflow = workflow.replacing(node)
    return workflow


def _said_outputs(document: JsonValue) -> dict[str, JsonValue]:
    if not isinstance(document, dict):
        return {}
    match _unstringed(_first(document, _OUTPUTS)):
        case dict() as named:
            return named
        case str() as reference:
            return {"result": reference}
        case _:
            return {}


def _reads_a_node(value: JsonValue, workflow: Workflow) -> bool:
    """Return whether a tool feeds an output: a model may not answer by itself."""
    found = [item.reference for item in scan(value) if isinstance(item, Found)]
    return any(_is_known(reference, workflow) for reference in found)


def _is_known(reference: Reference, workflow: Workflow) -> bool:
    return reference.root == "nodes" and workflow.node(reference.name) is not None

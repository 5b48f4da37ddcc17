"""A model's answer read as typed edits: leniently in spelling, never in meaning.

What cannot be read is said in words the model can mend; one bad edit makes the others no worse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue, ValidationError

from catalog.tools import Tool
from server.evolution.building import edited
from server.evolution.removals import propose_bypass
from server.planning.answer_json import NotJson, read_json
from server.planning.plan_references import Spoken
from server.planning.spoken_tools import Vocabulary
from server.planning.view import View
from skills_store.workflow.edits import (
    Edit,
    EditParameter,
    EditRefused,
    InsertNode,
    RemoveNode,
    Reorder,
    SwapTool,
)
from skills_store.workflow.edits.places import has_place
from skills_store.workflow.model import Node, json_pointer
from skills_store.workflow.references import is_selector, pointer_parts

__all__ = ["EditReading", "read_edits"]

_MOST = 6


@dataclass(frozen=True, slots=True)
class EditReading:
    """The edits that were understood, in order, and what was wrong with the rest."""

    edits: tuple[Edit, ...]
    problems: tuple[str, ...] = ()


class _Unread(ValueError):  # noqa: N818  (what happened to the edit)
    """An edit that cannot be read; the message says why."""


def read_edits(text: str, view: View, tools: Mapping[str, Tool]) -> EditReading:
    """Return what a model answered as edits of a workflow that can be made one after the other."""
    try:
        document = read_json(text)
    except NotJson as error:
        return EditReading((), (str(error),))
    said = document.get("edits", [document]) if isinstance(document, dict) else document
    entries = said if isinstance(said, list) else [said]
    edits, problems = list[Edit](), list[str]()
    for entry in entries[:_MOST]:
        try:
            edit = _Reader(view, tools, entry).edit()
            workflow = edited(view.workflow, [edit])
        except (_Unread, EditRefused) as error:
            problems.append(f"{_brief(entry)}: {error}")
            continue
        except ValidationError as error:
            problems.append(f"{_brief(entry)}: {error.errors()[0]['msg']}")
            continue
        edits.append(edit)
        view = View(view.world, workflow, view.outputs, view.seen_tools, view.faults)
    return EditReading(tuple(edits), tuple(problems))


def _brief(entry: JsonValue) -> str:
    return str(entry)[:120]


class _Reader:
    """Reads one entry."""

    def __init__(self, view: View, tools: Mapping[str, Tool], entry: JsonValue) -> None:
        if not isinstance(entry, dict):
            raise _Unread("an edit is an object with an 'op'")
        self._view = view
        self._entry = cast("dict[str, JsonValue]", entry)
        self._vocabulary = Vocabulary(view.world, tools)
        names = {node.id: node.id for node in view.workflow.nodes}
        self._spoken = Spoken(names, frozenset(view.world.inputs))

    def edit(self) -> Edit:
        op = self._text("op", "kind", "type")
        match op:
            case "edit_parameter" | "set_param" | "set":
                return self._parameter()
            case "swap_tool":
                node, tool = self._node(), self._tool()
                return SwapTool(node=node.id, tool=tool.id, arguments=self._arguments(), because=_BECAUSE)
            case "insert_node" | "add_tool_step":
                return self._insertion()
            case "remove_node" | "remove_tool_step":
                return self._removal()
            case "reorder" | "reorder_step":
                return Reorder(
                    node=self._node().id, after=self._names("after", "new_requires"), because=_BECAUSE
                )
            case _:
                raise _Unread(f"no edit is called {op!r}")

    def _text(self, *keys: str) -> str:
        found = next((self._entry[key] for key in keys if key in self._entry), "")
        if not isinstance(found, str):
            raise _Unread(f"{keys[0]!r} is a text")
        return found

    def _names(self, *keys: str) -> tuple[str, ...]:
        found: JsonValue = next((self._entry[key] for key in keys if key in self._entry), None)
        return tuple(str(name) for name in found) if isinstance(found, list) else ()

    def _node(self) -> Node:
        name = self._text("node", "node_id")
        node = self._view.workflow.node(name)
        if node is None:
            known = ", ".join(node.id for node in self._view.workflow.nodes)
            raise _Unread(f"there is no node {name!r}; there is {known}")
        return node

    def _tool(self) -> Tool:
        said = self._text("tool")
        tool = self._view.world.snapshot.get(self._vocabulary.tool(said))
        if tool is None:
            raise _Unread(f"there is no tool {said!r}")
        if not self._view.world.may_repeat(tool.id) and not self._is_planned(tool):
            raise _Unread(f"{said} may change something for good, which no edit of a search may")
        return tool

    def _is_planned(self, tool: Tool) -> bool:
        return any(node.tool == tool.id for node in self._view.workflow.nodes)

    def _arguments(self) -> dict[str, JsonValue]:
        named = (self._entry[key] for key in ("arguments", "args", "params") if key in self._entry)
        given: JsonValue = next(named, None)
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise _Unread("'arguments' is an object by name")
        return {name: self._meant(value) for name, value in given.items()}

    def _meant(self, value: JsonValue) -> JsonValue:
        """Return a value as a workflow writes it; a selector's expression is not read as a reference."""
        if isinstance(value, dict) and is_selector(value):
            return {**value, "context": self._spoken.meant(value["context"])}
        return self._spoken.meant(value)

    def _parameter(self) -> EditParameter:
        node_id = self._text("node", "node_id")
        parameter = self._text("parameter", "argument", "pointer", "key", "output")
        pointer = parameter if parameter.startswith("/") else json_pointer(*parameter.split("/"))
        value = self._entry.get("value")
        if node_id in ("outputs", "output", ""):
            return EditParameter(node=None, pointer=pointer, value=self._meant(value), because=_BECAUSE)
        node = self._node()
        is_left_out = value is None and not self._takes_null(node, pointer)
        if is_left_out and not has_place(node.arguments, pointer):
            raise _Unread(f"{node.id} has nothing at {parameter!r} to take out")
        return EditParameter(
            node=node.id,
            pointer=pointer,
            value=None if is_left_out else self._meant(value),
            remove=is_left_out,
            because=_BECAUSE,
        )

    def _takes_null(self, node: Node, pointer: str) -> bool:
        """Return whether an argument is required, so that null can only be meant as a value."""
        tool = self._view.tool(node)
        required = tool.input_schema.get("required") if tool else None
        parts = pointer_parts(pointer)
        return len(parts) == 1 and isinstance(required, list) and parts[0] in required

    def _insertion(self) -> InsertNode:
        tool = self._tool()
        planned = Node(id=self._text("node", "node_id", "id"), tool=tool.id, arguments=self._arguments())
        before = self._view.workflow.node(self._text("before"))
        position = self._view.workflow.index(before.id) if before else len(self._view.workflow.nodes)
        return InsertNode(planned=planned, position=position, because=_BECAUSE)

    def _removal(self) -> RemoveNode:
        node = self._node()
        read = {
            str(found.reference)
            for found in self._view.all_references
            if found.reference.root == "nodes" and found.reference.name == node.id
        }
        instead = self._meant(self._text("instead"))
        if not read:
            return RemoveNode(node=node.id, because=_BECAUSE)
        if isinstance(instead, str) and instead.startswith("$"):
            return RemoveNode(node=node.id, rewired=dict.fromkeys(sorted(read), instead), because=_BECAUSE)
        way = next(iter(propose_bypass(self._view, node, cost=0.0)), None)
        if way is None or not isinstance(way.edits[0], RemoveNode):
            raise _Unread(f"{node.id} is read: say with 'instead' what its readers read")
        return way.edits[0]


_BECAUSE = "a model's edit"

"""Putting nodes in: missing producers of what is read, and openings of handles.

Paper: EvoFlux (tool insertion). Differs: an inserted node arrives with its arguments and wired into
the data flow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import JsonValue

from catalog.schema import is_valid
from catalog.similarity import name_similarity, text_similarity, words
from catalog.tools import JsonSchema, Tool
from server.evolution.proposal import Proposal, cheapest_combinations, propose_one
from server.planning.leaves import leaves_of_schema, leaves_of_value
from server.planning.literals import mentions
from server.planning.slots import Source, slot_of
from server.planning.sources import analogous, argument_sources
from server.planning.units import units_disagree, with_kind
from server.planning.view import View, argument_schema, references_in
from skills_store.workflow.edits import EditParameter, InsertNode
from skills_store.workflow.model import Node, json_pointer
from skills_store.workflow.references import ExpressionError, Reference, Scope, Unresolved, resolve

__all__ = ["Fixed", "fillings", "propose_handle", "propose_producer"]

OPENING = frozenset({"connect", "open", "begin", "start", "init", "login", "session"})
"""Verbs of tools that give a handle."""

HANDLES = frozenset({"id", "handle", "session", "connection", "conn", "cursor", "token", "key"})
"""Words of arguments that hold one."""

_TOOLS = 8
_FILLINGS = 24
_LONGEST_ID = 64


def propose_producer(
    view: View,
    node_id: str,
    pointer: str,
    position: int,
    *,
    base_cost: float = 0.0,
    lists: Sequence[Reference] = (),
) -> Iterator[Proposal]:
    """Yield insertions of a node of this id whose output has this pointer.

    Args:
        view: the workflow in its world.
        node_id: id the readers already use.
        pointer: what they read in its output.
        position: index the node is put at.
        base_cost: added to every proposal.
        lists: references that the node may be mapped over although somebody reads them.
    """
    if len(node_id) > _LONGEST_ID:
        return
    because = f"{node_id!r} is read and does not exist"
    for tool_cost, tool in _ranked(view, node_id, pointer):
        bare = Node(id=node_id, tool=tool.id)
        for filling, cost in fillings(view, bare, tool):
            planned = bare.model_copy(update={"arguments": filling})
            edit = InsertNode(planned=planned, position=position, because=f"{because}; {tool.id} can give it")
            yield propose_one(edit, base_cost + tool_cost + 0.5 * cost)
    for source, item in (*_unread_lists(view), *_items_of(view, lists)):
        for tool_cost, tool in _ranked(view, node_id, ""):
            bare = Node(id=node_id, tool=tool.id, for_each=source)
            for filling, cost in fillings(view, bare, tool, Fixed("$item", partial(_takes, item))):
                planned = bare.model_copy(update={"arguments": filling})
                edit = InsertNode(planned=planned, position=position, because=f"{because}; one for each item")
                yield propose_one(edit, base_cost + tool_cost + 0.3 + 0.5 * cost)


def _items_of(view: View, lists: Sequence[Reference]) -> Iterator[tuple[str, JsonValue]]:
    """Yield the references that are seen to be lists, with their first item."""
    scope = Scope(dict(view.world.inputs), dict(view.outputs))
    for reference in lists:
        try:
            value = resolve(str(reference), scope)
        except (Unresolved, ExpressionError):
            continue
        if isinstance(value, list) and value:
            yield str(reference), value[0]


def _takes(item: JsonValue, schema: JsonSchema) -> bool:
    """Return whether an argument takes an item as it is, not made into text."""
    return bool(schema) and is_valid(schema, item)


def _unread_lists(view: View) -> Iterator[tuple[str, JsonValue]]:
    """Yield references to lists that nobody reads, with their first item."""
    for name in view.unused_inputs:
        value = view.world.inputs[name]
        if isinstance(value, list) and value:
            yield f"$inputs.{name}", value[0]
    for node in view.unused_nodes:
        for leaf in view.leaves(node):
            if isinstance(leaf.value, list) and leaf.value:
                yield str(Reference("nodes", node.id, leaf.pointer)), leaf.value[0]


def _ranked(view: View, node_id: str, pointer: str) -> list[tuple[float, Tool]]:
    scored = [(_producer_cost(view, node_id, pointer, tool), tool) for tool in _producers(view, node_id)]
    return sorted(scored, key=lambda pair: (pair[0], pair[1].id))[:_TOOLS]


def _producers(view: View, node_id: str) -> list[Tool]:
    used = [tool for node in view.workflow.nodes if (tool := view.tool(node))]
    near = [tool for tool in view.world.snapshot if tool.id.server in {t.id.server for t in used}]
    query = " ".join((*words(node_id), view.world.task))
    found = [hit.tool for hit in view.world.index.search(query, limit=12)]
    return list({tool.id: tool for tool in (*used, *near, *found)}.values())


def _producer_cost(view: View, node_id: str, pointer: str, tool: Tool) -> float:
    by_id = max(name_similarity(node_id, tool.id.tool), text_similarity(node_id, tool.description))
    by_task = view.world.spoken_of.get(tool.id, 0.0)
    used = any(node.tool == tool.id for node in view.workflow.nodes)
    cost = 0.6 + 1.2 * (1 - by_id) + 0.8 * (1 - by_task) - (0.5 if used else 0.0)
    cost += 0.0 if view.world.may_repeat(tool.id) else 2.0
    gives = _gives(view, tool, pointer)
    if gives is None:
        return cost + 0.7
    return cost - 0.6 if gives else cost + 2.5


def _gives(view: View, tool: Tool, pointer: str) -> bool | None:
    """Return whether the tool's output has a pointer; None when nothing is known of it."""
    if tool.id in view.seen_tools:
        return any(leaf.pointer == pointer for leaf in leaves_of_value(view.seen_tools[tool.id]))
    if tool.output_schema and tool.output_schema.get("properties"):
        return any(leaf.pointer == pointer for leaf in leaves_of_schema(tool.output_schema))
    return True if not pointer else None


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that some argument of an inserted node has to be, and which schemas it suits."""

    value: str
    suits: Callable[[JsonSchema], bool]


def fillings(
    view: View, bare: Node, tool: Tool, fixed: Fixed | None = None
) -> Iterator[tuple[dict[str, JsonValue], float]]:
    """Yield the required arguments of a tool, filled, with the cost; like nodes are copied first.

    Args:
        view: the workflow in its world.
        bare: the node without arguments.
        tool: what it calls.
        fixed: what one of the arguments has to be; None: no condition.
    """
    required = tool.input_schema.get("required")
    names = [str(name) for name in required] if isinstance(required, list) else []
    choices = [_choices(view, bare, name) for name in names]
    if fixed is None:
        yield from _copies(view, tool)
        yield from _combined(names, choices, _FILLINGS)
        return
    for place, name in enumerate(names):
        if fixed.suits(argument_schema(tool, name)):
            slots = [*choices[:place], [Source(fixed.value, 0.1 * place, "")], *choices[place + 1 :]]
            yield from _combined(names, slots, _FILLINGS // 2)


def _choices(view: View, bare: Node, name: str) -> list[Source]:
    sources = argument_sources(slot_of(bare, name, view), view, 8)
    return [source for source in sources if f".{bare.id}." not in str(source.value)]


def _combined(
    names: list[str], choices: list[list[Source]], limit: int
) -> Iterator[tuple[dict[str, JsonValue], float]]:
    for picked, cost in cheapest_combinations(choices, limit):
        values = [source.value for source in picked]
        repeated = len(values) - len({repr(value) for value in values})
        arguments = with_kind(dict(zip(names, values, strict=True)))
        cost += 0.8 * repeated + (1.5 if units_disagree(arguments) else 0.0)
        yield arguments, cost if references_in([*values]) else cost + 1.0


def _copies(view: View, tool: Tool) -> Iterator[tuple[dict[str, JsonValue], float]]:
    """Yield the arguments of nodes that call the same tool, one source replaced by one nobody reads."""
    for node in view.workflow.nodes:
        if node.tool != tool.id or node.for_each is not None:
            continue
        for changed, cost in analogous(node.arguments, view):
            if isinstance(changed, dict) and changed != node.arguments:
                yield changed, cost


def propose_handle(view: View, node: Node) -> Iterator[Proposal]:
    """Yield the opening of what a failing node's literal handle should have come from.

    Every node that holds the same literal in the same argument reads the new node instead. Where in
    its output the handle stands is known only when the tool was seen; else the next fault says it.
    """
    for argument, value in node.arguments.items():
        is_handle = bool(set(words(argument)) & HANDLES)
        if not is_handle or (isinstance(value, str) and value.startswith("$")):
            continue
        if mentions(view.world.task, value):
            continue
        holders = [other for other in view.workflow.nodes if other.arguments.get(argument) == value]
        for tool in _openers(view, node):
            yield from _opened(view, tool, argument, holders)


def _openers(view: View, node: Node) -> list[Tool]:
    server = node.tool.server if node.tool else ""
    called = {other.tool for other in view.workflow.nodes}
    tools = [tool for tool in view.world.snapshot.of_server(server) if tool.id not in called]
    return [tool for tool in tools if set(words(tool.id.tool)) & OPENING][:3]


def _opened(view: View, tool: Tool, argument: str, holders: list[Node]) -> Iterator[Proposal]:
    taken = {node.id for node in view.workflow.nodes}
    node_id = next(name for i in range(1, 100) if (name := f"opened_{i}") not in taken)
    seen = leaves_of_value(view.seen_tools[tool.id]) if tool.id in view.seen_tools else []
    places = [leaf.pointer for leaf in seen if leaf.key == argument] or [f"/{argument}"]
    handle = str(Reference("nodes", node_id, places[0]))
    bare = Node(id=node_id, tool=tool.id)
    position = min(view.workflow.index(node.id) for node in holders)
    because = f"{argument!r} names nothing that was opened; {tool.id} opens it"
    for filling, cost in fillings(view, bare, tool):
        insert = InsertNode(
            planned=bare.model_copy(update={"arguments": filling}), position=position, because=because
        )
        reads = [
            EditParameter(node=node.id, pointer=json_pointer(argument), value=handle, because=because)
            for node in holders
        ]
        yield Proposal((insert, *reads), 0.5 + 0.5 * cost)

"""Putting nodes in and taking them out: missing producers, needless steps.

Paper: EvoFlux (tool insertion, tool removal). Differs: an inserted node arrives with its
arguments and wired into the data flow; a removed one heals what read it, or stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from catalog.similarity import name_similarity, text_similarity, words
from catalog.tools import Tool
from server.evolution.proposal import Proposal, cheapest_combinations, propose_one
from server.planning.leaves import leaves_of_schema, leaves_of_value
from server.planning.sources import Source, argument_sources, slot_of
from server.planning.view import View, references_in
from skills_store.workflow.edits import Edit, EditParameter, InsertNode, RemoveNode
from skills_store.workflow.model import Node
from skills_store.workflow.references import Reference

__all__ = ["propose_bypass", "propose_producer", "propose_removal", "propose_step"]

_TOOLS = 8
_FILLINGS = 10


def propose_producer(
    view: View, node_id: str, pointer: str, position: int, *, base_cost: float = 0.0
) -> Iterator[Proposal]:
    """Yield insertions of a node of this id whose output has this pointer.

    Args:
        view: the workflow in its world.
        node_id: id the readers already use.
        pointer: what they read in its output.
        position: index the node is put at.
        base_cost: added to every proposal.
    """
    scored = sorted(
        ((_producer_cost(view, node_id, pointer, tool), tool) for tool in _producers(view, node_id)),
        key=lambda pair: (pair[0], pair[1].id),
    )
    for tool_cost, tool in scored[:_TOOLS]:
        bare = Node(id=node_id, tool=tool.id)
        for filling, cost in _fillings(view, bare, tool):
            planned = bare.model_copy(update={"arguments": filling})
            because = f"{node_id!r} is read and does not exist; {tool.id} can give it"
            edit = InsertNode(planned=planned, position=position, because=because)
            yield propose_one(edit, base_cost + tool_cost + 0.5 * cost)


def _producers(view: View, node_id: str) -> list[Tool]:
    used = [tool for node in view.workflow.nodes if (tool := view.tool(node))]
    near = [tool for tool in view.world.snapshot if tool.id.server in {t.id.server for t in used}]
    query = " ".join((*words(node_id), view.world.task))
    found = [hit.tool for hit in view.world.index.search(query, limit=12)]
    return list({tool.id: tool for tool in (*used, *near, *found)}.values())


def _producer_cost(view: View, node_id: str, pointer: str, tool: Tool) -> float:
    by_id = max(name_similarity(node_id, tool.id.tool), text_similarity(node_id, tool.description))
    by_task = text_similarity(view.world.task, f"{tool.id.tool} {tool.description}")
    used = any(node.tool == tool.id for node in view.workflow.nodes)
    cost = 0.6 + 1.2 * (1 - by_id) + 0.8 * (1 - by_task) - (0.5 if used else 0.0)
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


def _fillings(view: View, bare: Node, tool: Tool) -> Iterator[tuple[dict[str, JsonValue], float]]:
    required = tool.input_schema.get("required")
    names = [str(name) for name in required] if isinstance(required, list) else []
    choices: list[Sequence[Source]] = [
        [
            s
            for s in argument_sources(slot_of(bare, name, view), view, 8)
            if f".{bare.id}." not in str(s.value)
        ]
        for name in names
    ]
    for picked, cost in cheapest_combinations(choices, _FILLINGS):
        values = [source.value for source in picked]
        repeated = len(values) - len({repr(value) for value in values})
        yield dict(zip(names, values, strict=True)), cost + 0.8 * repeated


def propose_removal(view: View, node: Node, *, cost: float) -> Iterator[Proposal]:
    """Yield the removal of a node nobody reads. A check it carries keeps it."""
    if node in view.unused_nodes and not node.expect:
        because = f"nothing reads {node.id!r}"
        yield propose_one(RemoveNode(node=node.id, because=because), cost)


def propose_bypass(view: View, node: Node, *, cost: float) -> Iterator[Proposal]:
    """Yield removals of a node in a chain, its readers reading what it read."""
    if node.expect:
        return
    readers = [f for f in view.all_references if f.reference.root == "nodes" and f.reference.name == node.id]
    sources = [f.reference for f in references_in([*node.arguments.values()])]
    fed_by_tool = [s for s in sources if s.root == "nodes"]
    for source in dict.fromkeys(fed_by_tool):
        rewired = {str(f.reference): str(source) for f in readers if f.whole}
        if len(rewired) == len({str(f.reference) for f in readers}):
            because = f"{node.id!r} adds nothing between {source} and its readers"
            yield propose_one(RemoveNode(node=node.id, rewired=rewired, because=because), cost)


def propose_step(view: View, *, base_cost: float) -> Iterator[Proposal]:
    """Yield insertions of a step between an output of the workflow, or an argument, and its source."""
    for place in _whole_places(view):
        reference, reader, pointer = place
        for tool in _step_tools(view):
            yield from _step_between(view, tool, (reference, reader, pointer), base_cost)


def _whole_places(view: View) -> list[tuple[Reference, str | None, str]]:
    return [
        (found.reference, None, f"/{name}")
        for name, value in view.workflow.outputs.items()
        for found in references_in(value)
        if found.whole and found.reference.root == "nodes" and found.pointer == ""
    ]


def _step_tools(view: View) -> list[Tool]:
    used = {tool.id: tool for node in view.workflow.nodes if (tool := view.tool(node))}
    near = [tool for tool in view.world.snapshot if tool.id.server in {t.server for t in used}]
    scored = sorted(
        near,
        key=lambda t: (-text_similarity(view.world.task, f"{t.id.tool} {t.description}"), t.id),
    )
    return list({tool.id: tool for tool in (*used.values(), *scored[:10])}.values())


def _step_between(
    view: View, tool: Tool, place: tuple[Reference, str | None, str], base_cost: float
) -> Iterator[Proposal]:
    reference, reader, pointer = place
    taken = {node.id for node in view.workflow.nodes}
    node_id = next(name for i in range(1, 100) if (name := f"step_{i}") not in taken)
    leaf = _result_pointer(view, tool)
    if leaf is None:
        return
    bare = Node(id=node_id, tool=tool.id)
    for filling, cost in _fillings(view, bare, tool):
        if str(reference) not in filling.values():
            continue
        planned = bare.model_copy(update={"arguments": filling})
        edits: tuple[Edit, ...] = (
            InsertNode(
                planned=planned,
                position=len(view.workflow.nodes),
                because=f"a step may be missing after {reference}",
            ),
            EditParameter(node=reader, pointer=pointer, value=str(Reference("nodes", node_id, leaf))),
        )
        yield Proposal(edits, base_cost + 0.5 * cost)


def _result_pointer(view: View, tool: Tool) -> str | None:
    """Return where a tool's scalar result stands, when that can be told."""
    if tool.id in view.seen_tools:
        leaves = leaves_of_value(view.seen_tools[tool.id])
    else:
        leaves = leaves_of_schema(tool.output_schema) if tool.output_schema else []
    named = [
        leaf for leaf in leaves if leaf.key and set(words(leaf.key)) & {"result", "value", "output", "text"}
    ]
    scalar = [leaf for leaf in named if not leaf.types & {"object", "array"}]
    return scalar[0].pointer if scalar else None

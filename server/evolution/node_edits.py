"""Putting nodes in and taking them out: missing producers, needless steps.

Paper: EvoFlux (tool insertion, tool removal). Differs: an inserted node arrives with its
arguments and wired into the data flow; a removed one heals what read it, or stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.similarity import name_similarity, text_similarity, words
from catalog.tools import Tool
from server.evolution.proposal import Proposal, cheapest_combinations, propose_one
from server.planning.leaves import leaves_of_schema, leaves_of_value
from server.planning.literals import mentions
from server.planning.sources import Source, analogous, argument_sources, fits, slot_of
from server.planning.units import units_disagree
from server.planning.view import View, argument_schema, references_in
from skills_store.workflow.edits import Edit, EditParameter, InsertNode, RemoveNode
from skills_store.workflow.model import Node, json_pointer
from skills_store.workflow.references import Reference, parse_reference

__all__ = ["propose_bypass", "propose_producer", "propose_removal", "propose_step"]

_TOOLS = 8
_FILLINGS = 24


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


def _fillings(
    view: View, bare: Node, tool: Tool, must_read: str | None = None
) -> Iterator[tuple[dict[str, JsonValue], float]]:
    """Yield the required arguments of a tool, filled, with the cost; like nodes are copied first.

    Args:
        view: the workflow in its world.
        bare: the node without arguments.
        tool: what it calls.
        must_read: a reference that some argument has to be; None: no condition.
    """
    if must_read is None:
        yield from _copies(view, tool)
    required = tool.input_schema.get("required")
    names = [str(name) for name in required] if isinstance(required, list) else []
    choices: list[list[Source]] = [
        [s for s in argument_sources(slot_of(bare, n, view), view, 8) if f".{bare.id}." not in str(s.value)]
        for n in names
    ]
    for place in range(len(names)) if must_read is not None else (-1,):
        slots = [
            [Source(must_read, 0.1 * place, "")] if place == index and must_read else options
            for index, options in enumerate(choices)
        ]
        if place >= 0 and not _could_be(view, must_read, tool, names[place]):
            continue
        for picked, cost in cheapest_combinations(slots, _FILLINGS if must_read is None else 5):
            values = [source.value for source in picked]
            repeated = len(values) - len({repr(value) for value in values})
            arguments = dict(zip(names, values, strict=True))
            yield arguments, cost + 0.8 * repeated + (1.5 if units_disagree(arguments) else 0.0)


def _could_be(view: View, reference: str | None, tool: Tool, argument: str) -> bool:
    """Return whether a seen value fits an argument; an unseen one might."""
    if reference is None:
        return True
    parsed = parse_reference(reference)
    schema = argument_schema(tool, argument)
    if parsed.root == "inputs":
        return fits(view.world.inputs.get(parsed.name), schema)
    node = view.workflow.node(parsed.name)
    leaves = [leaf for leaf in view.leaves(node) if leaf.pointer == parsed.pointer] if node else []
    return not leaves or not leaves[0].seen or fits(leaves[0].value, schema)


def _copies(view: View, tool: Tool) -> Iterator[tuple[dict[str, JsonValue], float]]:
    """Yield the arguments of nodes that call the same tool, one source replaced by one nobody reads."""
    for node in view.workflow.nodes:
        if node.tool != tool.id or node.for_each is not None:
            continue
        for changed, cost in analogous(node.arguments, view):
            if isinstance(changed, dict) and changed != node.arguments:
                yield changed, cost


def propose_removal(view: View, node: Node, *, cost: float) -> Iterator[Proposal]:
    """Yield the removal of a node nobody reads. A check it carries keeps it."""
    if node in view.unused_nodes and not node.expect:
        because = f"nothing reads {node.id!r}"
        yield propose_one(RemoveNode(node=node.id, because=because), cost)


def propose_bypass(view: View, node: Node, *, cost: float) -> Iterator[Proposal]:
    """Yield removals of a node in a chain, its readers reading what it read."""
    if node.expect:
        return
    readers = {
        str(found.reference)
        for found in view.all_references
        if found.reference.root == "nodes" and found.reference.name == node.id
    }
    read = [found.reference for found in references_in([*node.arguments.values()])]
    for source in dict.fromkeys(reference for reference in read if reference.root == "nodes"):
        for rank, other in enumerate(_nearby(view, source)):
            because = f"{node.id!r} adds nothing between {other} and its readers"
            rewired = dict.fromkeys(readers, str(other))
            yield propose_one(RemoveNode(node=node.id, rewired=rewired, because=because), cost + 0.25 * rank)


def _nearby(view: View, source: Reference) -> list[Reference]:
    """Return a reference and the other places of the same output, at most a handful."""
    node = view.workflow.node(source.name)
    others = [source.at(leaf.pointer) for leaf in view.leaves(node)] if node else []
    return list(dict.fromkeys([source, *others]))[:6]


@dataclass(frozen=True, slots=True)
class _Gap:
    """A place where a step may be missing: what would feed the step, and who would read it."""

    source: str
    """Reference the missing step would read."""
    reader: str | None
    """Node whose argument would read the step; None: an output of the workflow."""
    pointer: str
    """Of the argument or output."""
    cost: float


def propose_step(view: View, *, base_cost: float) -> Iterator[Proposal]:
    """Yield insertions of a step where one may be missing.

    Between an output and what it reads; and before an argument whose value nobody said, or that
    reads something else, for each input or node that nobody reads.
    """
    tools = _step_tools(view)
    for gap in _gaps(view):
        for rank, tool in enumerate(tools):
            yield from _step_between(view, tool, gap, base_cost + gap.cost + 0.08 * rank)


def _gaps(view: View) -> Iterator[_Gap]:
    for name, value in view.workflow.outputs.items():
        for found in references_in(value):
            if found.whole and found.reference.root == "nodes" and found.pointer == "":
                yield _Gap(str(found.reference), None, json_pointer(name), 0.6)
    unread = [f"$inputs.{name}" for name in view.unused_inputs]
    unread += [r for node in view.unused_nodes if (r := _result_of(view, node)) is not None]
    for source in unread:
        for node in view.workflow.nodes:
            for argument, value in node.arguments.items():
                if isinstance(value, dict | list | bool) or f".{node.id}." in source:
                    continue
                is_said = mentions(view.world.task, value) or bool(references_in(value))
                yield _Gap(source, node.id, json_pointer(argument), 0.5 if is_said else 0.0)


def _result_of(view: View, node: Node) -> str | None:
    tool = view.tool(node)
    pointer = _result_pointer(view, tool) if tool else None
    return None if pointer is None else str(Reference("nodes", node.id, pointer))


def _step_tools(view: View) -> list[Tool]:
    """Return tools that a missing step could call: those used already, and those the task speaks of."""
    used = {tool.id: tool for node in view.workflow.nodes if (tool := view.tool(node))}
    near = [tool for tool in view.world.snapshot if tool.id.server in {t.server for t in used}]
    scored = sorted(near, key=lambda tool: (-_said_by_task(view, tool), tool.id))
    return sorted(
        {tool.id: tool for tool in (*used.values(), *scored[:10])}.values(),
        key=lambda tool: (-_said_by_task(view, tool), tool.id),
    )


def _said_by_task(view: View, tool: Tool) -> float:
    return text_similarity(view.world.task, f"{tool.id.tool} {tool.description}")


def _step_between(view: View, tool: Tool, gap: _Gap, base_cost: float) -> Iterator[Proposal]:
    taken = {node.id for node in view.workflow.nodes}
    node_id = next(name for i in range(1, 100) if (name := f"step_{i}") not in taken)
    leaf = _result_pointer(view, tool)
    if leaf is None:
        return
    bare = Node(id=node_id, tool=tool.id)
    for filling, cost in _fillings(view, bare, tool, must_read=gap.source):
        planned = bare.model_copy(update={"arguments": filling})
        reader = view.workflow.index(gap.reader) if gap.reader else len(view.workflow.nodes)
        because = f"a step may be missing after {gap.source}"
        edits: tuple[Edit, ...] = (
            InsertNode(planned=planned, position=reader, because=because),
            EditParameter(node=gap.reader, pointer=gap.pointer, value=str(Reference("nodes", node_id, leaf))),
        )
        yield Proposal(edits, base_cost + 0.4 * cost)


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

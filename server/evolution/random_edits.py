"""Edits drawn at random within types: what a search explores with, no model and no fault needed.

Paper: EvoFlux (mutate, explore; facts §1.5). Differs: what is drawn fits the schemas (arguments from
sources of the right type, an inserted node with its arguments and a reader, a removal that heals its
readers, a swap with arguments of the new schema); nothing that the search itself knows, such as its
policy, is ever an argument; a call that happens once and for all is never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from pydantic import JsonValue

from catalog.schema import types
from catalog.tools import JsonSchema, Tool
from server.evolution.building import edited
from server.evolution.insertions import fillings
from server.evolution.proposal import Proposal
from server.evolution.proposer import Asked, Offer
from server.evolution.removals import propose_bypass, propose_removal
from server.evolution.tool_faults import remapped
from server.planning.leaves import Leaf
from server.planning.slots import Slot, slot_of
from server.planning.sources import argument_sources
from server.planning.view import View, argument_schema, references_in
from skills_store.workflow.edits import Edit, EditParameter, EditRefused, InsertNode, Reorder, SwapTool
from skills_store.workflow.graph import descendants
from skills_store.workflow.model import Node, json_pointer
from skills_store.workflow.references import Reference, escape_literal

__all__ = ["RandomProposer", "drawn_edits"]

_HOT = 0.7
"""Chance that a node with a fault is chosen where there is one: the paper's."""
_DRAWS = 6
"""Attempts at one child; the first that is sound and new is taken."""
_SOURCES = 8
_COST = 2.0
"""Of one drawn edit, in nats: dearer than any that a fault speaks for."""


@dataclass(frozen=True, slots=True)
class RandomProposer:
    """Draws one to `most` edits in a row. Deterministic given the order's generator."""

    most: int = 3
    name: str = "random"

    async def propose(self, asked: Asked) -> Offer:
        """Return several draws; whoever asked takes the first that makes a sound new candidate."""
        drawn = [_drawn(asked, self.most) for _ in range(_DRAWS)]
        found = [Proposal(edits, _COST * len(edits)) for edits in drawn if edits]
        return Offer(found, problems=() if found else ("nothing there can be edited",))


def _drawn(asked: Asked, most: int) -> tuple[Edit, ...]:
    """Return edits in a row, each drawn on what those before it made."""
    view, edits = asked.view, list[Edit]()
    for _ in range(asked.draw.randint(1, most)):
        more = drawn_edits(view, asked.draw)
        try:
            workflow = edited(view.workflow, more)
        except EditRefused:
            continue
        edits += more
        view = View(view.world, workflow, view.outputs, view.seen_tools, view.faults)
    return tuple(edits)


def drawn_edits(view: View, draw: Random) -> tuple[Edit, ...]:
    """Return one drawn step: an edit with what wires it in. Empty where that kind has no place here."""
    kinds: Sequence[Callable[[View, Random], tuple[Edit, ...]]] = (
        _parameter,
        _parameter,
        _swap,
        _insertion,
        _removal,
        _order,
        _output,
    )
    return draw.choice(kinds)(view, draw)


def _node(view: View, draw: Random) -> Node | None:
    if not view.workflow.nodes:
        return None
    faulty = {fault.node for fault in view.visible_faults}
    hot = [node for node in view.workflow.nodes if node.id in faulty]
    return draw.choice(hot if hot and draw.random() < _HOT else view.workflow.nodes)


def _parameter(view: View, draw: Random) -> tuple[Edit, ...]:
    """Set one declared argument, or one place inside it; or leave an optional one out."""
    node = _node(view, draw)
    tool = view.tool(node) if node else None
    properties = tool.input_schema.get("properties") if tool else None
    if node is None or tool is None or not isinstance(properties, dict) or not properties:
        return ()
    name = draw.choice(sorted(properties))
    required = tool.input_schema.get("required")
    is_optional = name not in (required if isinstance(required, list) else [])
    if is_optional and name in node.arguments and draw.random() < 0.25:
        return (EditParameter(node=node.id, pointer=json_pointer(name), remove=True, because="drawn"),)
    pointer, slot = _place(view, node, name, draw)
    value = _value(view, slot, draw)
    if value is None:
        return ()
    return (EditParameter(node=node.id, pointer=pointer, value=value.value, because="drawn"),)


def _place(view: View, node: Node, name: str, draw: Random) -> tuple[str, Slot]:
    """Return an argument, or a place inside one that holds others, with what it may hold."""
    slot = slot_of(node, name, view)
    pointer, schema, inside = json_pointer(name), slot.schema, node.arguments.get(name)
    key = name
    while isinstance(inside, dict | list) and inside and draw.random() < 0.6:
        parts: list[str | int] = sorted(inside) if isinstance(inside, dict) else [*range(len(inside))]
        step = draw.choice(parts)
        inner = _inner_schema(schema, step)
        if inner is None:
            break
        pointer, schema = pointer + json_pointer(step), inner
        inside = inside[step] if isinstance(inside, dict) else inside[int(step)]  # pyright: ignore[reportArgumentType]
        key = step if isinstance(step, str) else key
    return pointer, Slot(node, key, schema)


def _inner_schema(schema: JsonSchema, step: str | int) -> JsonSchema | None:
    holder = schema.get("properties") if isinstance(step, str) else {"": schema.get("items")}
    inner = holder.get(step if isinstance(step, str) else "") if isinstance(holder, dict) else None
    return inner if isinstance(inner, dict) else None


@dataclass(frozen=True, slots=True)
class _Value:
    value: JsonValue


def _value(view: View, slot: Slot, draw: Random) -> _Value | None:
    """Return a literal, reference or selector for a place, drawn from what fits it; cheap ones oftener."""
    found: list[JsonValue] = [source.value for source in argument_sources(slot, view, _SOURCES)]
    found += [escape_literal(option) for option in _listed(slot.schema)]
    converted = list(_converted(view, slot))
    if converted and (not found or draw.random() < 0.2):
        return _Value(draw.choice(converted))
    if not found:
        return None
    return _Value(found[min(draw.randrange(len(found)), draw.randrange(len(found)))])


def _listed(schema: JsonSchema) -> list[JsonValue]:
    options = schema.get("enum")
    return options if isinstance(options, list) else []


def _converted(view: View, slot: Slot) -> Iterator[JsonValue]:
    """Yield selectors that make what another node answers into the type a place wants."""
    wanted = types(slot.schema) if slot.schema else frozenset[str]()
    for node in view.readable_from(slot.node.id):
        for leaf in view.leaves(node)[:12]:
            if expression := _conversion(leaf, wanted):
                context = str(Reference("nodes", node.id, leaf.pointer))
                yield {"context": context, "selector": expression, "type": "jmespath"}


def _conversion(leaf: Leaf, wanted: frozenset[str]) -> str | None:
    given = leaf.types
    if not given or not wanted or given & wanted:
        return None
    if given & {"number", "integer"} and "string" in wanted:
        return "to_string(@)"
    if "string" in given and wanted & {"number", "integer"}:
        return "to_number(@)"
    if "array" in given and wanted & {"number", "integer", "string", "object"}:
        return "[0]"
    return "[@]" if "array" in wanted else None


def _swap(view: View, draw: Random) -> tuple[Edit, ...]:
    """Call another tool, with the arguments that have a place there and the rest filled by type."""
    node = _node(view, draw)
    tool = _tool(view, draw)
    if node is None or node.tool is None or tool is None or tool.id == node.tool:
        return ()
    if node.for_each is None and not view.world.may_repeat(node.tool):
        return ()
    kept = remapped(node.arguments, tool)
    arguments = {**_filled(view, Node(id=node.id, tool=tool.id), tool, draw), **kept}
    return (SwapTool(node=node.id, tool=tool.id, arguments=arguments, because="drawn"),)


def _tool(view: View, draw: Random) -> Tool | None:
    """Return a tool that may be called at will: of a server in use, one the task speaks of, or any."""
    repeatable = [tool for tool in view.world.snapshot if view.world.may_repeat(tool.id)]
    servers = {node.tool.server for node in view.workflow.nodes if node.tool}
    near = [tool for tool in repeatable if tool.id.server in servers]
    spoken = [tool for tool in repeatable if tool.id in view.world.spoken_of]
    pools = [pool for pool in (near, near, spoken, repeatable) if pool]
    return draw.choice(draw.choice(pools)) if pools else None


def _filled(view: View, bare: Node, tool: Tool, draw: Random) -> dict[str, JsonValue]:
    """Return the required arguments of a tool, one of the likelier ways to fill them; {} when none is."""
    ways = [arguments for arguments, _ in fillings(view, bare, tool)][:_SOURCES]
    return dict(ways[min(draw.randrange(len(ways)), draw.randrange(len(ways)))]) if ways else {}


def _insertion(view: View, draw: Random) -> tuple[Edit, ...]:
    """Put in a call with its arguments, read by a node or an output that takes what it answers."""
    tool = _tool(view, draw)
    if tool is None:
        return ()
    taken = {node.id for node in view.workflow.nodes}
    node_id = next(name for i in range(1, 1000) if (name := f"drawn_{i}") not in taken)
    bare = Node(id=node_id, tool=tool.id)
    planned = bare.model_copy(update={"arguments": _filled(view, bare, tool, draw)})
    readers = [*_readers(view, planned, tool)]
    if not readers:
        return ()
    reader, pointer, leaf = draw.choice(readers)
    position = view.workflow.index(reader) if reader else len(view.workflow.nodes)
    value = str(Reference("nodes", node_id, leaf))
    return (
        InsertNode(planned=planned, position=position, because="drawn"),
        EditParameter(node=reader, pointer=pointer, value=value, because="drawn"),
    )


def _readers(view: View, planned: Node, tool: Tool) -> Iterator[tuple[str | None, str, str]]:
    """Yield places that could read a new node: node or None for an output, pointer, place in its answer."""
    leaves = view.leaves(planned)
    before = {found.reference.name for found in references_in([*planned.arguments.values()])}
    for node in view.workflow.nodes:
        if node.id in before or before & descendants(view.workflow, node.id):
            continue
        for name in node.arguments:
            wanted = types(schema) if (schema := argument_schema(view.tool(node), name)) else frozenset[str]()
            for leaf in leaves:
                if leaf.types & wanted or not tool.output_schema:
                    yield node.id, json_pointer(name), leaf.pointer
    for name, value in view.workflow.outputs.items():
        if isinstance(value, str):
            for leaf in leaves:
                yield None, json_pointer(name), leaf.pointer


def _removal(view: View, draw: Random) -> tuple[Edit, ...]:
    """Take out a node that nobody reads, or whose readers can read what it read."""
    node = _node(view, draw)
    if node is None or len(view.workflow.nodes) < 2:
        return ()
    if node.tool is not None and not view.world.may_repeat(node.tool):
        return ()
    ways = [*propose_removal(view, node, cost=1.0), *propose_bypass(view, node, cost=1.0)]
    return draw.choice(ways).edits if ways else ()


def _order(view: View, draw: Random) -> tuple[Edit, ...]:
    """Have a node come after others, or after fewer; what it reads is kept by construction."""
    node = _node(view, draw)
    if node is None:
        return ()
    later = descendants(view.workflow, node.id)
    free = [other.id for other in view.workflow.nodes if other.id != node.id and other.id not in later]
    after = tuple(sorted(draw.sample(free, draw.randint(0, min(2, len(free))))))
    return (Reorder(node=node.id, after=after, because="drawn"),) if after != node.after else ()


def _output(view: View, draw: Random) -> tuple[Edit, ...]:
    """Have a declared output read another place of a node's answer."""
    places = [(name, value) for name, value in view.workflow.outputs.items() if isinstance(value, str)]
    leaves = [(node.id, leaf.pointer) for node in view.workflow.nodes for leaf in view.leaves(node)]
    if not places or not leaves:
        return ()
    name, old = draw.choice(places)
    value = str(Reference("nodes", *draw.choice(leaves)))
    return () if value == old else (EditParameter(node=None, pointer=json_pointer(name), value=value),)

"""Where the value of an argument could come from, best first.

One answer for planning and for repair: inputs by name and type, outputs of other nodes by key
and type, the schema's own values, values of sibling nodes, and what the task says. Costs are
-ln of a rough prior, so they add up along a candidate's edits.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from catalog.schema import json_type, types
from catalog.similarity import name_similarity, words
from catalog.tools import JsonSchema
from server.planning.leaves import Leaf
from server.planning.likeness import GENERIC_KEYS
from server.planning.said import from_names, from_schema, from_task
from server.planning.slots import Slot, Source, fits
from server.planning.view import View, references_in
from skills_store.workflow.model import Node
from skills_store.workflow.references import Reference, map_references
from skills_store.workflow.scan import Unreadable, scan

__all__ = ["analogous", "argument_sources"]

_LIKE = 0.6


def argument_sources(slot: Slot, view: View, limit: int = 24) -> list[Source]:
    """Return ways to fill a slot, cheapest first, equal values once."""
    best: dict[str, Source] = {}
    present = slot.node.arguments.get(slot.argument)
    for found in _all_sources(slot, view):
        source = _nearer(found, present)
        key = repr(source.value)
        if key not in best or source.cost < best[key].cost:
            best[key] = source
    return sorted(best.values(), key=lambda source: (source.cost, repr(source.value)))[:limit]


def _nearer(source: Source, present: JsonValue) -> Source:
    """Return the source, cheaper when its literal is spelt like the literal that stands there now."""
    literal = isinstance(source.value, str) and not source.value.startswith("$")
    if not literal or not isinstance(present, str) or present.startswith("$"):
        return source
    likeness = name_similarity(present, str(source.value))
    discount = 1.2 * likeness if likeness >= _LIKE else 0.0
    return Source(source.value, max(0.1, source.cost - discount), source.because)


def _all_sources(slot: Slot, view: View) -> Iterator[Source]:
    yield from _from_inputs(slot, view)
    yield from _from_outputs(slot, view)
    yield from _from_siblings(slot, view)
    yield from _from_analogies(slot, view)
    yield from from_schema(slot, view)
    yield from from_task(slot, view)
    yield from from_names(slot)


def _from_inputs(slot: Slot, view: View) -> Iterator[Source]:
    fitting = [name for name, value in view.world.inputs.items() if fits(value, slot.schema)]
    unused = [name for name in fitting if name in view.unused_inputs]
    for name in fitting:
        likeness = max(name_similarity(name, slot.argument), 0.8 * name_similarity(name, slot.node.id))
        cost = 0.1 + 2.2 * (1 - likeness)
        if name in unused:
            cost = max(0.1, cost - 0.9 - (0.5 if len(unused) == 1 else 0.0))
        yield Source(f"$inputs.{name}", cost, f"input {name!r} fits {slot.argument!r}")


def _from_outputs(slot: Slot, view: View) -> Iterator[Source]:
    unused = {node.id for node in view.unused_nodes}
    for distance, node in enumerate(view.readable_from(slot.node.id)):
        for leaf in view.leaves(node):
            if not _leaf_fits(leaf, slot.schema):
                continue
            cost = 0.5 + 1.6 * (1 - _leaf_likeness(leaf, node, slot)) + 0.1 * min(distance, 5)
            cost -= 0.6 if node.id in unused else 0.0
            reference = Reference("nodes", node.id, leaf.pointer)
            yield Source(str(reference), max(0.1, cost), f"{reference} fits {slot.argument!r}")


def _leaf_fits(leaf: Leaf, schema: JsonSchema) -> bool:
    if leaf.seen:
        return bool(schema) and fits(leaf.value, schema) and leaf.value is not None
    wanted = types(schema) if schema else frozenset[str]()
    if not wanted or not leaf.types:
        return False
    return bool(leaf.types & wanted) or ("integer" in leaf.types and "number" in wanted)


def _leaf_likeness(leaf: Leaf, node: Node, slot: Slot) -> float:
    by_key = name_similarity(leaf.key, slot.argument) if leaf.key else 0.2
    by_node = 0.9 * name_similarity(node.id, slot.argument)
    if set(words(leaf.key)) & GENERIC_KEYS:
        by_key = max(by_key, 0.55)
    return max(by_key, by_node)


def _from_siblings(slot: Slot, view: View) -> Iterator[Source]:
    readable = {node.id for node in view.readable_from(slot.node.id)}
    for node in view.workflow.nodes:
        if node.id == slot.node.id or node.tool is None or slot.node.tool is None:
            continue
        if node.tool.server != slot.node.tool.server or slot.argument not in node.arguments:
            continue
        value = node.arguments[slot.argument]
        if isinstance(value, str) and value.startswith("$nodes."):
            if value.split(".")[1] not in readable:
                continue
            cost = 0.3
        else:
            cost = 0.7 if node.tool == slot.node.tool else 0.9
        yield Source(value, cost, f"node {node.id!r} gives {slot.argument!r} the same way")


def _from_analogies(slot: Slot, view: View) -> Iterator[Source]:
    """Yield what stands in a like place, reading another node of the same tool or another input."""
    for node in view.workflow.nodes:
        is_same = node.id == slot.node.id
        if node.tool != slot.node.tool:
            continue
        for argument, value in node.arguments.items():
            if is_same == (argument == slot.argument) or isinstance(value, str | int | float | bool):
                continue
            near = 0.3 if argument == slot.argument else 0.6
            for other, cost in analogous(value, view):
                yield Source(other, near + cost, f"{argument!r} of {node.id!r} is made the same way")


def analogous(value: JsonValue, view: View) -> Iterator[tuple[JsonValue, float]]:
    """Yield a value with one of its sources replaced by another of its kind, and what that costs.

    A value with a part that cannot be read is no example to follow.
    """
    if any(isinstance(part, Unreadable) for part in scan(value)):
        return
    references = dict.fromkeys(found.reference for found in references_in(value))
    unused_nodes = {node.id for node in view.unused_nodes}
    for reference in references:
        for other in _of_its_kind(reference, view):
            unread = other.name in unused_nodes or other.name in view.unused_inputs
            changed = map_references(
                value, lambda found, old=reference, new=other: new if found == old else found
            )
            yield changed, 0.2 if unread else 1.0
    if not references:
        return
    yield value, 1.2


def _of_its_kind(reference: Reference, view: View) -> Iterator[Reference]:
    if reference.root == "inputs":
        kind = json_type(view.world.inputs.get(reference.name))
        for name, value in view.world.inputs.items():
            if name != reference.name and json_type(value) == kind:
                yield Reference("inputs", name, reference.pointer)
    elif reference.root == "nodes":
        source = view.workflow.node(reference.name)
        for node in view.workflow.nodes:
            if source is not None and node.id != source.id and node.tool == source.tool:
                yield Reference("nodes", node.id, reference.pointer)

"""Edits for references to nothing: another pointer, another node, a missing producer, another source."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import JsonValue

from catalog.similarity import name_similarity
from server.evolution.argument_faults import set_argument
from server.evolution.insertions import propose_producer
from server.evolution.proposal import Proposal, propose_one
from server.planning.likeness import pointer_cost
from server.planning.slots import slot_of
from server.planning.sources import argument_sources
from server.planning.view import View, references_in
from skills_store.workflow.edits import Edit, EditParameter
from skills_store.workflow.faults import DanglingReference, Malformed, MissingOutput
from skills_store.workflow.model import Node, json_pointer
from skills_store.workflow.references import (
    ExpressionError,
    Reference,
    map_references,
    parse_reference,
    pointer_parts,
)

__all__ = ["propose_output_edits", "propose_reference_edits"]

ReferenceFault = DanglingReference | Malformed | MissingOutput


def propose_reference_edits(
    view: View, node: Node, fault: DanglingReference | Malformed
) -> Iterator[Proposal]:
    """Yield edits for a reference of a node that leads nowhere."""
    if "for_each" in pointer_parts(fault.pointer)[2:3]:
        yield from _other_lists(view, node, fault)
    place = _argument_place(fault.pointer)
    if place is None or place[0] not in node.arguments:
        return
    argument, inner = place
    value = node.arguments[argument]
    reference = _reference(fault, value)
    if reference is not None:
        guesses = _guesses(view, node.id, reference, fault)
        for other, cost, because in (*guesses, *_alternatives(view, node.id, reference, argument)):
            changed = _replaced(value, reference, other)
            everywhere = _everywhere(view, reference, other, because)
            if len(everywhere) > 1:
                yield Proposal(everywhere, cost)
                cost += 0.2
            yield propose_one(set_argument(node, argument, changed, because), cost)
        if reference.root == "nodes" and view.workflow.node(reference.name) is None:
            position = view.workflow.index(node.id)
            yield from propose_producer(view, reference.name, reference.pointer, position)
    if inner == "selector" and isinstance(value, dict):
        yield from _selector_edits(view, node, argument, value)
    if inner == "":
        for source in argument_sources(slot_of(node, argument, view), view):
            yield propose_one(set_argument(node, argument, source.value, source.because), source.cost + 0.7)


def _selector_edits(view: View, node: Node, argument: str, value: dict[str, JsonValue]) -> Iterator[Proposal]:
    """Yield edits for a selector that finds nothing in its context: another context, or a step before it."""
    reference = next((found.reference for found in references_in(value.get("context"))), None)
    if reference is None:
        return
    for other, cost, because in _alternatives(view, node.id, reference, argument):
        changed = {**value, "context": str(other)}
        yield propose_one(set_argument(node, argument, changed, because), cost + 0.4)
    taken = {other.id for other in view.workflow.nodes}
    node_id = next(name for i in range(1, 100) if (name := f"step_{i}") not in taken)
    through = {**value, "context": str(Reference("nodes", node_id))}
    because = f"{reference} has not been through the step that the selector reads"
    read = set_argument(node, argument, through, because)
    for proposal in propose_producer(view, node_id, "", view.workflow.index(node.id), lists=(reference,)):
        yield Proposal((*proposal.edits, read), proposal.cost + 0.4)
    for source in argument_sources(slot_of(node, argument, view), view):
        yield propose_one(set_argument(node, argument, source.value, source.because), source.cost + 0.9)


def _everywhere(view: View, reference: Reference, other: Reference, because: str) -> tuple[Edit, ...]:
    """Return the edits that put one reference in the place of another throughout the workflow."""
    edits: list[Edit] = []
    for node in view.workflow.nodes:
        for argument, value in node.arguments.items():
            if any(found.reference == reference for found in references_in(value)) and node.id != other.name:
                edits.append(set_argument(node, argument, _replaced(value, reference, other), because))
    for name, value in view.workflow.outputs.items():
        if any(found.reference == reference for found in references_in(value)) and other.root == "nodes":
            changed = _replaced(value, reference, other)
            edits.append(EditParameter(node=None, pointer=json_pointer(name), value=changed, because=because))
    return tuple(edits)


def _other_lists(view: View, node: Node, fault: DanglingReference | Malformed) -> Iterator[Proposal]:
    reference = _reference(fault, node.for_each)
    if reference is None:
        return
    for other, cost, because in _alternatives(view, node.id, reference, node.id, of_lists=True):
        changed = _replaced(node.for_each, reference, other)
        yield propose_one(
            EditParameter(node=node.id, pointer="", value=changed, mapped=True, because=because), cost
        )
    if reference.root == "nodes" and view.workflow.node(reference.name) is None:
        position = view.workflow.index(node.id)
        yield from propose_producer(view, reference.name, reference.pointer, position)


def propose_output_edits(view: View, fault: ReferenceFault) -> Iterator[Proposal]:
    """Yield edits of the source of a declared output whose source is not there."""
    parts = pointer_parts(fault.pointer)
    if len(parts) < 2 or parts[0] != "outputs" or parts[1] not in view.workflow.outputs:
        return
    name = parts[1]
    value = view.workflow.outputs[name]
    reference = _reference(fault, value)
    guesses = _guesses(view, None, reference, fault) if reference else ()
    alternatives = _alternatives(view, None, reference or Reference("nodes", name, ""), name)
    for other, cost, because in (*guesses, *alternatives):
        changed = _replaced(value, reference, other) if reference else str(other)
        edit = EditParameter(node=None, pointer=json_pointer(name), value=changed, because=because)
        yield propose_one(edit, cost)
    if reference and reference.root == "nodes" and view.workflow.node(reference.name) is None:
        yield from propose_producer(view, reference.name, reference.pointer, len(view.workflow.nodes))


def _argument_place(pointer: str) -> tuple[str, str] | None:
    """Return the argument a document pointer leads into, and the pointer inside its value."""
    parts = pointer_parts(pointer)
    if len(parts) < 4 or parts[0] != "nodes" or parts[2] != "arguments":
        return None
    return parts[3], "/".join(parts[4:])


def _reference(fault: ReferenceFault, value: JsonValue) -> Reference | None:
    text = fault.reference if isinstance(fault, DanglingReference) else value
    if not isinstance(text, str):
        return None
    try:
        return parse_reference(text)
    except ExpressionError:
        return _guessed(text)


def _guessed(text: str) -> Reference | None:
    """Return what a reference in another dialect (`$n1.text`, `{{n1.text}}`) most likely means."""
    match = re.fullmatch(r"[${\s]*(?:nodes\.)?([a-z][a-z0-9_]*)(?:\.output)?((?:[.#/][\w]+)*)[}\s]*", text)
    if match is None:
        return None
    pointer = "".join(f"/{part}" for part in re.split(r"[.#/]+", match[2]) if part)
    return Reference("nodes", match[1], pointer)


def _replaced(value: JsonValue, reference: Reference, other: Reference) -> JsonValue:
    try:
        return map_references(value, lambda found: other if found == reference else found)
    except ExpressionError:
        return str(other)


def _guesses(
    view: View, node_id: str | None, reference: Reference, fault: ReferenceFault
) -> Iterator[tuple[Reference, float, str]]:
    """Yield what a malformed reference was read as, when it is a reference to a known node."""
    is_known = reference.root == "nodes" and view.workflow.node(reference.name) is not None
    if isinstance(fault, Malformed) and is_known and reference.name != node_id:
        yield reference, 0.1, f"it most likely means {reference}"


def _alternatives(
    view: View, node_id: str | None, reference: Reference, slot: str, *, of_lists: bool = False
) -> Iterator[tuple[Reference, float, str]]:
    if reference.root == "inputs":
        yield from _other_inputs(view, reference)
        return
    readable = view.readable_from(node_id) if node_id else list(reversed(view.workflow.nodes))
    for rank, node in enumerate(readable):
        same = node.id == reference.name
        exists = view.workflow.node(reference.name) is not None
        by_node = 0.0 if same else 0.7 + 1.2 * (1 - name_similarity(node.id, reference.name)) + 0.05 * rank
        for leaf in view.leaves(node):
            other = Reference("nodes", node.id, leaf.pointer)
            if other == reference or (leaf.value is None and leaf.seen):
                continue
            if of_lists and leaf.types and "array" not in leaf.types:
                continue
            cost = by_node + pointer_cost(reference, leaf, slot) + (0.4 if exists and not same else 0.0)
            cost -= 0.4 if node in view.unused_nodes else 0.0
            cost += 0.5 if view.unused_inputs and not same and not exists else 0.0
            yield other, max(0.1, cost), f"{reference} is not there; {other} is"


def _other_inputs(view: View, reference: Reference) -> Iterator[tuple[Reference, float, str]]:
    for name in view.world.inputs:
        if name != reference.name:
            cost = 0.1 + 1.5 * (1 - name_similarity(name, reference.name))
            cost -= 0.4 if name in view.unused_inputs else 0.0
            other = Reference("inputs", name, reference.pointer)
            yield other, max(0.1, cost), f"there is no input {reference.name!r}; {name!r} is one"

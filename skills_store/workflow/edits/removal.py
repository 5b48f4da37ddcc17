"""Taking a node out: who read it reads what stands in, who waited for it waits for what it waited for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from skills_store.workflow.assertions import named_nodes
from skills_store.workflow.edits.models import EditRefused, RemoveNode
from skills_store.workflow.graph import ancestors
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import (
    ExpressionError,
    Found,
    Reference,
    map_references,
    parse_reference,
)
from skills_store.workflow.scan import node_references, scan

__all__ = ["remove_node"]

Rewiring = Mapping[str, Reference]


def remove_node(workflow: Workflow, edit: RemoveNode) -> Workflow:
    """Return the workflow without a node.

    Raises:
        EditRefused: it carries a check, a check names it, something reads it with nothing standing
            in, or what stands in is not there.
    """
    removed = workflow.node(edit.node)
    if removed is None:
        raise EditRefused(f"no node {edit.node!r}")
    _refuse_checked(workflow, removed)
    rest = tuple(node for node in workflow.nodes if node.id != removed.id)
    smaller = workflow.model_copy(update={"nodes": rest})
    rewiring = _rewiring(smaller, edit)
    nodes = tuple(_healed(_rewired(node, removed, rewiring), removed) for node in rest)
    outputs = {name: _rewired_output(name, value, edit, rewiring) for name, value in workflow.outputs.items()}
    result = workflow.model_copy(update={"nodes": nodes, "outputs": outputs})
    for before, after in zip(rest, nodes, strict=True):
        if before != after and after.id in ancestors(result, after.id):
            raise EditRefused(f"{after.id} would wait for itself")
    return result


def _refuse_checked(workflow: Workflow, removed: Node) -> None:
    if removed.expect:
        raise EditRefused(f"{removed.id} carries a check, and no edit takes a check away")
    for text in (*workflow.expect, *(text for node in workflow.nodes for text in node.expect)):
        if removed.id in named_nodes(text):
            raise EditRefused(f"a check names {removed.id}: {text}")


def _rewiring(smaller: Workflow, edit: RemoveNode) -> Rewiring:
    parsed: dict[str, Reference] = {}
    for old, new in edit.rewired.items():
        try:
            source, target = parse_reference(old), parse_reference(new)
        except ExpressionError as error:
            raise EditRefused(str(error)) from error
        if source.root != "nodes" or source.name != edit.node:
            raise EditRefused(f"{old} is no reference to {edit.node}")
        if not _is_there(target, smaller):
            raise EditRefused(f"{new} is not there to stand in for {old}")
        parsed[str(source)] = target
    if unread := parsed.keys() - {str(r) for r in _references_to(smaller, edit.node)}:
        raise EditRefused(f"nothing reads {', '.join(sorted(unread))}")
    return parsed


def _is_there(reference: Reference, workflow: Workflow) -> bool:
    match reference.root:
        case "nodes":
            return workflow.node(reference.name) is not None
        case "inputs":
            declared = workflow.inputs.get("properties")
            return isinstance(declared, dict) and reference.name in declared
        case "item":
            return True


def _references_to(workflow: Workflow, node_id: str) -> Iterator[Reference]:
    for node in workflow.nodes:
        yield from (f.reference for f in node_references(node) if _is_to(f.reference, node_id))
    for found in scan(workflow.outputs):
        if isinstance(found, Found) and _is_to(found.reference, node_id):
            yield found.reference


def _is_to(reference: Reference, node_id: str) -> bool:
    return reference.root == "nodes" and reference.name == node_id


def _rewired(node: Node, removed: Node, rewiring: Rewiring) -> Node:
    read = [f for f in node_references(node) if _is_to(f.reference, removed.id)]
    if not read:
        return node
    if any(found.pointer.startswith("/when") for found in read):
        raise EditRefused(f"the 'when' of {node.id} reads {removed.id}, and no edit touches it")
    for found in read:
        target = _stand_in(found.reference, node.id, rewiring)
        if target.root == "item" and (node.for_each is None or found.pointer.startswith("/for_each")):
            raise EditRefused(f"{node.id} has no $item there")
    arguments = {key: _mapped(value, rewiring) for key, value in node.arguments.items()}
    return node.model_copy(update={"arguments": arguments, "for_each": _mapped(node.for_each, rewiring)})


def _rewired_output(name: str, value: JsonValue, edit: RemoveNode, rewiring: Rewiring) -> JsonValue:
    read = [f.reference for f in scan(value) if isinstance(f, Found) and _is_to(f.reference, edit.node)]
    for reference in read:
        if _stand_in(reference, f"output {name!r}", rewiring).root != "nodes":
            raise EditRefused(f"output {name!r} must be fed by a node")
    return _mapped(value, rewiring) if read else value


def _stand_in(reference: Reference, reader: str, rewiring: Rewiring) -> Reference:
    target = rewiring.get(str(reference))
    if target is None:
        raise EditRefused(f"{reader} reads {reference}, and nothing stands in for it")
    return target


def _mapped(value: JsonValue, rewiring: Rewiring) -> JsonValue:
    try:
        return map_references(value, lambda reference: rewiring.get(str(reference), reference))
    except ExpressionError as error:
        raise EditRefused(str(error)) from error


def _healed(node: Node, removed: Node) -> Node:
    if removed.id not in node.after:
        return node
    position = node.after.index(removed.id)
    others = [other for other in node.after if other != removed.id]
    inherited = [other for other in removed.after if other not in (*others, node.id)]
    return node.model_copy(update={"after": (*others[:position], *inherited, *others[position:])})

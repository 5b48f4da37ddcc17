"""What an edit does to a workflow, and what no edit may do.

No edit touches a check (`expect`, `when`), the names of outputs, or their being fed by a node
(`CONTRACTS`, Assertions). Whether the result is right is `check`'s and the execution's to say.
"""

from __future__ import annotations

from typing import Any, assert_never

from pydantic import JsonValue

from skills_store.workflow.edits.models import (
    Edit,
    EditParameter,
    EditRefused,
    InsertNode,
    RemoveNode,
    Reorder,
    SwapTool,
)
from skills_store.workflow.edits.places import read_place, remove_place, set_place
from skills_store.workflow.edits.removal import remove_node
from skills_store.workflow.graph import ancestors
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found, pointer_parts
from skills_store.workflow.scan import scan

__all__ = ["apply_edit"]


def apply_edit(workflow: Workflow, edit: Edit) -> Workflow:
    """Return the workflow with one edit made.

    Raises:
        EditRefused: it names what is not there, or does what no edit may do.
    """
    match edit:
        case SwapTool():
            return _swap(workflow, edit)
        case EditParameter(mapped=True):
            return _edit_list(workflow, edit)
        case EditParameter(node=None):
            return _edit_output(workflow, edit)
        case EditParameter():
            return _edit_argument(workflow, edit)
        case InsertNode():
            return _insert(workflow, edit)
        case RemoveNode():
            return remove_node(workflow, edit)
        case Reorder():
            return _reorder(workflow, edit)
        case _:
            assert_never(edit)


def _swap(workflow: Workflow, edit: SwapTool) -> Workflow:
    node = _node(workflow, edit.node)
    if node.tool is None:
        raise EditRefused(f"{edit.node} calls {node.target}: there is no tool to swap")
    return workflow.replacing(_with(node, tool=edit.tool, arguments=edit.arguments))


def _edit_argument(workflow: Workflow, edit: EditParameter) -> Workflow:
    node = _node(workflow, edit.node or "")
    arguments = node.arguments
    if edit.remove and edit.renamed_from is not None:
        raise EditRefused("an edit either removes or renames")
    if edit.remove:
        return workflow.replacing(_with(node, arguments=remove_place(arguments, edit.pointer)))
    if edit.renamed_from is not None:
        arguments = remove_place(arguments, edit.renamed_from)
    return workflow.replacing(_with(node, arguments=set_place(arguments, edit.pointer, edit.value)))


def _edit_list(workflow: Workflow, edit: EditParameter) -> Workflow:
    node = _node(workflow, edit.node or "")
    if edit.remove or edit.renamed_from is not None or edit.pointer:
        raise EditRefused("the list of a mapped node is only replaced as a whole")
    if node.for_each is None:
        raise EditRefused(f"{node.id} is not mapped")
    if not any(isinstance(found, Found) for found in scan(edit.value)):
        raise EditRefused("a mapped list is read from an input or a node")
    changed = workflow.replacing(_with(node, for_each=edit.value))
    return _without_new_cycle(changed, node.id)


def _edit_output(workflow: Workflow, edit: EditParameter) -> Workflow:
    if edit.remove or edit.renamed_from is not None:
        raise EditRefused("declared outputs are neither removed nor renamed")
    replaced = read_place(workflow.outputs, edit.pointer)
    outputs = set_place(workflow.outputs, edit.pointer, edit.value)
    name = pointer_parts(edit.pointer)[0]
    loses_node = _reads_node(replaced, workflow) and not _reads_node(edit.value, workflow)
    if loses_node or not _reads_node(outputs[name], workflow):
        raise EditRefused(f"output {name!r} would no longer be fed by a node")
    return workflow.model_copy(update={"outputs": outputs})


def _insert(workflow: Workflow, edit: InsertNode) -> Workflow:
    planned = edit.planned
    if workflow.node(planned.id) is not None:
        raise EditRefused(f"there already is a node {planned.id!r}")
    if planned.expect:
        raise EditRefused("an inserted node brings no checks of its own")
    if edit.position > len(workflow.nodes):
        raise EditRefused(f"position {edit.position} is past the {len(workflow.nodes)} nodes")
    nodes = list(workflow.nodes)
    nodes.insert(edit.position, planned)
    return _without_new_cycle(workflow.model_copy(update={"nodes": tuple(nodes)}), planned.id)


def _reorder(workflow: Workflow, edit: Reorder) -> Workflow:
    node = _node(workflow, edit.node)
    if unknown := [other for other in edit.after if workflow.node(other) is None]:
        raise EditRefused(f"no node {', '.join(unknown)} to come after")
    if len(set(edit.after)) < len(edit.after):
        raise EditRefused("'after' names a node twice")
    return _without_new_cycle(workflow.replacing(_with(node, after=edit.after)), node.id)


def _without_new_cycle(workflow: Workflow, node_id: str) -> Workflow:
    if node_id in ancestors(workflow, node_id):
        raise EditRefused(f"{node_id} would wait for itself")
    return workflow


def _node(workflow: Workflow, node_id: str) -> Node:
    node = workflow.node(node_id)
    if node is None:
        raise EditRefused(f"no node {node_id!r}")
    return node


def _with(node: Node, **fields: Any) -> Node:  # noqa: ANN401  (values of the node's own fields)
    return node.model_copy(update=fields)


def _reads_node(value: JsonValue, workflow: Workflow) -> bool:
    return any(
        isinstance(found, Found)
        and found.reference.root == "nodes"
        and workflow.node(found.reference.name) is not None
        for found in scan(value)
    )

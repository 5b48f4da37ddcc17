"""What takes an edit back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from pydantic import JsonValue

from skills_store.workflow.edits.application import apply_edit
from skills_store.workflow.edits.models import (
    Edit,
    EditParameter,
    EditRefused,
    InsertNode,
    RemoveNode,
    Reorder,
    SwapTool,
)
from skills_store.workflow.edits.places import has_place, read_place, remove_place
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import pointer_parts

__all__ = ["invert_edit"]


def invert_edit(workflow: Workflow, edit: Edit) -> tuple[Edit, ...]:
    """Return the edits that, made in order after `edit`, give `workflow` back.

    Raises:
        EditRefused: the edit cannot be made, or no edits take it back: what was there dangles, or
            something dangling was waiting for the inserted node.
    """
    changed = apply_edit(workflow, edit)
    inverse = tuple(_inverse(workflow, changed, edit))
    restored = changed
    for step in inverse:
        restored = apply_edit(restored, step)
    if content_hash(restored) != content_hash(workflow):
        raise EditRefused("no edits take this one back")
    return inverse


def _inverse(before: Workflow, after: Workflow, edit: Edit) -> Iterator[Edit]:
    match edit:
        case SwapTool():
            node = before.nodes[before.index(edit.node)]
            if node.tool is not None:
                yield SwapTool(node=node.id, tool=node.tool, arguments=node.arguments)
        case EditParameter(mapped=True):
            mapped = before.nodes[before.index(edit.node or "")]
            yield EditParameter(node=mapped.id, pointer="", value=mapped.for_each, mapped=True)
        case EditParameter():
            node_id = edit.node
            value = before.outputs if node_id is None else before.nodes[before.index(node_id)].arguments
            yield from _restored(value, edit)
        case InsertNode():
            yield RemoveNode(node=edit.planned.id)
        case RemoveNode():
            yield from _put_back(before, after, edit)
        case Reorder():
            yield Reorder(node=edit.node, after=before.nodes[before.index(edit.node)].after)
        case _:
            assert_never(edit)


def _restored(value: dict[str, JsonValue], edit: EditParameter) -> tuple[EditParameter, ...]:
    if edit.remove:
        return (_put_value_back(value, edit.pointer, edit.node),)
    if edit.renamed_from is None:
        return (_take_value_back(value, edit.pointer, edit.node),)
    rest = remove_place(value, edit.renamed_from)
    taken = _take_value_back(rest, edit.pointer, edit.node)
    put = _put_value_back(value, edit.renamed_from, edit.node)
    if taken.remove and put.pointer == edit.renamed_from:
        return (put.model_copy(update={"renamed_from": edit.pointer}),)
    return taken, put


def _take_value_back(value: dict[str, JsonValue], pointer: str, node: str | None) -> EditParameter:
    if has_place(value, pointer):
        return EditParameter(node=node, pointer=pointer, value=read_place(value, pointer))
    *above, last = pointer_parts(pointer)
    if last == "-" and isinstance(parent := read_place(value, json_pointer(*above)), list):
        pointer = json_pointer(*above, len(parent))
    return EditParameter(node=node, pointer=pointer, remove=True)


def _put_value_back(value: dict[str, JsonValue], pointer: str, node: str | None) -> EditParameter:
    """Set what was taken out; out of a list, the whole list, since setting cannot insert."""
    above = json_pointer(*pointer_parts(pointer)[:-1])
    place = above if isinstance(read_place(value, above), list) else pointer
    return EditParameter(node=node, pointer=place, value=read_place(value, place))


def _put_back(before: Workflow, after: Workflow, edit: RemoveNode) -> Iterator[Edit]:
    position = before.index(edit.node)
    yield InsertNode(planned=before.nodes[position], position=position)
    for node in after.nodes:
        yield from _node_restored(before.nodes[before.index(node.id)], node)
    for name, value in before.outputs.items():
        if after.outputs[name] != value:
            yield EditParameter(node=None, pointer=json_pointer(name), value=value)


def _node_restored(before: Node, after: Node) -> Iterator[Edit]:
    for name, value in before.arguments.items():
        if after.arguments[name] != value:
            yield EditParameter(node=before.id, pointer=json_pointer(name), value=value)
    if before.for_each != after.for_each:
        yield EditParameter(node=before.id, pointer="", value=before.for_each, mapped=True)
    if before.after != after.after:
        yield Reorder(node=before.id, after=before.after)

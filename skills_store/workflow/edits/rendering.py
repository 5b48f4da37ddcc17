"""One readable line for an edit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import assert_never

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
from skills_store.workflow.edits.places import read_place
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import ExpressionError, parse_reference, pointer_parts

__all__ = ["render_call", "render_edit", "render_value"]

_VALUE_LENGTH = 80
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x7f\x85\u2028\u2029"}


def render_edit(edit: Edit, before: Workflow | None = None) -> str:
    """Return an edit as one line.

    Args:
        edit: what is made.
        before: the workflow it is made on, to show what stood there; None when that is not known.
    """
    match edit:
        case SwapTool():
            node = before.node(edit.node) if before else None
            old = f"{node.target} → " if node else ""
            return f"{edit.node}: call {old}{render_call(str(edit.tool), edit.arguments)}"
        case EditParameter():
            return f"{edit.node or 'outputs'}: {_parameter(edit, before)}"
        case InsertNode():
            return f"insert {_planned(edit.planned)}"
        case RemoveNode():
            rewired = "".join(f", {old} → {new}" for old, new in edit.rewired.items())
            return f"remove {edit.node}{rewired}"
        case Reorder():
            return f"{edit.node}: after {', '.join(edit.after) or 'nothing'}"
        case _:
            assert_never(edit)


def render_call(target: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return `server/tool(name=value, …)`, values cut."""
    return f"{target}({', '.join(f'{name}={render_value(value)}' for name, value in arguments.items())})"


def render_value(value: JsonValue, limit: int | None = _VALUE_LENGTH) -> str:
    """Return a value on one line: references bare, all else as JSON.

    Args:
        value: any JSON value.
        limit: characters at which it is cut; None: never.
    """
    text = json.dumps(value, ensure_ascii=False).translate(_LINE_ENDS)
    if isinstance(value, str) and _is_reference(value):
        text = value
    return text if limit is None or len(text) <= limit else f"{text[: limit - 1]}…"


def _is_reference(text: str) -> bool:
    try:
        parse_reference(text)
    except ExpressionError:
        return False
    return True


def _parameter(edit: EditParameter, before: Workflow | None) -> str:
    name = "for_each" if edit.mapped else _place(edit.pointer)
    new = render_value(edit.value)
    if edit.mapped:
        return f"{name} = {new}"
    if edit.renamed_from is not None:
        old = _old(edit.node, edit.renamed_from, before)
        changed = "" if old == new else f" = {new}"
        return f"rename {_place(edit.renamed_from)} → {name}{changed}"
    old = _old(edit.node, edit.pointer, before)
    if edit.remove:
        return f"remove {name}" if old is None else f"remove {name} ({old})"
    return f"{name} = {new}" if old is None else f"{name} {old} → {new}"


def _old(node_id: str | None, pointer: str, before: Workflow | None) -> str | None:
    if before is None:
        return None
    node = before.node(node_id) if node_id else None
    try:
        return render_value(read_place(node.arguments if node else before.outputs, pointer))
    except EditRefused:
        return None


def _place(pointer: str) -> str:
    return "/".join(pointer_parts(pointer)) or "everything"


def _planned(node: Node) -> str:
    each = f" for each {render_value(node.for_each)}" if node.for_each is not None else ""
    when = f" when {render_value(node.when)}" if node.when is not None else ""
    after = f" after {', '.join(node.after)}" if node.after else ""
    return f"{node.id}: {render_call(node.target, node.arguments)}{each}{when}{after}"

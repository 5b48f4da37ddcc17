"""The difference of two workflows as lines a person reads: one per node, argument, output, check.

Lines start with `-` and `+` as in a unified diff; unchanged parts are named only where something
inside of them changed. The same two workflows always give the same text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from skills_store.workflow.edits.rendering import render_value
from skills_store.workflow.model import Node, Workflow

__all__ = ["render_diff"]

_LINE_LENGTH = 200
_Lines = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Block:
    """A titled part of a workflow; `lines` by what each is about."""

    title: str
    lines: _Lines


def render_diff(before: Workflow, after: Workflow) -> str:
    """Return the changed lines, empty when the two say the same."""
    old, new = _blocks(before), _blocks(after)
    keys = [*new, *(key for key in old if key not in new)]
    lines = [line for key in keys for line in _block_diff(old.get(key), new.get(key))]
    return "\n".join([*lines, *_order_diff(before, after)])


def _blocks(workflow: Workflow) -> dict[str, _Block]:
    blocks = {
        "workflow": _Block("workflow", _heading(workflow)),
        "inputs": _Block("inputs", _inputs(workflow.inputs)),
    }
    for node in workflow.nodes:
        blocks[f"node {node.id}"] = _Block(f"node {node.id}: {node.target}", _node(node))
    outputs = {name: f"{name} = {_value(value)}" for name, value in workflow.outputs.items()}
    blocks["outputs"] = _Block("outputs", outputs)
    return blocks


def _heading(workflow: Workflow) -> _Lines:
    lines = {"name": f"name: {workflow.name}"}
    if workflow.description is not None:
        lines["description"] = f"description: {_value(workflow.description)}"
    return lines | _checks(workflow.expect)


def _inputs(schema: Mapping[str, JsonValue]) -> _Lines:
    lines: dict[str, str] = {}
    for keyword, value in schema.items():
        if keyword == "properties" and isinstance(value, dict):
            lines |= {f"properties {name}": f"{name}: {_value(part)}" for name, part in value.items()}
        else:
            lines[keyword] = f"({keyword}) {_value(value)}"
    return lines


def _node(node: Node) -> _Lines:
    lines = {f"argument {name}": f"{name} = {_value(value)}" for name, value in node.arguments.items()}
    if node.for_each is not None:
        lines["for_each"] = f"(for each) {_value(node.for_each)}"
    if node.when is not None:
        lines["when"] = f"(when) {_value(node.when)}"
    if node.after:
        lines["after"] = f"(after) {', '.join(node.after)}"
    if node.timeout_seconds is not None:
        lines["timeout"] = f"(timeout) {node.timeout_seconds} s"
    return lines | _checks(node.expect)


def _checks(expect: tuple[str, ...]) -> dict[str, str]:
    return {f"expect {text}": f"(expect) {text}" for text in expect}


def _value(value: JsonValue) -> str:
    return render_value(value, None)


def _block_diff(old: _Block | None, new: _Block | None) -> Iterator[str]:
    inside = list(_line_diff(old.lines if old else {}, new.lines if new else {}))
    if old and new and old.title == new.title:
        yield from [f"  {new.title}", *inside] if inside else []
        return
    if old:
        yield f"- {old.title}"
    if new:
        yield f"+ {new.title}"
    yield from inside


def _line_diff(old: _Lines, new: _Lines) -> Iterator[str]:
    for key in [*old, *(key for key in new if key not in old)]:
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        start = _first_difference(before or "", after or "")
        if before is not None:
            yield f"-   {_cut(before, start)}"
        if after is not None:
            yield f"+   {_cut(after, start)}"


def _first_difference(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _cut(line: str, changed_at: int) -> str:
    """Return a line short enough to read, with the place of the change in it."""
    if len(line) <= _LINE_LENGTH:
        return line
    head = line[:_LINE_LENGTH]
    return f"{head}…" if changed_at < _LINE_LENGTH else f"{head[:40]}…{line[changed_at:][:_LINE_LENGTH]}"


def _order_diff(before: Workflow, after: Workflow) -> Iterator[str]:
    old = [node.id for node in before.nodes if after.node(node.id) is not None]
    new = [node.id for node in after.nodes if before.node(node.id) is not None]
    if old != new:
        yield "  order of the document"
        yield f"-   {', '.join(old)}"
        yield f"+   {', '.join(new)}"

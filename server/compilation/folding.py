"""Folding: calls that repeat one shape over the items of a list become one mapped node.

Only whole lists fold: as many calls as items, in their order. Whoever read the single answers must
have read them all as a list, else the calls stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from server.planning.each import read_of_each
from server.planning.literals import mentions
from skills_store.workflow.bounds import json_equal
from skills_store.workflow.graph import ancestors
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import (
    ExpressionError,
    Found,
    Reference,
    Scope,
    Unresolved,
    parse_reference,
    pointer_parts,
    resolve_pointer,
)
from skills_store.workflow.scan import node_references, scan

__all__ = ["Folded", "fold_repeats"]

_LEAST = 2


@dataclass(frozen=True, slots=True)
class Folded:
    """A workflow after folding, and where everything went."""

    workflow: Workflow
    outputs: dict[str, JsonValue]
    """Node outputs by id."""
    given: dict[str, JsonValue]
    """Lists that calls run over and that became inputs."""
    moved: dict[str, tuple[str, int]]
    """For each call that was folded: the mapped node and the index of its item."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Calls of one shape, in order, and by pointer what differs between their arguments."""

    nodes: tuple[Node, ...]
    differing: Mapping[str, tuple[JsonValue, ...]]


@dataclass(frozen=True, slots=True)
class _Fold:
    """What the calls run over, what each takes of an item, and the input the list is, if it is one."""

    for_each: JsonValue
    arguments: dict[str, JsonValue]
    given: tuple[str, list[JsonValue]] | None = None


def fold_repeats(
    workflow: Workflow, outputs: Mapping[str, JsonValue], task: str, *, outputs_follow: bool
) -> Folded:
    """Return the workflow with repeated calls folded.

    Args:
        workflow: what ran, its data flow recovered.
        outputs: full node outputs by id.
        task: the task in a person's words; lists it says become inputs.
        outputs_follow: whether an output that read the last of the calls reads them all afterwards;
            else such calls do not fold.
    """
    known, given, moved = dict(outputs), dict[str, JsonValue](), dict[str, tuple[str, int]]()
    for group in list(_groups(workflow)):
        fold = _over_output(group, known) or _over_said(group, task, given)
        if fold is None:
            continue
        each = _each_id(group, workflow)
        folded = _folded(workflow, group, fold, each, outputs_follow=outputs_follow)
        if folded is None:
            continue
        workflow = folded
        known[each] = [known.pop(node.id, None) for node in group.nodes]
        moved |= {node.id: (each, item) for item, node in enumerate(group.nodes)}
        if fold.given is not None:
            given[fold.given[0]] = fold.given[1]
    return Folded(workflow, known, given, moved)


def _groups(workflow: Workflow) -> Iterator[_Group]:
    """Yield calls of one tool whose arguments have the same places and differ in some."""
    by_shape: dict[str, list[Node]] = {}
    for node in workflow.nodes:
        if node.tool is not None and node.for_each is None and node.when is None and not node.expect:
            places = sorted(_leaves(node.arguments))
            by_shape.setdefault(json.dumps([str(node.tool), places]), []).append(node)
    for nodes in by_shape.values():
        if len(nodes) < _LEAST or _depend_on_each_other(nodes, workflow):
            continue
        leaves = [_leaves(node.arguments) for node in nodes]
        differing = {
            pointer: tuple(one[pointer] for one in leaves)
            for pointer in leaves[0]
            if any(not json_equal(one[pointer], leaves[0][pointer]) for one in leaves)
        }
        if differing:
            yield _Group(tuple(nodes), differing)


def _depend_on_each_other(nodes: Sequence[Node], workflow: Workflow) -> bool:
    loose = workflow.model_copy(
        update={"nodes": tuple(node.model_copy(update={"after": ()}) for node in workflow.nodes)}
    )
    ids = {node.id for node in nodes}
    return any(ancestors(loose, node.id) & ids for node in nodes)


def _leaves(value: JsonValue, pointer: str = "") -> dict[str, JsonValue]:
    match value:
        case dict() if value:
            return {
                p: v for k, item in value.items() for p, v in _leaves(item, pointer + json_pointer(k)).items()
            }
        case list() if value:
            return {p: v for i, item in enumerate(value) for p, v in _leaves(item, f"{pointer}/{i}").items()}
        case _:
            return {pointer: value}


def _over_output(group: _Group, outputs: Mapping[str, JsonValue]) -> _Fold | None:
    """Return the fold over a list of an earlier output, None where the calls do not cover one."""
    lists: set[str] = set()
    items: dict[str, JsonValue] = {}
    for pointer, values in group.differing.items():
        found = _list_of(values, outputs)
        if found is None:
            return None
        lists.add(str(found[0]))
        items[pointer] = f"$item#{found[1]}" if found[1] else "$item"
    if len(lists) != 1:
        return None
    return _Fold(lists.pop(), _replaced(group.nodes[0].arguments, items))


def _list_of(values: Sequence[JsonValue], outputs: Mapping[str, JsonValue]) -> tuple[Reference, str] | None:
    """Return the list that references go through item by item, and the rest of their pointers."""
    references = [reference for value in values if (reference := _reference(value)) is not None]
    if len(references) != len(values) or len({r.name for r in references}) > 1:
        return None
    source = references[0]
    parts = [pointer_parts(reference.pointer) for reference in references]
    for at, part in enumerate(parts[0]):
        if part != "0" or any(len(other) != len(parts[0]) for other in parts):
            continue
        same = all(other[:at] == parts[0][:at] and other[at + 1 :] == parts[0][at + 1 :] for other in parts)
        if same and [other[at] for other in parts] == [str(i) for i in range(len(parts))]:
            whole = source.at(json_pointer(*parts[0][:at]))
            if _length(whole, outputs) == len(values):
                return whole, json_pointer(*parts[0][at + 1 :])
    return None


def _reference(value: JsonValue) -> Reference | None:
    if not isinstance(value, str) or not value.startswith("$") or value.startswith("$$"):
        return None
    try:
        reference = parse_reference(value)
    except ExpressionError:
        return None
    return reference if reference.root == "nodes" else None


def _length(reference: Reference, outputs: Mapping[str, JsonValue]) -> int | None:
    scope = Scope(outputs=outputs)
    try:
        value = resolve_pointer(scope.outputs[reference.name], reference)
    except (KeyError, Unresolved):
        return None
    return len(value) if isinstance(value, list) else None


def _over_said(group: _Group, task: str, taken: Mapping[str, JsonValue]) -> _Fold | None:
    """Return the fold over values that the task says, None where it does not say them all."""
    if len(group.differing) != 1:
        return None
    ((pointer, values),) = group.differing.items()
    if not all(isinstance(value, str | int | float) and mentions(task, value) for value in values):
        return None
    if len({json.dumps(value) for value in values}) != len(values):
        return None
    stem = re.sub(r"\W+", "_", pointer_parts(pointer)[0], flags=re.ASCII).strip("_").lower() or "value"
    name = next(n for n in (f"{stem}s", *(f"{stem}s_{i}" for i in range(2, 100))) if n not in taken)
    arguments = _replaced(group.nodes[0].arguments, {pointer: "$item"})
    return _Fold(f"$inputs.{name}", arguments, (name, list(values)))


def _replaced(arguments: dict[str, JsonValue], items: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    def put(value: JsonValue, pointer: str) -> JsonValue:
        if pointer in items:
            return items[pointer]
        match value:
            case dict():
                return {key: put(item, pointer + json_pointer(key)) for key, item in value.items()}
            case list():
                return [put(item, f"{pointer}/{index}") for index, item in enumerate(value)]
            case _:
                return value

    return {key: put(value, json_pointer(key)) for key, value in arguments.items()}


def _each_id(group: _Group, workflow: Workflow) -> str:
    stem = f"{group.nodes[0].id[:50]}_each"
    options = (stem, *(f"{stem}_{number}" for number in range(2, 1_000)))
    return next(option for option in options if workflow.node(option) is None)


def _folded(
    workflow: Workflow, group: _Group, fold: _Fold, each: str, *, outputs_follow: bool
) -> Workflow | None:
    """Return the workflow with the group as one node, None where somebody reads a single answer."""
    ids = [node.id for node in group.nodes]
    nodes: list[Node] = []
    for node in workflow.nodes:
        after = tuple(dict.fromkeys(each if other in ids else other for other in node.after))
        if node.id == ids[0]:
            changes = {"id": each, "for_each": fold.for_each, "arguments": fold.arguments}
            nodes.append(node.model_copy(update={**changes, "after": tuple(a for a in after if a != each)}))
        elif node.id not in ids:
            arguments = {key: _read_as_list(value, ids, each) for key, value in node.arguments.items()}
            nodes.append(node.model_copy(update={"arguments": arguments, "after": after}))
    read = _output_read if outputs_follow else _read_as_list
    outputs = {name: read(value, ids, each) for name, value in workflow.outputs.items()}
    folded = workflow.model_copy(update={"nodes": tuple(nodes), "outputs": outputs})
    return None if _reads_any(folded, ids) else folded


def _reads_any(workflow: Workflow, ids: Sequence[str]) -> bool:
    found = [*scan(workflow.outputs), *(one for node in workflow.nodes for one in node_references(node))]
    named = {node_id for text in workflow.expect for node_id in ids if f"nodes.{node_id}" in text}
    return bool(named) or any(
        isinstance(one, Found) and one.reference.root == "nodes" and one.reference.name in ids
        for one in found
    )


def _read_as_list(value: JsonValue, ids: Sequence[str], each: str) -> JsonValue:
    """Return the value with lists of all the single answers read from the mapped node."""
    match value:
        case list() if (pointer := _common_pointer(value, ids)) is not None:
            return read_of_each(each, pointer)
        case list():
            return [_read_as_list(item, ids, each) for item in value]
        case dict():
            return {key: _read_as_list(item, ids, each) for key, item in value.items()}
        case _:
            return value


def _output_read(value: JsonValue, ids: Sequence[str], each: str) -> JsonValue:
    """Return an output that read the last single answer read from them all: they are one result now."""
    reference = _reference(value)
    if reference is not None and reference.name == ids[-1]:
        return read_of_each(each, reference.pointer)
    return _read_as_list(value, ids, each)


def _common_pointer(values: Sequence[JsonValue], ids: Sequence[str]) -> str | None:
    references = [reference for value in values if (reference := _reference(value)) is not None]
    pointers = {reference.pointer for reference in references}
    if [reference.name for reference in references] != list(ids) or len(values) != len(ids):
        return None
    return pointers.pop() if len(pointers) == 1 else None

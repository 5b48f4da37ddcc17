"""Another plan of the same task as edits of a workflow: a candidate is a base plus edits, always.

What the plan calls is put in, the declared outputs read it, and what nobody needs any more is taken
out, as far as that may be: a node with a check, or one whose call cannot be undone, stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from server.evolution.building import edited
from server.planning.view import references_in
from skills_store.workflow.edits import Edit, EditParameter, EditRefused, InsertNode, RemoveNode
from skills_store.workflow.graph import dependencies, unused
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import Reference, map_references

__all__ = ["edits_towards"]


def edits_towards(
    before: Workflow, plan: Workflow, may_remove: Callable[[Node], bool]
) -> tuple[Edit, ...] | None:
    """Return edits that have a workflow do what a plan does; None when an output would be left as it is.

    Args:
        before: what is edited; its declared outputs stay.
        plan: of the same task, its outputs by the same names, or a single one each.
        may_remove: whether a node may be taken out of the workflow.
    """
    names = _fresh_names(before, plan)
    ordered = _in_order(plan)
    length = len(before.nodes)
    edits: list[Edit] = [
        InsertNode(planned=_renamed(node, names), position=length + place, because="another plan")
        for place, node in enumerate(ordered)
    ]
    for name in before.outputs:
        value = plan.outputs.get(name) if len(plan.outputs) > 1 else next(iter(plan.outputs.values()), None)
        if not references_in(value):
            return None
        changed = map_references(value, lambda found: _under(found, names))
        pointer = json_pointer(name)
        edits.append(EditParameter(node=None, pointer=pointer, value=changed, because="another plan"))
    try:
        return (*edits, *_clearing(edited(before, edits), before, may_remove))
    except EditRefused:
        return None


def _clearing(after: Workflow, before: Workflow, may_remove: Callable[[Node], bool]) -> list[Edit]:
    """Return removals of old nodes that no output needs any more, readers before what they read."""
    edits: list[Edit] = []
    tried: set[str] = set()
    while True:
        idle = unused(after)
        old = [n for n in reversed(after.nodes) if n.id in idle and before.node(n.id) and n.id not in tried]
        if not old:
            return edits
        for node in old:
            tried.add(node.id)
            edit = RemoveNode(node=node.id, because="the other plan does without it")
            if not may_remove(node):
                continue
            try:
                after = edited(after, [edit])
            except EditRefused:
                continue
            edits.append(edit)
            tried -= {other.id for other in after.nodes if other.id in idle}
            break


def _in_order(plan: Workflow) -> list[Node]:
    """Return the nodes of a plan, each after those it depends on as far as there is such an order."""
    edges, placed = dependencies(plan), list[Node]()
    waiting = list(plan.nodes)
    while waiting:
        done = {node.id for node in placed}
        ready = next((node for node in waiting if edges[node.id] <= done), waiting[0])
        placed.append(ready)
        waiting.remove(ready)
    return placed


def _fresh_names(before: Workflow, plan: Workflow) -> dict[str, str]:
    taken = {node.id for node in before.nodes}
    names: dict[str, str] = {}
    for node in plan.nodes:
        stem = node.id[:58]
        name = next(n for i in range(1, 1000) if (n := node.id if i == 1 else f"{stem}_{i}") not in taken)
        names[node.id] = name
        taken.add(name)
    return names


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    def change(found: Reference) -> Reference:
        return _under(found, names)

    return node.model_copy(
        update={
            "id": names[node.id],
            "arguments": {key: map_references(value, change) for key, value in node.arguments.items()},
            "for_each": map_references(node.for_each, change),
            "when": map_references(node.when, change),
            "after": tuple(names[other] for other in node.after if other in names),
            "expect": (),
        }
    )


def _under(found: Reference, names: Mapping[str, str]) -> Reference:
    if found.root != "nodes":
        return found
    return Reference("nodes", names.get(found.name, found.name), found.pointer)

"""Who waits for whom in a workflow: edges, waves, ancestors, and the nodes its outputs stand on.

Edges are references and `after`, nothing else; what an edge names and is not there is no edge here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from skills_store.workflow.assertions import named_nodes
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found
from skills_store.workflow.scan import node_references, scan

__all__ = [
    "CycleFound",
    "ancestors",
    "cycles",
    "data_dependencies",
    "dependencies",
    "descendants",
    "needed",
    "output_nodes",
    "reaching_inputs",
    "unused",
    "waves",
]


class CycleFound(ValueError):  # noqa: N818  (named as the fault it becomes)
    """Nodes that wait for each other; `nodes` in the order of waiting, each once."""

    def __init__(self, nodes: tuple[str, ...]) -> None:
        super().__init__(f"nodes wait for each other: {' → '.join((*nodes, nodes[0]))}")
        self.nodes = nodes


def data_dependencies(workflow: Workflow) -> dict[str, frozenset[str]]:
    """Return, by node id, the known nodes whose output the node reads."""
    known = frozenset(node.id for node in workflow.nodes)
    return {node.id: _read(node) & known for node in workflow.nodes}


def dependencies(workflow: Workflow) -> dict[str, frozenset[str]]:
    """Return, by node id in document order, the known nodes it waits for: data and `after`."""
    known = frozenset(node.id for node in workflow.nodes)
    return {node.id: (_read(node) | set(node.after)) & known for node in workflow.nodes}


def waves(workflow: Workflow) -> list[list[str]]:
    """Return the ids that may run together, wave by wave, each wave in document order.

    Raises:
        CycleFound: some nodes wait for each other.
    """
    edges = dependencies(workflow)
    position = {node_id: index for index, node_id in enumerate(edges)}
    order = sorted(position, key=position.__getitem__)
    sorter = TopologicalSorter({n: sorted(edges[n], key=position.__getitem__) for n in order})
    try:
        sorter.prepare()
    except CycleError as error:
        # The library lists the cycle with its first node repeated at the end, dependency first.
        raise CycleFound(_from_first(list(reversed(error.args[1][:-1])), position)) from error
    found: list[list[str]] = []
    while sorter.is_active():
        ready = sorter.get_ready()
        found.append(sorted(ready, key=position.__getitem__))
        sorter.done(*ready)
    return found


def cycles(workflow: Workflow) -> list[tuple[str, ...]]:
    """Return the groups of nodes that wait for each other, each and all in document order.

    A node that reads its own output is told as a dangling reference and is no group of its own; one
    that comes after itself is.
    """
    try:
        waves(workflow)
    except CycleFound:
        edges = dependencies(workflow)
        before = {node_id: _closure(edges[node_id], edges) for node_id in edges}
    else:
        return []
    found: list[tuple[str, ...]] = []
    for node in workflow.nodes:
        group = tuple(other for other in edges if node.id in before[other] and other in before[node.id])
        if group not in found and (len(group) > 1 or node.id in node.after):
            found.append(group)
    return found


def ancestors(workflow: Workflow, node_id: str) -> frozenset[str]:
    """Return all nodes that must have finished before; holds the node itself only in a cycle."""
    edges = dependencies(workflow)
    return _closure(edges.get(node_id, ()), edges)


def descendants(workflow: Workflow, node_id: str) -> frozenset[str]:
    """Return all nodes that wait for it, directly or not."""
    edges = dependencies(workflow)
    waiting = {n: frozenset(other for other in edges if n in edges[other]) for n in edges}
    return _closure(waiting.get(node_id, ()), waiting)


def output_nodes(workflow: Workflow) -> frozenset[str]:
    """Return the known nodes that outputs read directly."""
    known = frozenset(node.id for node in workflow.nodes)
    return known & {
        found.reference.name
        for found in scan(workflow.outputs)
        if isinstance(found, Found) and found.reference.root == "nodes"
    }


def needed(workflow: Workflow) -> frozenset[str]:
    """Return the nodes the outputs stand on, and those the workflow's assertions name.

    Closed under data dependencies and under `after`.
    """
    named = {node_id for text in workflow.expect for node_id in named_nodes(text)}
    edges = dependencies(workflow)
    roots = output_nodes(workflow) | (named & edges.keys())
    return roots | _closure(roots, edges)


def reaching_inputs(workflow: Workflow) -> frozenset[str]:
    """Return the inputs that outputs read, directly or through the nodes they stand on by data."""
    roots = output_nodes(workflow)
    nodes = roots | _closure(roots, data_dependencies(workflow))
    found = [item for item in scan(workflow.outputs) if isinstance(item, Found)]
    found += [item for node in workflow.nodes if node.id in nodes for item in node_references(node)]
    return frozenset(item.reference.name for item in found if item.reference.root == "inputs")


def unused(workflow: Workflow) -> frozenset[str]:
    """Return the nodes nothing needed stands on or waits for."""
    return frozenset(node.id for node in workflow.nodes) - needed(workflow)


def _read(node: Node) -> frozenset[str]:
    return frozenset(f.reference.name for f in node_references(node) if f.reference.root == "nodes")


def _closure(start: Iterable[str], edges: Mapping[str, frozenset[str]]) -> frozenset[str]:
    reached: set[str] = set()
    waiting = list(start)
    while waiting:
        node_id = waiting.pop()
        if node_id not in reached:
            reached.add(node_id)
            waiting.extend(edges.get(node_id, ()))
    return frozenset(reached)


def _from_first(cycle: list[str], position: Mapping[str, int]) -> tuple[str, ...]:
    first = min(range(len(cycle)), key=lambda index: position[cycle[index]])
    return tuple(cycle[first:] + cycle[:first])

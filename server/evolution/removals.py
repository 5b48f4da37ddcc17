"""Taking nodes out: those nobody reads, and needless steps in a chain.

Paper: EvoFlux (tool removal). Differs: what read a removed node is healed, or the node stays; what
costs is never taken out lightly, since its purpose is its effect: of a plan made for the task it may
go where the task asks for no such thing. One that ran cannot be left out any more: the evaluation says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from server.evolution.proposal import Proposal, propose_one
from server.planning.likeness import pointer_cost
from server.planning.needless import is_asked, spoken_for
from server.planning.view import View, references_in
from skills_store.workflow.edits import RemoveNode
from skills_store.workflow.model import Node
from skills_store.workflow.references import Reference

__all__ = ["may_leave_out", "propose_bypass", "propose_removal", "propose_unasked_removals"]

_UNASKED_COST = 0.3


def may_leave_out(view: View, node: Node) -> bool:
    """Return whether another plan may do without a node: it repeats, or a planner wrote it unasked."""
    if node.tool is None or view.world.may_repeat(node.tool):
        return True
    if not view.world.planned or node.expect:
        return False
    return not is_asked(node, view.world, spoken_for(view.workflow, view.world))


def propose_unasked_removals(view: View) -> Iterator[Proposal]:
    """Yield the removal, at once, of the changes that no output stands on and the task does not ask for."""
    idle = {node.id for node in view.unused_nodes}
    found = [
        node
        for node in view.workflow.nodes
        if node.id in idle
        and node.tool
        and not view.world.may_repeat(node.tool)
        and may_leave_out(view, node)
    ]
    if found:
        edits = [
            RemoveNode(node=node.id, because=f"{node.tool} was not asked for, and no output needs it")
            for node in reversed(found)
        ]
        yield Proposal(tuple(edits), _UNASKED_COST)


def propose_removal(view: View, node: Node, *, cost: float) -> Iterator[Proposal]:
    """Yield the removal of a node nobody reads. A check it carries keeps it."""
    if node in view.unused_nodes and not node.expect:
        because = f"nothing reads {node.id!r}"
        yield propose_one(RemoveNode(node=node.id, because=because), cost)


def propose_bypass(view: View, node: Node, *, cost: float) -> Iterator[Proposal]:
    """Yield removals of a node in a chain, its readers reading what it read."""
    if node.expect:
        return
    readers = [
        found.reference
        for found in view.all_references
        if found.reference.root == "nodes" and found.reference.name == node.id
    ]
    if node.tool is not None and not view.world.may_repeat(node.tool):
        cost += 1.5
    read = [found.reference for found in references_in([*node.arguments.values()])]
    for source in dict.fromkeys(reference for reference in read if reference.root == "nodes"):
        for other, more in _nearby(view, source, readers):
            because = f"{node.id!r} adds nothing between {other} and its readers"
            rewired = dict.fromkeys(map(str, readers), str(other))
            yield propose_one(RemoveNode(node=node.id, rewired=rewired, because=because), cost + more)


def _nearby(view: View, source: Reference, readers: list[Reference]) -> list[tuple[Reference, float]]:
    """Return a reference and other places of the same output, with how far each is from what is read."""
    node = view.workflow.node(source.name)
    places: dict[Reference, float] = {source: 0.2}
    for leaf in view.leaves(node) if node else []:
        cost = min((pointer_cost(reader, leaf, "") for reader in readers), default=1.0)
        places[source.at(leaf.pointer)] = 0.6 * cost
    return sorted(places.items(), key=lambda place: (place[1], str(place[0])))[:8]

"""The order of steps that change something: as a model listed them, since its plans say no other.

Models name data and forget that a table must be there before rows go into it. Steps on one server
keep their places where either of two is not free; free ones run side by side as their data lets them.
"""

from __future__ import annotations

from server.planning.view import World
from skills_store.workflow.graph import ancestors, descendants
from skills_store.workflow.model import Node, Workflow

__all__ = ["in_sequence"]


def in_sequence(workflow: Workflow, world: World) -> Workflow:
    """Return the workflow with steps on one server in the order they are listed, where that may matter."""
    for place, node in enumerate(workflow.nodes):
        for earlier in reversed(workflow.nodes[:place]):
            if not _matters(earlier, node, world) or earlier.id in ancestors(workflow, node.id):
                continue
            if earlier.id in descendants(workflow, node.id):
                continue  # its data says the opposite
            current = workflow.nodes[place]
            after = (*current.after, earlier.id)
            workflow = workflow.replacing(current.model_copy(update={"after": after}))
    return workflow


def _matters(earlier: Node, later: Node, world: World) -> bool:
    """Return whether the order of two steps may change what they answer."""
    if earlier.tool is None or later.tool is None or earlier.tool.server != later.tool.server:
        return False
    return not (world.effect(earlier.tool).is_free and world.effect(later.tool).is_free)

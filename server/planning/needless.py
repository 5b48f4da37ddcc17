"""Steps a plan does not need, taken out before anything runs.

The most frequent fault of compact models is a step nobody asked for, and no check sees it: it is
valid and often runs. A step that nothing reads goes; one that changes the world is kept where the
task speaks of it, since then its effect is its purpose.
"""

from __future__ import annotations

from catalog.similarity import name_similarity, words
from catalog.tools import ToolId
from catalog.vocabulary import WEAK_WORDS
from server.planning.deterministic import last_nodes, likely_output
from server.planning.view import View, World, references_in
from skills_store.workflow.edits import EditRefused, RemoveNode, apply_edit
from skills_store.workflow.graph import dependencies
from skills_store.workflow.model import Node, Workflow

__all__ = ["is_asked", "needless_nodes", "spoken_for", "without_needless"]

_SPOKEN = 0.8


def without_needless(workflow: Workflow, world: World) -> Workflow:
    """Return the workflow without the steps it does not need; the last one always stays."""
    while len(workflow.nodes) > 1:
        found = needless_nodes(workflow, world)
        shorter = next((less for node in found if (less := _without(workflow, node, world))), None)
        if shorter is None:
            return workflow
        workflow = shorter
    return workflow


def needless_nodes(workflow: Workflow, world: World) -> list[Node]:
    """Return the nodes that could go at once: read by no other; free, or last there and not asked for."""
    view = View(world, workflow)
    waited_for = frozenset[str]().union(*dependencies(workflow).values())
    unread = [node for node in workflow.nodes if node.id not in waited_for and not node.expect]
    idle = {node.id for node in view.unused_nodes}
    last = {node.tool.server: node.id for node in workflow.nodes if node.tool is not None}
    found: list[Node] = []
    for node in unread:
        is_last = node.tool is not None and last[node.tool.server] == node.id
        if _is_free(node, world):
            found += [node] if node.id in idle else []
        elif is_last and not is_asked(node, world):  # what comes later there may stand on its effect
            found.append(node)
    return found


def _is_free(node: Node, world: World) -> bool:
    return node.tool is not None and world.effect(node.tool).is_free


def is_asked(node: Node, world: World, spoken_for: frozenset[str] = frozenset()) -> bool:
    """Return whether the task speaks of what a node's tool does, by any telling word of its name.

    Args:
        node: the step.
        world: has the task.
        spoken_for: words that the task says of other steps.
    """
    if node.tool is None:
        return True
    telling = _telling(node.tool) - spoken_for
    said = words(world.task)
    return not telling or any(name_similarity(word, other) >= _SPOKEN for word in telling for other in said)


def spoken_for(workflow: Workflow, world: World) -> frozenset[str]:
    """Return the names of free steps of which a task says every telling word, two at least, as words."""
    said, found = set(words(world.task)), frozenset[str]()
    for node in workflow.nodes:
        if node.tool is not None and _is_free(node, world):
            telling = _telling(node.tool)
            found |= telling if len(telling) > 1 and telling <= said else frozenset()
    return found


def _telling(tool: ToolId) -> frozenset[str]:
    return frozenset(word for word in words(tool.tool) if word not in WEAK_WORDS)


def _without(workflow: Workflow, node: Node, world: World) -> Workflow | None:
    """Return the workflow without a node, outputs that read it reading what is most likely meant."""
    rest = tuple(other for other in workflow.nodes if other.id != node.id)
    shorter = workflow.model_copy(update={"nodes": rest})
    view = View(world, shorter.model_copy(update={"nodes": last_nodes(shorter)}))
    outputs = {
        name: likely_output(view, name)
        if any(
            found.reference.name == node.id
            for found in references_in(value)
            if found.reference.root == "nodes"
        )
        else value
        for name, value in workflow.outputs.items()
    }
    try:
        return apply_edit(
            workflow.model_copy(update={"outputs": outputs}),
            RemoveNode(node=node.id, because=f"nothing reads {node.id!r}"),
        )
    except EditRefused:
        return None

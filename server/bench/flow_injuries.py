"""Injuries to the flow: references to nothing, and steps or values in the wrong order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from server.bench.injury import Injury, Scene, changed_references, node_references
from server.bench.mistakes import OUTPUT_KEYS, misnamed_nodes
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Reference, find_references, map_references

__all__ = ["dangling_references", "wrong_orders"]


def dangling_references(scene: Scene) -> Iterator[Injury]:
    """Yield workflows with one reference to a key, node or input that is not there."""
    for node in scene.workflow.nodes:
        for right in node_references(node):
            for variant, wrong in _dangling(scene.workflow, right):
                changed = changed_references(node, _only(right, wrong))
                detail = f"{node.id} reads {wrong} instead of {right}"
                yield Injury(variant, node.id, detail, scene.workflow.replacing(changed))
    for right in dict.fromkeys(f.reference for f in find_references(dict(scene.workflow.outputs))):
        for variant, wrong in _dangling(scene.workflow, right):
            change = _only(right, wrong)
            outputs = {key: map_references(v, change) for key, v in scene.workflow.outputs.items()}
            detail = f"the outputs read {wrong} instead of {right}"
            yield Injury(variant, None, detail, scene.workflow.model_copy(update={"outputs": outputs}))


def _only(right: Reference, wrong: Reference) -> Callable[[Reference], Reference]:
    """Return the change of one reference and no other."""
    return lambda reference: wrong if reference == right else reference


def _dangling(workflow: Workflow, right: Reference) -> Iterator[tuple[str, Reference]]:
    match right.root:
        case "inputs":
            for name in (f"{right.name}_value", f"input_{right.name}", right.name[:-1]):
                if name and name not in _input_names(workflow):
                    yield "input", Reference("inputs", name, right.pointer)
        case "nodes":
            for node_id in misnamed_nodes(right.name):
                if workflow.node(node_id) is None:
                    yield "node", Reference("nodes", node_id, right.pointer)
            if right.pointer:
                head, _, last = right.pointer.rpartition("/")
                for key in OUTPUT_KEYS:
                    if key != last:
                        yield "key", right.at(f"{head}/{key}")
                yield "too_deep", right.at(f"{right.pointer}/value")
        case "item":
            yield "key", right.at(f"{right.pointer}/value")


def _input_names(workflow: Workflow) -> list[str]:
    properties = workflow.inputs.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def wrong_orders(scene: Scene) -> Iterator[Injury]:
    """Yield workflows with two steps, or two values of one step, in the wrong order."""
    for node in scene.workflow.nodes:
        yield from _swapped_values(scene, node)
        for before in node.after:
            yield from _unordered(scene, node, before)
        for read in {r.name for r in node_references(node) if r.root == "nodes"}:
            source = scene.workflow.node(read)
            if source is not None:
                cyclic = source.model_copy(update={"after": (*source.after, node.id)})
                detail = f"{read} waits for {node.id}, which reads it"
                yield Injury("cycle", read, detail, scene.workflow.replacing(cyclic))


def _swapped_values(scene: Scene, node: Node) -> Iterator[Injury]:
    for first, second in combinations(node.arguments, 2):
        left, right = node.arguments[first], node.arguments[second]
        kinds = [scene.argument_schema(node, argument).get("type") for argument in (first, second)]
        if left == right or kinds[0] is None or kinds[0] != kinds[1]:
            continue
        swapped = node.model_copy(update={"arguments": {**node.arguments, first: right, second: left}})
        detail = f"{node.id} has {first} and {second} swapped"
        yield Injury("swapped", node.id, detail, scene.workflow.replacing(swapped))


def _unordered(scene: Scene, node: Node, before: str) -> Iterator[Injury]:
    first = scene.workflow.node(before)
    if first is None:
        return
    freed = node.model_copy(update={"after": tuple(i for i in node.after if i != before)})
    loose = scene.workflow.replacing(freed)
    moved = _moved_before(loose, freed, before)
    yield Injury("dropped", node.id, f"{node.id} no longer waits for {before}", moved)
    waiting = first.model_copy(update={"after": (*first.after, node.id)})
    yield Injury("reversed", before, f"{before} waits for {node.id}", moved.replacing(waiting))


def _moved_before(workflow: Workflow, node: Node, other: str) -> Workflow:
    rest = [n for n in workflow.nodes if n.id != node.id]
    position = next(i for i, n in enumerate(rest) if n.id == other)
    return workflow.model_copy(update={"nodes": (*rest[:position], node, *rest[position:])})

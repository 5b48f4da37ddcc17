"""Injuries to what is called: a wrong tool, a step that is missing, a step too many."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from pydantic import JsonValue

from catalog.tools import Tool, ToolId
from server.bench.injury import Injury, Scene, changed_references, node_references
from server.bench.mistakes import INVENTED_TOOLS, misnamed_tools
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Reference

__all__ = ["extra_steps", "missing_steps", "wrong_tools"]

_NEAREST = 3
"""How many of the most similar tools of a server may stand in for the right one."""
_EXTRA_IDS = ("report", "summary", "formatted", "saved")
_GUESS = 1


def wrong_tools(scene: Scene) -> Iterator[Injury]:
    """Yield workflows with one node calling a similar, an invented, or another server's tool."""
    for node in scene.workflow.nodes:
        if node.tool is None:
            continue
        for variant, wrong in _wrong_ids(scene, node.tool):
            changed = node.model_copy(update={"tool": wrong})
            detail = f"{node.id} calls {wrong} instead of {node.tool}"
            yield Injury(variant, node.id, detail, scene.workflow.replacing(changed))


def _wrong_ids(scene: Scene, right: ToolId) -> Iterator[tuple[str, ToolId]]:
    others = [tool for tool in scene.snapshot.of_server(right.server) if tool.id != right]
    nearest = sorted(others, key=lambda tool: (-_likeness(tool.id.tool, right.tool), tool.id))
    for tool in nearest[:_NEAREST]:
        yield "similar", tool.id
    for name in misnamed_tools(right.tool):
        if (invented := ToolId(right.server, name)) not in scene.snapshot:
            yield "invented", invented
    for server in sorted({n.tool.server for n in scene.workflow.nodes if n.tool} - {right.server}):
        if (misplaced := ToolId(server, right.tool)) not in scene.snapshot:
            yield "wrong_server", misplaced


def _likeness(left: str, right: str) -> float:
    return SequenceMatcher(None, left, right).ratio()


def missing_steps(scene: Scene) -> Iterator[Injury]:
    """Yield workflows without one node; what read it dangles, guesses, or reads what the node read."""
    if len(scene.workflow.nodes) < 2:
        return
    for node in scene.workflow.nodes:
        rest = _without(scene.workflow, node)
        yield Injury("dangling", node.id, f"{node.id} is gone, its readers dangle", rest)
        if any(node.id in _read(reader) for reader in rest.nodes):
            yield Injury("guessed", node.id, f"{node.id} is gone, its readers guess", _guessing(rest, node))
        if (source := next(iter(node_references(node)), None)) and source.root != "item":
            bypassed = _bypassing(rest, node, source)
            if bypassed != rest:
                detail = f"{node.id} is gone, its readers read {source} instead"
                yield Injury("bypassed", node.id, detail, bypassed)


def _without(workflow: Workflow, gone: Node) -> Workflow:
    kept = tuple(
        node.model_copy(update={"after": tuple(i for i in node.after if i != gone.id)})
        for node in workflow.nodes
        if node.id != gone.id
    )
    return workflow.model_copy(update={"nodes": kept})


def _read(node: Node) -> set[str]:
    return {reference.name for reference in node_references(node) if reference.root == "nodes"}


def _bypassing(workflow: Workflow, gone: Node, source: Reference) -> Workflow:
    def change(reference: Reference) -> Reference:
        return source if reference.root == "nodes" and reference.name == gone.id else reference

    nodes = tuple(changed_references(node, change) for node in workflow.nodes)
    return workflow.model_copy(update={"nodes": nodes})


def _guessing(workflow: Workflow, gone: Node) -> Workflow:
    prefix = f"$nodes.{gone.id}.output"

    def guess(value: JsonValue) -> JsonValue:
        is_read = isinstance(value, str) and (value == prefix or value.startswith(f"{prefix}#"))
        return _GUESS if is_read else value

    nodes = tuple(
        node.model_copy(update={"arguments": {key: guess(value) for key, value in node.arguments.items()}})
        for node in workflow.nodes
    )
    return workflow.model_copy(update={"nodes": nodes})


def extra_steps(scene: Scene) -> Iterator[Injury]:
    """Yield workflows with one needless node: invented, unfinished, spliced into the flow, or repeated.

    Only a step that others wait for without reading it is repeated: it is there for what it changes.
    """
    for position, node in enumerate(scene.workflow.nodes):
        if node.tool is None:
            continue
        extra_id = _free_id(scene.workflow, position)
        content = f"$nodes.{node.id}.output"
        for name in INVENTED_TOOLS:
            tool = ToolId(node.tool.server, name)
            if tool in scene.snapshot:
                continue
            extra = Node(id=extra_id, tool=tool, arguments={"content": content})
            yield Injury("invented", extra_id, f"needless {extra_id} calls {tool}", _adding(scene, extra))
            yield from _spliced(scene, node, extra)
        for tool in _neighbours(scene, node):
            extra = _unfinished(extra_id, tool, content)
            yield Injury(
                "unfinished", extra_id, f"needless {extra_id} calls {tool.id}", _adding(scene, extra)
            )
        if any(node.id in other.after for other in scene.workflow.nodes):
            again = node.model_copy(update={"id": f"{node.id}_again", "after": (node.id,)})
            yield Injury("repeated", again.id, f"{node.id} is planned twice", _adding(scene, again))


def _free_id(workflow: Workflow, position: int) -> str:
    taken = {node.id for node in workflow.nodes}
    free = [name for name in _EXTRA_IDS if name not in taken]
    return free[position % len(free)] if free else f"extra_{position}"


def _adding(scene: Scene, extra: Node) -> Workflow:
    return scene.workflow.model_copy(update={"nodes": (*scene.workflow.nodes, extra)})


def _neighbours(scene: Scene, node: Node) -> list[Tool]:
    server = node.tool.server if node.tool else ""
    tools = [tool for tool in scene.snapshot.of_server(server) if tool.id != node.tool]
    return [tool for tool in tools if tool.input_schema.get("required")][:: max(1, len(tools) // 4)]


def _unfinished(extra_id: str, tool: Tool, content: str) -> Node:
    required = tool.input_schema["required"]
    first = str(required[0]) if isinstance(required, list) else "content"
    return Node(id=extra_id, tool=tool.id, arguments={first: content})


def _spliced(scene: Scene, before: Node, extra: Node) -> Iterator[Injury]:
    for reader in scene.workflow.nodes:
        read = [r for r in node_references(reader) if r.root == "nodes" and r.name == before.id]
        if not read:
            continue

        def change(reference: Reference, read: list[Reference] = read) -> Reference:
            return Reference("nodes", extra.id, "/result") if reference in read else reference

        nodes = tuple(
            changed_references(node, change) if node.id == reader.id else node
            for node in scene.workflow.nodes
        )
        spliced = scene.workflow.model_copy(update={"nodes": (*nodes, extra)})
        detail = f"needless {extra.id} stands between {before.id} and {reader.id}"
        yield Injury("spliced", extra.id, detail, spliced)

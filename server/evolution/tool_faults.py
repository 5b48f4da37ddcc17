"""Swapping the tool of a node: which tools could do its work, and with which arguments.

Paper: EvoFlux (tool swap). Differs: arguments are re-mapped to the new tool's schema by meaning;
what has no place there is dropped and said.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from catalog.similarity import name_similarity, text_similarity, words
from catalog.tools import Tool
from server.evolution.proposal import Proposal, propose_one
from server.planning.view import View
from skills_store.workflow.edits import SwapTool
from skills_store.workflow.model import Node

__all__ = ["propose_swaps", "remapped", "same_arguments"]

_SURE = 0.5
_GRAVE = 2.0
"""What a call that happens once costs more where there was none."""


def propose_swaps(view: View, node: Node, *, base_cost: float = 0.0, limit: int = 12) -> Iterator[Proposal]:
    """Yield swaps of a node's tool, the most fitting first."""
    scored = [(tool, _cost(view, node, tool)) for tool in _candidates(view, node)]
    for tool, cost in sorted(scored, key=lambda pair: (pair[1], pair[0].id))[:limit]:
        arguments = remapped(node.arguments, tool)
        edit = SwapTool(
            node=node.id, tool=tool.id, arguments=arguments, because=f"{tool.id} does what {node.id!r} needs"
        )
        yield propose_one(edit, base_cost + cost)


def _candidates(view: View, node: Node) -> list[Tool]:
    servers = {n.tool.server for n in view.workflow.nodes if n.tool}
    near = [tool for tool in view.world.snapshot if tool.id.server in servers]
    query = " ".join((*words(node.tool.tool if node.tool else ""), *words(node.id), view.world.task))
    found = [hit.tool for hit in view.world.index.search(query, limit=12)]
    named = [t for t in view.world.snapshot if node.tool and t.id.tool == node.tool.tool]
    unique = {tool.id: tool for tool in (*named, *near, *found) if tool.id != node.tool}
    return list(unique.values())


def _cost(view: View, node: Node, tool: Tool) -> float:
    name = node.tool.tool if node.tool else ""
    by_name = name_similarity(name, tool.id.tool)
    by_id = name_similarity(node.id, tool.id.tool)
    by_task = max(
        text_similarity(node.id, f"{tool.id.tool} {tool.description}"), view.world.spoken_of.get(tool.id, 0.0)
    )
    same_server = 0.0 if node.tool and node.tool.server == tool.id.server else 0.4
    mismatch = 1.0 - _argument_fit(node.arguments, tool)
    likeness = max(by_name, 0.9 * by_id, by_task)
    same_name = -0.3 if by_name == 1.0 else 0.0
    exact = -0.5 if node.arguments and mismatch == 0.0 else 0.0
    grave = _GRAVE if _is_graver(view, node, tool) else 0.0
    return max(0.1, 0.1 + 1.8 * (1 - likeness) + 1.6 * mismatch + same_server + same_name + exact) + grave


def _is_graver(view: View, node: Node, tool: Tool) -> bool:
    """Return whether a tool would do to the world what the node's own does not."""
    return node.tool is not None and view.world.may_repeat(node.tool) and not view.world.may_repeat(tool.id)


def _argument_fit(arguments: dict[str, JsonValue], tool: Tool) -> float:
    """Return how well argument names match a tool, in [0, 1]: given ones known, required ones given."""
    properties = set(_names(tool.input_schema.get("properties")))
    required = set(_names(tool.input_schema.get("required")))
    given = set(arguments)
    known = len(given & properties) / len(given) if given else 1.0
    covered = len(required & given) / len(required) if required else 1.0
    return 0.5 * known + 0.5 * covered


def _names(value: JsonValue) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list | dict) else []


def same_arguments(view: View, node: Node) -> list[Tool]:
    """Return other tools that would take a node's arguments as they stand, and cost no more."""
    alike = [tool for tool in _candidates(view, node) if _argument_fit(node.arguments, tool) == 1.0]
    tools = [tool for tool in alike if not _is_graver(view, node, tool)]
    return sorted(tools, key=lambda tool: (_cost(view, node, tool), tool.id))


def remapped(arguments: dict[str, JsonValue], tool: Tool) -> dict[str, JsonValue]:
    """Return the arguments under the names of a tool's schema, unplaceable ones dropped."""
    names = _names(tool.input_schema.get("properties"))
    kept = {name: value for name, value in arguments.items() if name in names}
    for name, value in arguments.items():
        if name in names:
            continue
        free = [candidate for candidate in names if candidate not in kept]
        best = max(free, key=lambda candidate: name_similarity(name, candidate), default=None)
        if best is not None and name_similarity(name, best) >= _SURE:
            kept[best] = value
    return kept

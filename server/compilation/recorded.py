"""Calls that somebody made one by one, as the run of a workflow: order first, data flow later.

Every call waits for the one before it until `loosened` leaves only the order that matters. Which
calls belong together is the recording's to say; recovering data flow is `linking`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.effects import EffectTable
from catalog.tools import ToolId
from skills_store.workflow.bounds import json_equal
from skills_store.workflow.graph import ancestors, needed
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import escape_literal

__all__ = ["Call", "loosened", "run_in_order", "whole_output"]

_MOST_OUTPUTS = 12
_OUTPUT_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Call:
    """One successful call: what was sent, and what came back as a node's output."""

    tool: ToolId
    arguments: dict[str, JsonValue]
    output: JsonValue


def run_in_order(
    calls: Sequence[Call], name: str, effects: EffectTable
) -> tuple[Workflow, dict[str, JsonValue]]:
    """Return a workflow that makes these calls one after the other, and its node outputs by id.

    A free call that repeats an earlier one with the same answer is left out.

    Raises:
        ValueError: there is no call.
    """
    kept = _without_echoes(calls, effects)
    if not kept:
        raise ValueError("a recording without a successful call")
    nodes: list[Node] = []
    outputs: dict[str, JsonValue] = {}
    for call in kept:
        node_id = _free_id(call.tool.tool, outputs)
        arguments = {key: escape_literal(value) for key, value in call.arguments.items()}
        after = (nodes[-1].id,) if nodes else ()
        nodes.append(Node(id=node_id, tool=call.tool, arguments=arguments, after=after))
        outputs[node_id] = call.output
    last = nodes[-1].id
    workflow = Workflow(
        name=name,
        inputs={"type": "object"},
        nodes=tuple(nodes),
        outputs=whole_output(last, outputs[last]),
    )
    return workflow, outputs


def whole_output(node: str, value: JsonValue) -> dict[str, JsonValue]:
    """Return the outputs under which all that a node gave is given on: key by key, else `result`."""
    reference = f"$nodes.{node}.output"
    if not isinstance(value, dict) or not 0 < len(value) <= _MOST_OUTPUTS:
        return {"result": reference}
    if not all(_OUTPUT_NAME.fullmatch(key) for key in value):
        return {"result": reference}
    return {key: f"{reference}#{json_pointer(key)}" for key in value}


def loosened(workflow: Workflow, effects: EffectTable) -> Workflow:
    """Return the workflow without calls that nothing needs, and with the order that effects need.

    A call that is not free waits for whatever its server was asked before; any call waits for what
    changed its server before it.
    """
    nodes = [node.model_copy(update={"after": ()}) for node in workflow.nodes]
    wanted = needed(workflow.model_copy(update={"nodes": tuple(nodes)}))
    kept = [node for node in nodes if node.id in wanted or not _is_free(node, effects)]
    reads = {read for node in kept for read in ancestors(_of(workflow, nodes), node.id)}
    kept = [node for node in nodes if node in kept or node.id in reads]
    ordered: list[Node] = []
    for node in kept:
        sofar = _of(workflow, [*ordered, node])
        before = ancestors(sofar, node.id)
        wait = [
            other.id
            for other in ordered
            if _same_server(other, node)
            and not (_is_free(other, effects) and _is_free(node, effects))
            and other.id not in before
        ]
        needless = {a for other in wait for a in ancestors(sofar, other)}
        after = tuple(other for other in wait if other not in needless)
        ordered.append(node.model_copy(update={"after": after}))
    return _of(workflow, ordered)


def _of(workflow: Workflow, nodes: Iterable[Node]) -> Workflow:
    return workflow.model_copy(update={"nodes": tuple(nodes)})


def _same_server(one: Node, two: Node) -> bool:
    return one.tool is None or two.tool is None or one.tool.server == two.tool.server


def _is_free(node: Node, effects: EffectTable) -> bool:
    return node.tool is not None and effects.effect(node.tool).is_free


def _without_echoes(calls: Sequence[Call], effects: EffectTable) -> list[Call]:
    kept: list[Call] = []
    for call in calls:
        is_echo = effects.effect(call.tool).is_free and any(
            other.tool == call.tool
            and json_equal(other.arguments, call.arguments)
            and json_equal(other.output, call.output)
            for other in kept
        )
        if not is_echo or call is calls[-1]:
            kept.append(call)
    return kept


def _free_id(tool: str, taken: Mapping[str, JsonValue]) -> str:
    stem = re.sub(r"[^a-z0-9]+", "_", tool.lower()).strip("_")[:40] or "call"
    stem = stem if stem[0].isalpha() else f"call_{stem}"
    return next(name for name in (stem, *(f"{stem}_{n}" for n in range(2, 1_000))) if name not in taken)

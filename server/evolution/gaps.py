"""Steps that may be missing where no fault says so: between a source and who should read it.

Paper: EvoFlux (tool insertion). Differs: guided by inputs and nodes that nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from catalog.similarity import words
from catalog.tools import JsonSchema, Tool
from server.evolution.insertions import Fixed, fillings
from server.evolution.proposal import Proposal
from server.planning.leaves import leaves_of_schema, leaves_of_value
from server.planning.literals import mentions
from server.planning.slots import fits
from server.planning.view import View, references_in
from skills_store.workflow.edits import Edit, EditParameter, InsertNode
from skills_store.workflow.model import Node, json_pointer
from skills_store.workflow.references import Reference, parse_reference

__all__ = ["propose_step"]


@dataclass(frozen=True, slots=True)
class _Gap:
    """A place where a step may be missing: what would feed the step, and who would read it."""

    source: str
    """Reference the missing step would read."""
    reader: str | None
    """Node whose argument would read the step; None: an output of the workflow."""
    pointer: str
    """Of the argument or output."""
    cost: float


def propose_step(view: View, *, base_cost: float) -> Iterator[Proposal]:
    """Yield insertions of a step where one may be missing.

    Between an output and what it reads; and before an argument whose value nobody said, or that
    reads something else, for each input or node that nobody reads.
    """
    tools = _step_tools(view)
    for gap in _gaps(view):
        for rank, tool in enumerate(tools):
            yield from _step_between(view, tool, gap, base_cost + gap.cost + 0.08 * rank)


def _gaps(view: View) -> Iterator[_Gap]:
    for name, value in view.workflow.outputs.items():
        for found in references_in(value):
            if found.whole and found.reference.root == "nodes" and found.pointer == "":
                yield _Gap(str(found.reference), None, json_pointer(name), 0.6)
    unread = [f"$inputs.{name}" for name in view.unused_inputs]
    unread += [r for node in view.unused_nodes if (r := _result_of(view, node)) is not None]
    for source in unread:
        for node in view.workflow.nodes:
            for argument, value in node.arguments.items():
                if isinstance(value, dict | list | bool) or f".{node.id}." in source:
                    continue
                is_said = mentions(view.world.task, value) or bool(references_in(value))
                yield _Gap(source, node.id, json_pointer(argument), 0.5 if is_said else 0.0)


def _result_of(view: View, node: Node) -> str | None:
    tool = view.tool(node)
    pointer = _result_pointer(view, tool) if tool else None
    return None if pointer is None else str(Reference("nodes", node.id, pointer))


def _step_tools(view: View) -> list[Tool]:
    """Return tools that a missing step could call: those used already, and those the task speaks of.

    No guess makes a call that happens once and for all.
    """
    used = {tool.id: tool for node in view.workflow.nodes if (tool := view.tool(node))}
    near = [tool for tool in view.world.snapshot if tool.id.server in {t.server for t in used}]
    scored = sorted(near, key=lambda tool: (-_said_by_task(view, tool), tool.id))
    unique = {tool.id: tool for tool in (*used.values(), *scored[:10])}
    repeatable = [tool for tool in unique.values() if view.world.may_repeat(tool.id)]
    return sorted(repeatable, key=lambda tool: (-_said_by_task(view, tool), tool.id))


def _said_by_task(view: View, tool: Tool) -> float:
    return view.world.spoken_of.get(tool.id, 0.0)


def _step_between(view: View, tool: Tool, gap: _Gap, base_cost: float) -> Iterator[Proposal]:
    taken = {node.id for node in view.workflow.nodes}
    node_id = next(name for i in range(1, 100) if (name := f"step_{i}") not in taken)
    leaf = _result_pointer(view, tool)
    base_cost += 0.0 if leaf is not None else 0.6
    source = partial(_could_be, view, parse_reference(gap.source))
    bare = Node(id=node_id, tool=tool.id)
    for filling, cost in fillings(view, bare, tool, Fixed(gap.source, source)):
        planned = bare.model_copy(update={"arguments": filling})
        reader = view.workflow.index(gap.reader) if gap.reader else len(view.workflow.nodes)
        because = f"a step may be missing after {gap.source}"
        edits: tuple[Edit, ...] = (
            InsertNode(planned=planned, position=reader, because=because),
            EditParameter(
                node=gap.reader, pointer=gap.pointer, value=str(Reference("nodes", node_id, leaf or ""))
            ),
        )
        yield Proposal(edits, base_cost + 0.4 * cost)


def _could_be(view: View, reference: Reference, schema: JsonSchema) -> bool:
    """Return whether a seen value suits a schema; an unseen one might."""
    if reference.root == "inputs":
        return fits(view.world.inputs.get(reference.name), schema)
    node = view.workflow.node(reference.name)
    leaves = [leaf for leaf in view.leaves(node) if leaf.pointer == reference.pointer] if node else []
    return not leaves or not leaves[0].seen or fits(leaves[0].value, schema)


def _result_pointer(view: View, tool: Tool) -> str | None:
    """Return where a tool's scalar result stands, when that can be told."""
    if tool.id in view.seen_tools:
        leaves = leaves_of_value(view.seen_tools[tool.id])
    else:
        leaves = leaves_of_schema(tool.output_schema) if tool.output_schema else []
    named = [
        leaf for leaf in leaves if leaf.key and set(words(leaf.key)) & {"result", "value", "output", "text"}
    ]
    scalar = [leaf for leaf in named if not leaf.types & {"object", "array"}]
    return scalar[0].pointer if scalar else None

"""Edits for a workflow that runs and yet is wrong: no fault says where.

What is suspicious without one: an input or a node nobody reads, two values of one type that may
be swapped, a sibling tool with the same arguments, a literal the task does not say, an order
that the verbs contradict. All are guesses; the check decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog.similarity import name_similarity, text_similarity
from server.evolution.argument_faults import set_argument
from server.evolution.gaps import propose_step
from server.evolution.order_faults import propose_order
from server.evolution.proposal import Proposal, propose_one
from server.evolution.removals import propose_bypass
from server.evolution.run_faults import other_spellings, swapped_values
from server.evolution.tool_faults import remapped, same_arguments
from server.planning.leaves import Leaf
from server.planning.literals import mentions
from server.planning.slots import fits, slot_of
from server.planning.sources import argument_sources
from server.planning.view import View, references_in
from skills_store.workflow.edits import EditParameter, SwapTool
from skills_store.workflow.graph import ancestors
from skills_store.workflow.model import Node, json_pointer
from skills_store.workflow.references import Reference

__all__ = ["propose_against_silence"]


def propose_against_silence(view: View) -> Iterator[Proposal]:
    """Yield guesses about a workflow that ran without a fault and failed its check."""
    for node in view.workflow.nodes:
        yield from swapped_values(view, node)
        yield from _sibling_tools(view, node)
        yield from _other_sources(view, node)
        yield from _other_literals(view, node)
        yield from propose_bypass(view, node, cost=2.4)
    yield from propose_order(view, cost=1.0)
    yield from _other_outputs(view)
    yield from propose_step(view, base_cost=2.2)


def _sibling_tools(view: View, node: Node) -> Iterator[Proposal]:
    said = f"{node.id} {view.world.task}"
    current = view.tool(node)
    present = _said(said, current.id.tool, current.description) if current else 0.0
    for rank, tool in enumerate(same_arguments(view, node)[:10]):
        better = _said(said, tool.id.tool, tool.description) - present
        by_id = name_similarity(node.id, tool.id.tool) - (
            name_similarity(node.id, node.tool.tool) if node.tool else 0.0
        )
        edit = SwapTool(
            node=node.id,
            tool=tool.id,
            arguments=remapped(node.arguments, tool),
            because=f"{tool.id} takes the same arguments",
        )
        yield propose_one(edit, 1.5 - 1.0 * better - 0.8 * by_id + 0.1 * rank)


def _said(text: str, name: str, description: str) -> float:
    return text_similarity(text, f"{name} {description}")


def _other_sources(view: View, node: Node) -> Iterator[Proposal]:
    """Yield other sources for each argument; those that put an unread input or node to use first."""
    unread = {f"$inputs.{name}" for name in view.unused_inputs}
    unread_nodes = tuple(f"$nodes.{other.id}.output" for other in view.unused_nodes)
    for argument, value in node.arguments.items():
        is_flow = bool(references_in(value))
        for source in argument_sources(slot_of(node, argument, view), view, 30):
            if source.value == value or not isinstance(source.value, str) or source.value[:1] != "$":
                continue
            helps = source.value in unread or source.value.startswith(unread_nodes or ("\0",))
            cost = source.cost + (0.4 if helps else 1.9) + (0.3 if is_flow else 0.0)
            yield propose_one(set_argument(node, argument, source.value, source.because), cost)


def _other_literals(view: View, node: Node) -> Iterator[Proposal]:
    for argument, value in node.arguments.items():
        if references_in(value) or isinstance(value, dict | list | bool) or value is None:
            continue
        said = mentions(view.world.task, value)
        slot = slot_of(node, argument, view)
        for source in argument_sources(slot, view, 20):
            if source.value != value and fits(source.value, slot.schema):
                edit = set_argument(node, argument, source.value, source.because)
                yield propose_one(edit, source.cost + (1.9 if said else 1.0))
        if isinstance(value, str):
            for rank, spelling in enumerate(other_spellings(value)[:6]):
                edit = set_argument(node, argument, spelling, f"another spelling of {value!r}")
                yield propose_one(edit, 2.6 + 0.1 * rank)


def _other_outputs(view: View) -> Iterator[Proposal]:
    """Yield other readings for the outputs, all fed by a node; their names never change.

    Never what the present source stands on: skipping a step would be work deleted, not repaired.
    """
    for name, value in view.workflow.outputs.items():
        current = [f.reference for f in references_in(value) if f.whole and f.pointer == ""]
        if len(current) != 1:
            continue
        before = ancestors(view.workflow, current[0].name)
        later = [node for node in reversed(view.workflow.nodes) if node.id not in before]
        for rank, node in enumerate(later):
            for leaf in view.leaves(node):
                other = Reference("nodes", node.id, leaf.pointer)
                if other == current[0] or not _same_kind(view, current[0], leaf.types):
                    continue
                cost = 1.4 + 0.8 * (1 - name_similarity(leaf.key, name)) + 0.15 * rank
                cost += 0.6 if node.id != current[0].name else -0.5 if _is_whole(current[0], leaf) else 0.0
                cost -= 0.6 if node in view.unused_nodes else 0.0
                edit = EditParameter(
                    node=None,
                    pointer=json_pointer(name),
                    value=str(other),
                    because=f"{name!r} may mean {other}",
                )
                yield propose_one(edit, cost)


def _is_whole(current: Reference, leaf: Leaf) -> bool:
    """Return whether an output reads all of an answer where it may mean this scalar part of it."""
    return current.pointer == "" and not leaf.types & {"object", "array", "null"}


def _same_kind(view: View, current: Reference, kinds: frozenset[str]) -> bool:
    """Return whether another leaf could stand in for what an output reads now."""
    node = view.workflow.node(current.name)
    if node is None:
        return True
    now: list[frozenset[str]] = [leaf.types for leaf in view.leaves(node) if leaf.pointer == current.pointer]
    if not now or not kinds:
        return True
    numeric = frozenset({"number", "integer"})
    if now[0] <= {"object", "array"}:
        return True
    return bool(now[0] & kinds) or bool(now[0] & numeric and kinds & numeric)

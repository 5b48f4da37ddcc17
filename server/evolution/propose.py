"""From the faults of a candidate to proposals: which class of edits answers which fault.

Paper: EvoFlux (repair by failure class; facts §7). Differs: only the first faulty node in
topological order is worked on, since its outputs decide the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from server.evolution.argument_faults import propose_argument_edits
from server.evolution.clause_edits import propose_by_clauses
from server.evolution.order_faults import propose_order
from server.evolution.proposal import Proposal, cheapest
from server.evolution.reference_faults import propose_output_edits, propose_reference_edits
from server.evolution.removals import propose_bypass, propose_removal, propose_unasked_removals
from server.evolution.run_faults import propose_after_failure
from server.evolution.silent_faults import propose_against_silence
from server.evolution.tool_faults import propose_swaps
from server.planning.view import View
from skills_store.workflow.edits import EditParameter, Reorder
from skills_store.workflow.faults import (
    CheckFailed,
    Cycle,
    DanglingReference,
    Denied,
    DisguisedError,
    Fault,
    InvalidArgument,
    Malformed,
    MissingArgument,
    MissingOutput,
    OutputSchemaMismatch,
    OverLimit,
    PostconditionFailed,
    ServerUnavailableFault,
    TimeoutFault,
    ToolError,
    UnexpectedArgument,
    UnknownTool,
)
from skills_store.workflow.model import Node

__all__ = ["propose"]

_GUESS_COST = 0.8
"""What a guess without a fault costs more: other answers to the faults there were come first."""


def propose(view: View, *, limit: int = 160) -> list[Proposal]:
    """Return edits for the first faulty node, or guesses when only the check failed, and another plan.

    What was refused is no fault to mend, except that a plan may do without a change nobody asked for.
    """
    faults = [fault for fault in view.visible_faults if fault.evidence == "workflow"]
    unasked = list(propose_unasked_removals(view))
    if not faults:
        return unasked if any(isinstance(fault, Denied) for fault in view.visible_faults) else []
    return cheapest([*unasked, *_answering(view, faults, limit), *propose_by_clauses(view)], limit)


def _answering(view: View, faults: Sequence[Fault], limit: int) -> list[Proposal]:
    located = [fault for fault in faults if not isinstance(fault, CheckFailed)]
    if not located:
        return _dearer(cheapest(propose_against_silence(view), limit), _GUESS_COST)
    node = _first_faulty(view, located)
    if node is None:
        return cheapest(_for_document(view, located), limit)
    mine = [fault for fault in located if fault.node == node.id]
    return cheapest(_for_node(view, node, mine), limit)


def _dearer(proposals: Sequence[Proposal], cost: float) -> list[Proposal]:
    return [replace(proposal, cost=proposal.cost + cost) for proposal in proposals]


def _first_faulty(view: View, faults: Sequence[Fault]) -> Node | None:
    faulty = {fault.node for fault in faults}
    depths: dict[str, int] = {}
    for node in view.workflow.nodes:
        _measure(view, node.id, depths)
    ordered = sorted(view.workflow.nodes, key=lambda n: (depths[n.id], view.workflow.index(n.id)))
    return next((node for node in ordered if node.id in faulty), None)


def _measure(view: View, node_id: str, depths: dict[str, int]) -> int:
    """Return the length of the longest chain that ends in a node; each node is measured once."""
    if node_id not in depths:
        depths[node_id] = 0  # met again before it is known only in a cycle
        before = sorted(view.edges.get(node_id, ()))
        depths[node_id] = 1 + max((_measure(view, i, depths) for i in before), default=0)
    return depths[node_id]


def _for_node(view: View, node: Node, faults: Sequence[Fault]) -> Iterator[Proposal]:
    arguments = [f for f in faults if isinstance(f, MissingArgument | UnexpectedArgument | InvalidArgument)]
    if arguments:
        yield from propose_argument_edits(view, node, arguments)
        yield from propose_swaps(view, node, base_cost=0.6)
    if any(isinstance(fault, InvalidArgument) and fault.argument is None for fault in arguments):
        yield from propose_after_failure(view, node, arguments[0])
    for fault in faults:
        yield from _for_fault(view, node, fault)
    is_light = node.tool is None or view.world.may_repeat(node.tool)
    yield from propose_removal(view, node, cost=0.5 if is_light else 1.5)


def _for_fault(view: View, node: Node, fault: Fault) -> Iterator[Proposal]:
    match fault:
        case UnknownTool():
            yield from propose_swaps(view, node)
            yield from propose_bypass(view, node, cost=0.9)
        case DanglingReference() | Malformed():
            yield from propose_reference_edits(view, node, fault)
            yield from _unknown_wait(view, node, fault)
        case ToolError() | DisguisedError():
            yield from propose_after_failure(view, node, fault)
        case OutputSchemaMismatch():
            yield from propose_swaps(view, node, base_cost=0.6)
        case PostconditionFailed():
            yield from propose_after_failure(view, node, fault)
        case Cycle():
            yield from _for_cycle(view, fault)
        case MissingArgument() | UnexpectedArgument() | InvalidArgument() | OverLimit() | MissingOutput():
            return
        case TimeoutFault() | ServerUnavailableFault() | Denied() | CheckFailed():
            return
        case _:
            assert_never(fault)


def _unknown_wait(view: View, node: Node, fault: Fault) -> Iterator[Proposal]:
    if "/after" in fault.pointer:
        kept = tuple(i for i in node.after if view.workflow.node(i))
        yield Proposal((Reorder(node=node.id, after=kept, because="it waits for nothing known"),), 0.2)


def _for_document(view: View, faults: Sequence[Fault]) -> Iterator[Proposal]:
    for fault in faults:
        if isinstance(fault, Cycle):
            yield from _for_cycle(view, fault)
        elif isinstance(fault, DanglingReference | MissingOutput | Malformed):
            yield from propose_output_edits(view, fault)
        elif isinstance(fault, PostconditionFailed):
            yield from propose_against_silence(view)


def _for_cycle(view: View, fault: Cycle) -> Iterator[Proposal]:
    yield from propose_order(view, cost=0.6)
    for node_id in fault.nodes:
        node = view.workflow.node(node_id)
        if node is None:
            continue
        if kept := tuple(i for i in node.after if i not in fault.nodes):
            yield Proposal((Reorder(node=node.id, after=kept, because="it closes a cycle"),), 0.6)
        elif node.after:
            yield Proposal((Reorder(node=node.id, after=(), because="it closes a cycle"),), 0.6)
        yield from _rewired_out_of_cycle(view, node, fault)


def _rewired_out_of_cycle(view: View, node: Node, fault: Cycle) -> Iterator[Proposal]:
    """Yield other sources for arguments that read a node of the cycle."""
    for argument, value in node.arguments.items():
        reads = [i for i in fault.nodes if isinstance(value, str) and value.startswith(f"$nodes.{i}.")]
        if not reads:
            continue
        pointer = f"/nodes/{view.workflow.index(node.id)}/arguments/{argument}"
        dangling = DanglingReference(message="", node=node.id, pointer=pointer, reference=str(value))
        for proposal in propose_reference_edits(view, node, dangling):
            cost = proposal.cost + 0.6
            if not _still_reads(proposal, reads):
                yield Proposal(proposal.edits, cost)


def _still_reads(proposal: Proposal, reads: Sequence[str]) -> bool:
    values = [edit.value for edit in proposal.edits if isinstance(edit, EditParameter)]
    return any(isinstance(v, str) and any(v.startswith(f"$nodes.{i}.") for i in reads) for v in values)

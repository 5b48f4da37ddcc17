"""Credit of edits: what a search's own candidates came to moves which proposals come first."""

from __future__ import annotations

from catalog.tools import ToolId
from server.evolution.candidate import Candidate, Evaluation, Fitness, Record
from server.evolution.credit import credited
from server.evolution.proposal import Proposal
from skills_store.trace import Step, Trace
from skills_store.workflow.edits import EditParameter, SwapTool
from skills_store.workflow.model import Workflow, parse_workflow

_TOOL = ToolId("a", "b")
_SWAP = SwapTool(node="n", tool=_TOOL, arguments={})
_EDIT = EditParameter(node="m", pointer="/x", value=1)


def _workflow() -> Workflow:
    nodes = [{"id": name, "tool": {"server": "a", "tool": "b"}, "arguments": {"x": name}} for name in "nm"]
    outputs = {"n": "$nodes.n.output", "m": "$nodes.m.output"}
    return parse_workflow({"name": "w", "inputs": {"type": "object"}, "nodes": nodes, "outputs": outputs})


def _record(name: str, progress: float, *last: SwapTool | EditParameter, failed: str = "") -> Record:
    steps = tuple(
        Step(node=n, tool=_TOOL, arguments={"x": n}, outcome="failed" if n == failed else "succeeded")
        for n in "nm"
    )
    trace = Trace(id=name, workflow_hash="h", inputs={}, steps=steps, outputs=None, status="failed", calls=2)
    fitness = Fitness(outputs_produced=progress, executed=progress, rule_score=progress)
    evaluation = Evaluation(
        status="failed", faults=(), fitness=fitness, verdict=None, trace=trace, outputs={}, calls=2, unmet=1.0
    )
    return Record(Candidate(name, _workflow(), last=last), evaluation)


def test_the_kind_of_edit_that_got_further_comes_first() -> None:
    base = _record("base", 0.2)
    records = [base, _record("c1", 0.9, _SWAP), _record("c2", 0.1, _EDIT)]
    proposals = [Proposal((_EDIT,), 1.0), Proposal((_SWAP,), 1.05)]
    moved = credited(proposals, base, records)
    assert moved[1].cost < 1.0 < moved[0].cost
    assert [p.edits for p in moved] == [p.edits for p in proposals]


def test_the_node_that_made_a_bad_step_comes_first() -> None:
    base = _record("base", 0.2, failed="m")
    swap, edit = credited([Proposal((_SWAP,), 1.0), Proposal((_EDIT,), 1.05)], base, [base])
    assert edit.cost < swap.cost == 1.0


def test_nothing_known_moves_nothing() -> None:
    base = _record("base", 0.2)
    proposals = [Proposal((_SWAP,), 1.0), Proposal((_EDIT,), 0.05)]
    assert credited(proposals, base, [base]) == proposals

"""Credit of edits: what a search's own candidates came to moves which proposals come first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace

import pytest

from catalog.tools import Snapshot, ToolId
from server.evolution.candidate import Candidate, Evaluation, Fitness, Record
from server.evolution.credit import credited
from server.evolution.offspring import Offspring
from server.evolution.options import Switches
from server.evolution.proposal import Proposal
from server.evolution.proposer import Asked, Offer, Proposers
from server.evolution.strategy import Order
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


@dataclass(frozen=True)
class _Offering:
    """Offers an edit of another node first, and one of the bad node next."""

    name: str = "fixed"

    async def propose(self, asked: Asked) -> Offer:
        del asked
        return Offer((Proposal((_SWAP,), 1.0), Proposal((_EDIT,), 1.05)))


class _Unseen:
    """An evaluator that shows nothing, since what is offered is fixed."""

    world = SimpleNamespace(snapshot=Snapshot.of())
    signatures: Mapping[str, object] = MappingProxyType({})

    def view(self, candidate: Candidate, evaluation: Evaluation, *, evidence: bool) -> None:
        del candidate, evaluation, evidence


@pytest.mark.anyio
@pytest.mark.parametrize(("mode", "first"), [("exploit", _EDIT), ("explore", _SWAP)])
async def test_a_population_takes_what_credit_speaks_for_first_and_leaves_draws_alone(mode, first) -> None:
    base = _record("base", 0.2, failed="m")
    proposers = Proposers(explore=(_Offering(),), exploit=(_Offering(),))
    for is_on, edit in ((True, first), (False, _SWAP)):
        making = Offspring(_Unseen(), proposers, Switches(attribution=is_on))
        making.note(base)
        [(_, offer), *_] = await making.offers(Order(0, mode, parent=base, seed="1"))
        assert offer.proposals[0].edits == (edit,)


def test_nothing_known_moves_nothing() -> None:
    base = _record("base", 0.2)
    proposals = [Proposal((_SWAP,), 1.0), Proposal((_EDIT,), 0.05)]
    assert credited(proposals, base, [base]) == proposals

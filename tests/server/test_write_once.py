"""Two hundred candidates over a tool that writes: it is called at most once, whatever is drawn and when."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from catalog.effects import Effect, EffectTable
from catalog.testing import ScriptedServer, ScriptedTool
from catalog.tools import ToolId
from server.evolution.options import SearchOptions, StrategyName
from server.execution.consent import Consent, GrantAll, NoConsent
from server.requests import Budget
from tests.worlds import NUMBER, SUMS, TEXT, Arguments, gives, node, scene, takes, workflow

pytestmark = pytest.mark.anyio

NEVER = "output.receipt == `-1`"
TASK = "Add 2 and 3, pay the sum, and tell the receipt"


def bank() -> ScriptedServer:
    def pay(arguments: Arguments) -> JsonValue:
        return {"receipt": f"r-{arguments['amount']}"}

    def quote(arguments: Arguments) -> JsonValue:
        return {"fee": arguments["amount"] / 10}

    return ScriptedServer(
        [
            ScriptedTool("pay", pay, takes(amount=NUMBER), gives(receipt=TEXT), "Pay an amount"),
            ScriptedTool("quote", quote, takes(amount=NUMBER), gives(fee=NUMBER), "Quote the fee of a sum"),
        ]
    )


def plan(argument: str = "amount"):
    return workflow(
        node("sum", "sums/add", {"a": 2, "b": 3}),
        node("fee", "bank/quote", {"amount": "$nodes.sum.output#/result"}),
        node("paid", "bank/pay", {argument: "$nodes.sum.output#/result"}),
        outputs={"receipt": "$nodes.paid.output#/receipt", "fee": "$nodes.fee.output#/fee"},
    )


def effects(*, allowed: bool) -> EffectTable:
    table = {"sums": {"*": Effect.PURE}, "bank": {"quote": Effect.READ, "pay": Effect.WRITE}}
    return EffectTable(table, allow={"bank": ("pay",)} if allowed else {})


@pytest.mark.parametrize(
    ("strategy", "argument", "allowed", "consent", "called", "seed"),
    [
        pytest.param("population", "amount", True, NoConsent(), 1, 0, id="allowed"),
        pytest.param("population", "amount", False, GrantAll(), 1, 1, id="consented"),
        pytest.param("population", "sum", True, NoConsent(), 1, 2, id="broken at first"),
        pytest.param("population", "amount", False, NoConsent(), 0, 3, id="nobody to ask"),
        pytest.param("greedy", "amount", True, NoConsent(), 1, 4, id="greedy"),
        pytest.param("ladder", "amount", True, NoConsent(), 1, 0, id="ladder"),
    ],
)
async def test_a_search_of_two_hundred_candidates_calls_a_write_at_most_once(
    strategy: StrategyName, argument: str, allowed: bool, consent: Consent, called: int, seed: int
):
    servers = {"sums": ScriptedServer(SUMS), "bank": bank()}
    base = plan(argument)
    options = SearchOptions(strategy=strategy, seed=seed, ladder_first=strategy == "ladder", generations=400)
    async with scene(
        servers, NEVER, plan=base, task=TASK, effects=effects(allowed=allowed), consent=consent
    ) as it:
        result = await it.repair(base, Budget(calls=5000, candidates=200), options=options, width=4)
        paid = [arguments for name, arguments in it.calls("bank") if name == "pay"]
    if called:
        assert len(result.records) >= (120 if strategy == "greedy" else 200), "one parent is soon used up"
    assert len(paid) == called if argument == "amount" else len(paid) <= called
    assert {r.evaluation.status for r in result.records} <= {"static_faults", "failed", "executed"}
    if strategy == "population" and called:
        drawn = [r for r in result.records if r.made.by == "random"]
        assert len(drawn) > 60, "most of it was drawn at random"
        kinds = {edit.kind for r in drawn for edit in r.candidate.last}
        assert {"edit_parameter", "swap_tool", "insert_node", "remove_node", "reorder"} <= kinds


async def test_no_candidate_without_the_write_that_ran_counts_as_right():
    """Its effect would still be there and could make a plan that leaves it out look right."""
    base = plan()
    servers = {"sums": ScriptedServer(SUMS), "bank": bank()}
    options = SearchOptions(strategy="population", ladder_first=False, generations=100)
    async with scene(servers, "`true`", NEVER, plan=base, task=TASK, effects=effects(allowed=True)) as it:
        result = await it.repair(base, Budget(candidates=150), options=options)
    without = [
        r
        for r in result.records
        if not any(n.tool == ToolId("bank", "pay") and n.id == "paid" for n in r.candidate.workflow.nodes)
    ]
    assert all(r.evaluation.status != "verified" for r in without)

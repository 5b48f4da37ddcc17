"""Inputs that a task leaves open are found with few calls of free tools, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.effects import Effect
from catalog.testing import Reply, ScriptedServer, ScriptedTool
from server.requests import Budget, RepairRequest, SolveRequest
from server.verification import Checks

pytestmark = pytest.mark.anyio

TEXT = {"type": "string"}
PEOPLE = [{"id": "U-17", "name": "Ada"}, {"id": "U-18", "name": "Grace"}, {"id": "U-19", "name": "Mary"}]
ORDERS = {"U-17": 2, "U-18": 5, "U-19": 0}


def shape(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def orders() -> ScriptedTool:
    def count(arguments: Any) -> Any:
        if arguments["user_id"] not in ORDERS:
            return Reply.text("no such user", is_error=True)
        return {"orders": ORDERS[arguments["user_id"]]}

    return ScriptedTool(
        "count_orders",
        count,
        shape(user_id=TEXT),
        shape(orders={"type": "integer"}),
        description="Count orders.",
    )


def finder(name: str = "find_user") -> ScriptedTool:
    def find(arguments: Any) -> Any:
        return {"user_id": next((p["id"] for p in PEOPLE if p["name"] == arguments["name"]), "")}

    return ScriptedTool(name, find, shape(name=TEXT), shape(user_id={**TEXT, "minLength": 1}))


def lister() -> ScriptedTool:
    return ScriptedTool("list_users", lambda _: {"users": PEOPLE}, shape(), description="List the users.")


def echo(name: str) -> ScriptedTool:
    return ScriptedTool(name, lambda n: {"user_id": n["name"]}, shape(name=TEXT), shape(user_id=TEXT))


async def solved(
    open_desk: Any, *tools: ScriptedTool, task: str = "Count the orders of Grace", **options: Any
):
    """Return the report of a task that names a person, where the known skill takes an identifier."""
    effects = options.pop("effects", {"*": Effect.READ})
    document = {
        "name": "orders_of",
        "inputs": {"type": "object", "properties": {"user_id": TEXT}, "required": ["user_id"]},
        "nodes": [
            {
                "id": "count",
                "tool": {"server": "shop", "tool": "count_orders"},
                "arguments": {"user_id": "$inputs.user_id"},
            }
        ],
        "outputs": {"orders": "$nodes.count.output#/orders"},
    }
    async with open_desk({"shop": ScriptedServer([orders(), *tools])}, effects={"shop": effects}) as desk:
        request = RepairRequest(
            task="Count the orders of U-17",
            inputs={"user_id": "U-17"},
            checks=Checks(("output.orders == `2`",)),
            save="orders_of",
            examples=({"user_id": "U-18"}, {"user_id": "U-19"}),
        )
        saved = await desk.bank.repair(document, request)
        assert saved.skill_state == "active", saved.skill_reason
        before = desk.count()
        report = await desk.bank.solve(task, SolveRequest(route="direct", **options))
        assert desk.count() - before == report.calls
        trace = desk.store.trace(report.trace_id) if report.trace_id else None
    return report, trace


async def test_a_tool_that_finds_it_by_name_gives_the_input(open_desk):
    report, trace = await solved(open_desk, finder())
    assert (report.status, report.route, report.outputs) == ("succeeded", "direct", {"orders": 5})
    assert (report.slot_calls, report.calls, report.tokens) == (1, 2, 0)
    assert "user_id was found with shop/find_user" in report.route_reasons
    assert (trace.route, trace.route_reasons) == ("direct", report.route_reasons)


async def test_of_a_list_the_item_that_the_task_names_is_meant(open_desk):
    report, _ = await solved(open_desk, lister())
    assert (report.outputs, report.slot_calls) == ({"orders": 5}, 1)


async def test_an_identifier_in_the_task_needs_no_search(open_desk):
    report, _ = await solved(open_desk, finder(), task="Count the orders of U-18")
    assert (report.outputs, report.slot_calls) == ({"orders": 5}, 0)


@pytest.mark.parametrize(
    ("tools", "task", "calls"),
    [
        pytest.param([], "Count the orders of Grace", 0, id="no-tool"),
        pytest.param([lister()], "Count the orders of Nobody", 1, id="nobody-of-that-name"),
        pytest.param([echo("find_user")], "Count the orders of Grace", 1, id="an-echo"),
        pytest.param([echo(f"find_user_{n}") for n in range(9)], "Count the orders of Grace", 5, id="budget"),
    ],
)
async def test_what_is_not_found_is_told_with_the_calls_it_took(open_desk, tools, task, calls):
    report, _ = await solved(open_desk, *tools, task=task)
    assert (report.status, report.route, report.slot_calls, report.calls) == (
        "failed",
        "direct",
        calls,
        calls,
    )
    counted = f"{calls} call{'' if calls == 1 else 's'}"
    assert f"no free tool gave user_id ({counted})" in report.route_reasons
    assert "no free tool gave user_id" in report.faults[0].message


@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.UNKNOWN])
async def test_only_free_tools_are_asked(open_desk, effect):
    report, _ = await solved(open_desk, finder(), effects={"count_orders": Effect.READ, "find_user": effect})
    assert (report.status, report.calls) == ("failed", 0)


async def test_the_budget_of_calls_holds_for_the_search_too(open_desk):
    tools = [echo(f"find_user_{n}") for n in range(4)]
    report, _ = await solved(open_desk, *tools, budget=Budget(calls=2))
    assert report.slot_calls == 2

"""Folding: repeated calls over a whole list become one mapped node; anything less stays."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.tools import Snapshot
from server.compilation.folding import fold_repeats
from skills_store.workflow.check import check_workflow
from skills_store.workflow.model import Workflow, parse_workflow

ORDERS = {"orders": [{"id": "A-1", "to": "x"}, {"id": "A-2", "to": "y"}, {"id": "A-3", "to": "z"}]}


def node(node_id: str, tool: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": node_id, "tool": {"server": "shop", "tool": tool}, "arguments": arguments, **more}


def workflow(*nodes: dict[str, Any], outputs: dict[str, Any]) -> Workflow:
    return parse_workflow(
        {"name": "w", "inputs": {"type": "object"}, "nodes": list(nodes), "outputs": outputs}
    )


def lookups(count: int, **arguments: Any) -> list[dict[str, Any]]:
    return [
        node(f"get_{i}", "get", {"id": f"$nodes.list.output#/orders/{i}/id", **arguments})
        for i in range(count)
    ]


def folded(planned: Workflow, task: str = "", *, follow: bool = True):
    outputs = {"list": ORDERS, **{f"get_{i}": {"price": 10 * i} for i in range(3)}, "sum": {"sum": 30}}
    return fold_repeats(planned, outputs, task, outputs_follow=follow)


LIST = node("list", "list", {})
SUM = node("sum", "sum", {"numbers": [f"$nodes.get_{i}.output#/price" for i in range(3)]})


def test_calls_over_every_item_of_a_list_become_one_node_and_their_readers_read_the_list():
    done = folded(workflow(LIST, *lookups(3), SUM, outputs={"total": "$nodes.sum.output#/sum"}))
    mapped, summed = done.workflow.nodes[1:]
    assert (mapped.for_each, mapped.arguments) == ("$nodes.list.output#/orders", {"id": "$item#/id"})
    assert summed.arguments["numbers"] == {
        "context": "$nodes.get_0_each.output",
        "selector": '[*]."price"',
        "type": "jmespath",
    }
    assert done.outputs["get_0_each"] == [{"price": 0}, {"price": 10}, {"price": 20}]
    assert done.moved == {f"get_{i}": ("get_0_each", i) for i in range(3)}
    assert not [f for f in check_workflow(done.workflow, Snapshot.of()) if f.kind != "unknown_tool"]


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        pytest.param([LIST, *lookups(2)], {"x": "$nodes.get_1.output"}, id="not-every-item"),
        pytest.param(
            [LIST, *lookups(3)],
            {"x": "$nodes.get_0.output", "y": "$nodes.get_2.output"},
            id="one-answer-is-read",
        ),
        pytest.param(
            [LIST, *lookups(2), node("get_2", "get", {"id": "$nodes.get_1.output#/price"})],
            {"x": "$nodes.get_2.output"},
            id="they-depend-on-each-other",
        ),
    ],
)
def test_less_than_a_whole_list_stays_as_it_is(nodes, outputs):
    planned = workflow(*nodes, outputs=outputs)
    assert folded(planned).workflow == planned


def test_an_output_of_the_last_call_becomes_that_of_all_only_where_nobody_planned_it():
    planned = workflow(LIST, *lookups(3), outputs={"price": "$nodes.get_2.output#/price"})
    assert folded(planned, follow=False).workflow == planned
    assert folded(planned).workflow.outputs["price"]["selector"] == '[*]."price"'


def test_values_that_the_task_lists_become_a_list_input():
    planned = workflow(
        *(node(f"get_{i}", "get", {"id": f"A-{i + 1}", "full": True}) for i in range(3)),
        outputs={"got": "$nodes.get_2.output"},
    )
    done = folded(planned, "Show A-1, A-2 and A-3")
    assert done.given == {"ids": ["A-1", "A-2", "A-3"]}
    assert [(n.for_each, n.arguments) for n in done.workflow.nodes] == [
        ("$inputs.ids", {"id": "$item", "full": True})
    ]
    assert folded(planned, "Show A-1 and A-2").workflow == planned


def test_calls_that_wait_for_folded_ones_wait_for_the_mapped_node():
    last = node("done", "put", {}, after=["get_2"])
    done = folded(workflow(LIST, *lookups(3), last, outputs={"x": "$nodes.done.output"}))
    assert done.workflow.nodes[-1].after == ("get_0_each",)

"""Linking: a literal copied from an earlier output becomes a reference to it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from server.compilation.linking import link_literals
from skills_store.workflow.model import parse_workflow


def planned(second: dict[str, Any], **more: Any):
    nodes = [
        {"id": "first", "tool": {"server": "s", "tool": "t"}, "arguments": {}},
        {"id": "second", "tool": {"server": "s", "tool": "t"}, "arguments": second, **more},
        {"id": "third", "tool": {"server": "s", "tool": "t"}, "arguments": {"x": "$nodes.second.output"}},
    ]
    outputs = {"out": "$nodes.third.output"}
    return parse_workflow({"name": "w", "inputs": {"type": "object"}, "nodes": nodes, "outputs": outputs})


OUTPUTS = {
    "first": {
        "id": "abc-123",
        "count": 4321,
        "ratio": 0.12345,
        "small": 7,
        "flag": True,
        "a/b": {"c": "deep value"},
    },
    "third": {"id": "later-value"},
}


def linked(second, task="", inputs=None):
    return link_literals(planned(second), OUTPUTS, task, inputs or {}).nodes[1].arguments


@pytest.mark.parametrize(
    ("value", "reference"),
    [
        pytest.param("abc-123", "$nodes.first.output#/id", id="text"),
        pytest.param(4321, "$nodes.first.output#/count", id="large-number"),
        pytest.param(0.12345, "$nodes.first.output#/ratio", id="telling-float"),
        pytest.param("deep value", "$nodes.first.output#/a~1b/c", id="nested"),
    ],
)
def test_a_copied_value_becomes_a_reference(value, reference):
    assert linked({"x": value}) == {"x": reference}
    assert linked({"x": {"y": [value]}}) == {"x": {"y": [reference]}}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(7, id="small-number"),
        pytest.param(True, id="boolean"),
        pytest.param("abc", id="short-text"),
        pytest.param("4321", id="text-of-a-number"),
        pytest.param("later-value", id="output-of-a-later-node"),
        pytest.param("unheard of", id="unseen"),
    ],
)
def test_chance_is_no_link(value):
    assert linked({"x": value}) == {"x": value}


def test_what_the_task_or_an_input_says_stays_theirs():
    assert linked({"x": "abc-123"}, task="look up abc-123") == {"x": "abc-123"}
    assert linked({"x": 4321}, inputs={"n": 4321}) == {"x": 4321}


def test_a_link_is_an_edge_so_that_order_needs_no_word():
    workflow = link_literals(planned({"x": "abc-123"}), OUTPUTS, "", {})
    assert workflow.nodes[1].arguments == {"x": "$nodes.first.output#/id"}
    assert workflow.nodes[1].after == ()


def test_a_node_that_was_not_run_gives_nothing():
    assert link_literals(planned({"x": "abc-123"}), {}, "", {}) == planned({"x": "abc-123"})


def chain(*calls: tuple[str, dict[str, Any]]):
    nodes: list[dict[str, Any]] = [
        {"id": name, "tool": {"server": "s", "tool": name.rstrip("0123456789")}, "arguments": arguments}
        for name, arguments in calls
    ]
    for before, node in pairwise(nodes):
        node["after"] = [before["id"]]
    outputs = {"out": f"$nodes.{calls[-1][0]}.output"}
    return parse_workflow({"name": "w", "inputs": {"type": "object"}, "nodes": nodes, "outputs": outputs})


def test_a_number_is_the_same_number_however_a_client_writes_it():
    assert linked({"x": 4321.0}) == {"x": "$nodes.first.output#/count"}


def test_what_a_call_gives_back_as_it_was_given_is_no_source():
    workflow = chain(("convert1", {"unit": "meters"}), ("convert2", {"unit": "meters", "v": 39.3701}))
    outputs = {"convert1": {"unit": "meters", "value": 39.3701}, "convert2": {}}
    found = link_literals(workflow, outputs, "", {})
    assert found.nodes[1].arguments == {"unit": "meters", "v": "$nodes.convert1.output#/value"}


@pytest.mark.parametrize(
    ("answer", "argument"),
    [
        pytest.param({"result": 12}, "$nodes.count1.output#/result", id="short-answer"),
        pytest.param({"v": 12, "w": 5, "x": 6, "y": 7, "z": 8}, 12, id="long-answer"),
    ],
)
def test_a_small_number_is_linked_to_a_short_answer_that_nobody_else_reads(answer, argument):
    workflow = chain(("count1", {"of": "x"}), ("add2", {"a": 12, "b": 3}))
    found = link_literals(workflow, {"count1": answer, "add2": {}}, "", {})
    assert found.nodes[1].arguments == {"a": argument, "b": 3}


def test_what_the_task_says_is_not_linked_to_an_unread_answer():
    workflow = chain(("count1", {"of": "x"}), ("add2", {"a": 12}))
    found = link_literals(workflow, {"count1": {"result": 12}, "add2": {}}, "count x and add 12", {})
    assert found.nodes[1].arguments == {"a": 12}


def test_an_item_of_a_list_is_linked_where_a_sibling_call_takes_another():
    workflow = chain(("read1", {}), ("convert2", {"v": 12.45}), ("convert3", {"v": 31}))
    outputs = {"read1": {"values": [[12.45], [31]]}, "convert2": {}, "convert3": {}}
    found = link_literals(workflow, outputs, "", {})
    given = [node.arguments["v"] for node in found.nodes[1:]]
    assert given == ["$nodes.read1.output#/values/0/0", "$nodes.read1.output#/values/1/0"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({"xs": [3, 5, 9]}, "$nodes.read1.output#/xs", id="list"),
        pytest.param(
            {"xs": [["a", 3], ["b", 5], ["c", 9]]},
            {"context": "$nodes.read1.output#/xs", "selector": "[*][1]", "type": "jmespath"},
            id="column-of-rows",
        ),
        pytest.param(
            {"xs": [{"n": 3}, {"n": 5}, {"n": 9}]},
            {"context": "$nodes.read1.output#/xs", "selector": "[*].n", "type": "jmespath"},
            id="column-of-objects",
        ),
    ],
)
def test_a_list_is_linked_to_a_list_or_a_column_of_one(answer, expected):
    workflow = chain(("read1", {}), ("mean2", {"data": [3, 5, 9]}))
    assert link_literals(workflow, {"read1": answer, "mean2": {}}, "", {}).nodes[1].arguments == {
        "data": expected
    }


def test_what_stands_later_in_the_document_gives_nothing_and_a_plain_word_makes_no_template():
    workflow = planned({"sql": "CREATE TABLE orders(region TEXT)"})
    seen = {"first": {"columns": ["region"]}, "third": {"name": "CREATE TABLE orders(region TEXT)"}}
    assert link_literals(workflow, seen, "", {}) == workflow

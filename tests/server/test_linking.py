"""Linking: a literal copied from an earlier output becomes a reference to it."""

from __future__ import annotations

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

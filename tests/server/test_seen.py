"""Seen values: what was sent to the same argument, and what the same server listed under its name."""

from __future__ import annotations

import pytest

from catalog.tools import ToolId
from server.curation.seen import seen_values
from skills_store.trace import Step, Trace
from skills_store.workflow.model import parse_workflow

DESCRIBE, LIST, OTHER = (ToolId("db", name) for name in ("describe", "list", "count"))


def workflow(**arguments):
    node = {"id": "n", "tool": {"server": "db", "tool": "describe"}, "arguments": arguments}
    inputs = {"type": "object", "properties": {"which": {"type": "string"}}}
    return parse_workflow(
        {"name": "w", "inputs": inputs, "nodes": [node], "outputs": {"o": "$nodes.n.output"}}
    )


def trace(tool, arguments, output=None, outcome="succeeded"):
    step = Step(node="call", tool=tool, arguments=arguments, outcome=outcome, output=output)
    return Trace(id="t", workflow_hash="", inputs={}, steps=(step,), outputs=None, status="succeeded")


TABLE = workflow(table="$inputs.which")


def test_what_was_sent_to_the_same_argument_of_the_same_tool_is_seen_newest_first():
    traces = [trace(DESCRIBE, {"table": name}) for name in ("orders", "users", "orders")]
    others = [
        trace(OTHER, {"table": "elsewhere"}),
        trace(DESCRIBE, {"table": "failed"}, outcome="failed"),
        trace(DESCRIBE, {"other": "x"}),
    ]
    assert seen_values(TABLE, [*others, *traces]) == {"which": ["orders", "users"]}


@pytest.mark.parametrize(
    "output",
    [
        pytest.param({"tables": ["orders", "users"]}, id="texts-under-the-plural"),
        pytest.param({"items": [{"table": "orders"}, {"table": "users"}]}, id="records-with-the-key"),
        pytest.param({"tables": [{"id": "orders", "rows": 3}, {"id": "users"}]}, id="records-with-an-id"),
        pytest.param({"db": {"table_name": "orders", "more": {"tables": ["users"]}}}, id="deep"),
    ],
)
def test_what_a_tool_of_the_server_listed_under_the_name_is_seen(output):
    names = workflow(table_name="$inputs.which") if "db" in output else TABLE
    assert seen_values(names, [trace(LIST, {}, output)]) == {"which": ["orders", "users"]}


def test_what_another_server_listed_is_not_seen():
    assert seen_values(TABLE, [trace(ToolId("files", "list"), {}, {"tables": ["x"]})]) == {}


@pytest.mark.parametrize(
    "value",
    ["[redacted]", "", {"$digest": "sha256:x", "size": 9, "preview": "a"}, "x" * 501, ["[redacted]"]],
    ids=["secret", "empty", "cut", "long", "secret-inside"],
)
def test_what_was_taken_out_or_cut_is_not_seen(value):
    assert seen_values(TABLE, [trace(DESCRIBE, {"table": value})]) == {}


@pytest.mark.parametrize(
    "argument", ["{$inputs.which}s", "$inputs.which#/name"], ids=["in-a-text", "a-part-of-it"]
)
def test_an_input_that_is_not_handed_on_whole_has_no_place_to_be_seen_at(argument):
    assert seen_values(workflow(table=argument), [trace(DESCRIBE, {"table": "orders"})]) == {}

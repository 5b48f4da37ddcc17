"""Choosing among valid plans by what they mean, and leaving out what nobody asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from server.planning.choosing import by_promise, promise_of
from server.planning.needless import without_needless
from server.planning.plan_reading import read_plan
from server.planning.sequence import in_sequence
from skills_store.workflow.model import Workflow
from tests.server.compact_plans import vocabulary, world

TASK = "Get the forecast for Paris for 2 days, then email the summary to lee@example.com."
INPUTS = {"city": "Paris", "days": 2}


def plan(*nodes: Any, task: str = TASK, inputs: Any = None, **outputs: str) -> Workflow:
    answer = json.dumps({"nodes": nodes, "outputs": outputs})
    reading = read_plan(answer, vocabulary(task, *outputs, inputs=inputs))
    assert reading.workflow is not None, reading.faults
    return reading.workflow


def forecast(node_id: str = "n1", **arguments: Any) -> dict[str, Any]:
    return {"tool": "get_forecast", "id": node_id, "arguments": {"city": "Paris", "days": 2, **arguments}}


def mail(node_id: str = "n2", body: str = "$n1.summary") -> dict[str, Any]:
    arguments = {"to": ["lee@example.com"], "subject": "Weather", "body": body}
    return {"tool": "send_email", "id": node_id, "arguments": arguments}


GOOD = plan(forecast(), mail(), sent="$n2.message_id")
WORSE = {
    "a value of the task is left out": plan(forecast(days=3), mail(), sent="$n2.message_id"),
    "a tool that is not there": plan(forecast(), {**mail(), "tool": "fax"}, sent="$n1.summary"),
    "a step nobody reads": plan(
        {"tool": "search_files", "id": "n0", "arguments": {"root": "/", "pattern": "*"}},
        forecast(),
        mail(),
        sent="$n2.message_id",
    ),
    "a tool the task does not speak of": plan(
        {"tool": "fetch_url", "id": "n1", "arguments": {"url": "Paris", "max_chars": 200}},
        mail(body="$n1.text"),
        sent="$n2.message_id",
    ),
}


@pytest.mark.parametrize("worse", WORSE.values(), ids=WORSE.keys())
def test_the_plan_that_does_what_is_asked_comes_first(worse: Workflow):
    assert by_promise([worse, GOOD], world(TASK), ["sent"]) == [GOOD, worse]


def test_a_plan_that_uses_the_inputs_promises_more():
    used = plan(forecast(), mail(), inputs=INPUTS, sent="$n2.message_id")
    assert promise_of(used, world(TASK, INPUTS), ["sent"]).said == 1.0


def test_plans_alike_keep_their_order():
    twin = GOOD.model_copy(update={"name": "twin"})
    assert [p.name for p in by_promise([GOOD, twin], world(TASK), ["sent"])] == ["plan", "twin"]


def called(workflow: Workflow) -> list[str]:
    return [node.tool.tool for node in workflow.nodes if node.tool]


def test_a_leading_step_that_nothing_reads_goes():
    assert called(without_needless(WORSE["a step nobody reads"], world(TASK))) == [
        "get_forecast",
        "send_email",
    ]


def test_a_trailing_write_that_nobody_asked_for_goes_and_the_output_moves():
    task = "How much is 250 euros in Japanese yen?"
    convert = {
        "tool": "convert_currency",
        "id": "n1",
        "arguments": {"amount": 250, "from_currency": "EUR", "to_currency": "JPY"},
    }
    write = {"tool": "write_file", "id": "n2", "arguments": {"path": "/tmp/a", "content": "$n1.amount"}}
    shorter = without_needless(plan(convert, write, task=task, yen="$n2.path"), world(task))
    assert called(shorter) == ["convert_currency"]
    assert shorter.outputs == {"yen": "$nodes.n1.output#/amount"}


def test_a_trailing_write_that_the_task_speaks_of_stays():
    assert without_needless(GOOD, world(TASK)) == GOOD


def test_the_last_step_stays_whatever_the_task_says():
    lone = plan(mail(), task="Tell me a joke", sent="$n2.message_id")
    assert without_needless(lone, world("Tell me a joke")) == lone


def test_a_write_that_a_later_step_may_stand_on_stays():
    write = {"tool": "write_file", "id": "n1", "arguments": {"path": "/tmp/a", "content": "x"}}
    look = {"tool": "read_file", "id": "n2", "arguments": {"path": "/tmp/a"}}
    task = "What does reading /tmp/a give once x is put there?"
    both = plan(write, look, task=task, text="$n2.text")
    assert called(without_needless(both, world(task))) == ["write_file", "read_file"]


def test_steps_that_change_something_run_in_the_order_listed():
    write = {"tool": "write_file", "id": "n1", "arguments": {"path": "/tmp/a", "content": "x"}}
    look = {"tool": "read_file", "id": "n2", "arguments": {"path": "/tmp/a"}}
    search = {"tool": "web_search", "id": "n3", "arguments": {"query": "x"}}
    ordered = in_sequence(plan(write, look, search, text="$n2.text"), world(TASK))
    assert [node.after for node in ordered] == [(), ("n1",), ("n1",)]


def test_free_steps_run_side_by_side():
    one, other = forecast("n1"), forecast("n2", city="Rome")
    beside = plan(one, other, summary="$n2.summary")
    assert in_sequence(beside, world(TASK)) == beside


def test_an_order_that_data_contradicts_is_left_alone():
    backwards = plan(mail("n1", body="$n2.summary"), forecast("n2"), sent="$n1.message_id")
    assert in_sequence(backwards, world(TASK)) == backwards

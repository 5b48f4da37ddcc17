"""Reading what models send: other keys, other spellings, JSON in strings; and never an exception."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot as expected

from server.planning.answer_json import NotJson, read_json
from server.planning.plan_reading import read_plan
from skills_store.workflow.check import check_workflow
from skills_store.workflow.model import Workflow, parse_workflow
from tests.server.compact_plans import recorded, snapshot, vocabulary

TASK = "Download https://example.com/terms and save the page text as /tmp/terms.txt."
FETCH = {"tool": "fetch_url", "id": "n1", "arguments": {"url": "https://example.com/terms"}}
WRITE = {"tool": "write_file", "id": "n2", "arguments": {"path": "/tmp/terms.txt", "content": "$n1.text"}}
PLAN = {"nodes": [FETCH, WRITE], "outputs": {"saved": "$n2.path"}}


def read(answer: Any, *wanted: str, inputs: Any = None, **more: Any):
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return read_plan(text, vocabulary(TASK, *wanted, inputs=inputs), **more)


def workflow(answer: Any, *wanted: str, inputs: Any = None) -> Workflow:
    reading = read(answer, *wanted, inputs=inputs)
    assert reading.workflow is not None, reading.faults
    assert not reading.faults
    return reading.workflow


def test_a_plan_becomes_a_workflow_document():
    document = workflow(PLAN, "saved").to_json()
    assert document == expected(
        {
            "name": "plan",
            "inputs": {"type": "object", "properties": {}, "required": []},
            "nodes": [
                {
                    "id": "n1",
                    "tool": {"server": "desk", "tool": "fetch_url"},
                    "arguments": {"url": "https://example.com/terms"},
                },
                {
                    "id": "n2",
                    "tool": {"server": "desk", "tool": "write_file"},
                    "arguments": {"path": "/tmp/terms.txt", "content": "$nodes.n1.output#/text"},
                },
            ],
            "outputs": {"saved": "$nodes.n2.output#/path"},
        }
    )
    assert check_workflow(workflow(PLAN, "saved"), snapshot()) == []


BARE = json.dumps(PLAN)
SAME = {
    "fenced": f"```json\n{BARE}\n```",
    "fenced with talk": f"Here is the plan:\n```\n{BARE}\n```\nIt saves the page.",
    "a fence that never closes": f"```json\n{BARE}",
    "text around": f"Sure! {BARE} Let me know.",
    "thinking before": f"<think>{{maybe}} two steps</think>\n{BARE}",
    "a trailing comma": BARE.replace("}}", "},}"),
    "a bracket too many": BARE.replace('/terms"}}', '/terms"}}}'),
    "a reference without quotes": BARE.replace('"$n1.text"', "$n1.text"),
    "a list of nodes alone": json.dumps([FETCH, WRITE]),
    "all of it in a string": json.dumps(json.dumps(PLAN)).join(('{"plan": ', "}")),
    "params for arguments": BARE.replace('"arguments"', '"params"'),
    "args in strings": json.dumps(
        {"steps": [{**FETCH, "arguments": json.dumps(FETCH["arguments"])}, WRITE], "outputs": PLAN["outputs"]}
    ),
    "server and tool apart": json.dumps(
        {"nodes": [{**FETCH, "server": "desk"}, {**WRITE, "tool": {"server": "desk", "tool": "write_file"}}]}
    ),
    "a dot between server and tool": BARE.replace('"fetch_url"', '"desk.fetch_url"'),
    "a slash between server and tool": BARE.replace('"fetch_url"', '"desk/fetch_url"'),
    "other case": BARE.replace('"fetch_url"', '"Fetch_URL"'),
    "a call for a name": BARE.replace('"fetch_url"', '"fetch_url()"'),
    "functions as in chat": json.dumps(
        {
            "tool_calls": [
                {"id": "n1", "function": {"name": "fetch_url", "arguments": json.dumps(FETCH["arguments"])}},
                {"id": "n2", "function": {"name": "write_file", "arguments": WRITE["arguments"]}},
            ]
        }
    ),
    "nodes by name": json.dumps({"nodes": {"n1": {**FETCH, "id": "n1"}, "n2": WRITE}}),
    "our own references": BARE.replace("$n1.text", "$nodes.n1.output#/text"),
    "output in between": BARE.replace("$n1.text", "$n1.output.text"),
    "a template": BARE.replace("$n1.text", "{{n1.text}}"),
    "a shell variable": BARE.replace("$n1.text", "${n1.text}"),
    "no dollar": BARE.replace("$n1.text", "n1.text"),
    "an order that data says already": BARE.replace('"id": "n2"', '"id": "n2", "depends_on": ["n1"]'),
    "null for what is left out": BARE.replace('/terms"}', '/terms", "max_chars": null}'),
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME.keys())
def test_what_models_really_send_means_the_same(text: str):
    assert workflow(text, "saved") == workflow(PLAN, "saved")


def test_ids_become_ours_and_references_follow():
    steps = [{**FETCH, "id": "Step 1"}, {**WRITE, "id": "Step 1"}, {**WRITE, "id": "3"}]
    steps[2]["arguments"] = {"path": "/tmp/a", "content": "$Step 1.text"}
    found = read({"nodes": steps}).workflow
    assert found is not None
    assert [node.id for node in found] == ["step_1", "step_1_2", "n3"]


def test_a_reference_to_a_node_that_is_not_there_is_a_fault_the_next_attempt_sees():
    plan = workflow(BARE.replace("$n1.text", "$n7.text"), "saved")
    [fault] = check_workflow(plan, snapshot())
    assert fault.kind == "dangling_reference"
    assert "n7" in fault.message


def test_money_is_no_reference():
    plan = workflow(BARE.replace('"$n1.text"', '"$50 for $n1.text"'))
    assert plan.nodes[1].arguments["content"] == "$$50 for {$nodes.n1.output#/text}"
    assert workflow(BARE.replace('"$n1.text"', '"$50"')).nodes[1].arguments["content"] == "$$50"


def test_a_scalar_stands_for_a_list_of_one():
    mail = {"tool": "send_email", "arguments": {"to": "boss@example.com", "subject": "a", "body": "b"}}
    assert workflow([mail]).nodes[0].arguments["to"] == ["boss@example.com"]


def test_a_value_that_one_input_has_becomes_a_reference_to_it():
    plan = workflow(PLAN, inputs={"address": "https://example.com/terms", "days": 3})
    assert plan.nodes[0].arguments["url"] == "$inputs.address"
    assert workflow(
        BARE.replace("https://example.com/terms", "$inputs.address"), inputs={"address": "x"}
    ) == (workflow(BARE.replace("https://example.com/terms", "$address"), inputs={"address": "x"}))


def test_an_order_without_data_is_kept_where_no_cycle_comes_of_it():
    lone = {"tool": "web_search", "id": "n3", "arguments": {"query": "x"}, "depends_on": ["n2", "n9"]}
    plan = workflow({"nodes": [{**FETCH, "depends_on": ["n2"]}, WRITE, lone]})
    assert [node.after for node in plan] == [(), (), ("n2",)]


def test_an_answer_that_no_tool_gave_is_no_output():
    plan = workflow({**PLAN, "outputs": {"saved": "it is saved"}}, "saved")
    assert plan.outputs == {"saved": "$nodes.n2.output#/path"}


def test_outputs_under_another_name_are_the_one_that_is_wanted():
    assert workflow({**PLAN, "outputs": {"result": "$n1.text"}}, "page").outputs == {
        "page": "$nodes.n1.output#/text"
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("I cannot do that.", "it holds no {"),
        ('{"nodes": [{"tool": "fetch_url"', "at character"),
        ('{"nodes": []}', "holds no plan"),
        ('{"nodes": [3]}', "a node is an object, this is a"),
        ('{"nodes": [{"id": "n1", "arguments": {}}]}', "names no tool"),
        ('{"nodes": [{"tool": "fetch_url", "arguments": [1]}]}', "are an object by name"),
        ('{"nodes": [{"tool": "fetch_url", "arguments": {"x": NaN}}]}', "NaN"),
        ('{"nodes": [{"tool": "fetch_url", "arguments": {"x": 1e999}}]}', "cannot carry"),
        (json.dumps({"nodes": [FETCH] * 41}), "at most 40"),
    ],
)
def test_the_rest_is_a_fault_that_says_what_to_do_better(text: str, said: str):
    reading = read(text)
    assert said in " ".join(fault.message for fault in reading.faults)
    assert all(fault.kind == "malformed" for fault in reading.faults)


def test_an_answer_that_was_cut_off_says_so():
    assert "cut off" in read('{"nodes": [', is_cut_off=True).faults[0].message


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["$n1.x", "fetch_url"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["nodes", "steps", "tool", "id", "arguments", "args", "outputs", "depends_on", "function"]
            )
            | st.text(max_size=6),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@st.composite
def garbled(draw: st.DrawFn) -> str:
    """A real plan with pieces cut out, doubled and replaced."""
    text = draw(st.sampled_from([plan.text for plan in recorded()] + [BARE]))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, max(0, len(text) - 1)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        text = text[:start] + draw(st.text(max_size=5) | st.just(text[start:end] * 2)) + text[end:]
    return text


def survives(text: str) -> None:
    reading = read(text, "saved", inputs={"x": 1, "list": [1, 2]})
    assert reading.workflow is not None or reading.faults
    if reading.workflow is not None:
        json.dumps(reading.workflow.to_json(), allow_nan=False).encode("utf-8")
        assert parse_workflow(reading.workflow.to_json()) == reading.workflow
        check_workflow(reading.workflow, snapshot())


@settings(deadline=None)
@given(st.text() | garbled() | json_values.map(lambda value: json.dumps(value)))
@example("[" * 100_000)
@example('{"a":' * 100_000)
@example('{"nodes": [{"tool": "x", "arguments": {"a": "\\ud800"}}]}')
@example('{"nodes": [{"tool": "\\u0000", "id": "\\u0000"}]}')
@example('{"nodes": {"nodes": {"nodes": {"nodes": {"nodes": [1]}}}}}')
@example(json.dumps({"nodes": [{"tool": "fetch_url", "id": 10**400, "arguments": {"url": 10**400}}]}))
def test_no_completion_however_garbled_raises_out_of_the_parser(text: str):
    survives(text)


@settings(deadline=None)
@given(st.lists(json_values, max_size=4))
def test_no_nodes_however_odd_raise_out_of_the_parser(nodes: list[Any]):
    survives(json.dumps({"nodes": nodes, "outputs": {"saved": nodes[:1]}}))


def test_json_that_is_a_part_of_broken_json_is_not_taken_for_the_whole():
    with pytest.raises(NotJson):
        read_json('{"nodes": [{"tool": "fetch_url", "arguments": {"url": "a"}} {')

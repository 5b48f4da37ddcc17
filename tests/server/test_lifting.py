"""Lifting: what task and arguments share becomes an input; the rest is said to stay."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.tools import Snapshot, Tool, ToolId
from server.compilation.lifting import lift_literals
from server.compilation.places import Place, literal_places
from skills_store.workflow.model import parse_workflow
from skills_store.workflow.references import Scope, resolve

UNIT = {"type": "string", "enum": ["mi", "km", "miles"]}
CONVERT = Tool(
    ToolId("s", "convert"),
    {
        "type": "object",
        "properties": {
            "value": {
                "type": "number",
                "minimum": 0,
                "default": 1,
                "title": "Value",
                "description": "How much.",
            },
            "from_unit": UNIT,
            "options": {"type": "object"},
        },
    },
)
KNOWN = Snapshot.of(CONVERT)


def planned(*arguments: dict[str, Any], inputs: dict[str, Any] | None = None):
    nodes = [
        {"id": f"n{index}", "tool": {"server": "s", "tool": "convert"}, "arguments": given}
        for index, given in enumerate(arguments)
    ]
    outputs = {"out": f"$nodes.n{len(arguments) - 1}.output"}
    return parse_workflow(
        {"name": "plan", "inputs": inputs or {"type": "object"}, "nodes": nodes, "outputs": outputs}
    )


def lifted(workflow, task, inputs=None):
    return lift_literals(workflow, task, inputs or {}, KNOWN)


def test_literals_that_the_task_says_become_inputs_with_the_constraints_of_what_they_feed():
    found = lifted(planned({"value": 5, "from_unit": "miles"}), "Convert 5 miles")
    assert found.inputs == {"value": 5, "from_unit": "miles"}
    assert found.workflow.nodes[0].arguments == {"value": "$inputs.value", "from_unit": "$inputs.from_unit"}
    assert found.workflow.inputs == {
        "type": "object",
        "properties": {
            "value": {"type": "number", "minimum": 0, "description": "How much."},
            "from_unit": UNIT,
        },
        "required": ["value", "from_unit"],
        "additionalProperties": False,
    }
    assert found.uncarried == ()


@pytest.mark.parametrize(
    ("second", "inputs"),
    [
        pytest.param({"value": 5}, {"value": 5}, id="equal"),
        pytest.param({"value": 5.0}, {"value": 5}, id="equal-number-of-another-type"),
        pytest.param({"value": 7}, {"value": 5, "n1_value": 7}, id="another"),
        pytest.param({"from_unit": "5"}, {"value": 5, "from_unit": "5"}, id="text-is-no-number"),
    ],
)
def test_equal_literals_are_one_input(second, inputs):
    assert lifted(planned({"value": 5}, second), "first 5 then 7").inputs == inputs


def test_text_that_differs_in_case_is_one_input():
    found = lifted(planned({"from_unit": "Oslo"}, {"from_unit": "oslo"}), "Weather in Oslo")
    assert found.inputs == {"from_unit": "Oslo"}


@pytest.mark.parametrize(
    ("argument", "name"),
    [("value", "value"), ("Max Größe", "max_gr_e"), ("2nd", "in_2nd"), ("---", "value")],
)
def test_an_input_is_named_after_what_it_feeds_in_plain_letters(argument, name):
    assert list(lifted(planned({argument: 5}), "take 5").inputs) == [name]


def test_literals_deep_inside_arguments_are_lifted_by_their_type():
    found = lifted(planned({"options": {"list/of": [1, 42]}}), "take 42")
    assert found.workflow.nodes[0].arguments == {"options": {"list/of": [1, "$inputs.options"]}}
    assert found.workflow.inputs["properties"] == {"options": {"type": "integer"}}


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"value": True}, id="booleans"),
        pytest.param({"value": None}, id="null"),
        pytest.param({"from_unit": "to"}, id="words-of-every-sentence"),
        pytest.param({"from_unit": {"$literal": "miles"}}, id="quoted"),
        pytest.param({"from_unit": "{$inputs.x} miles"}, id="templates"),
        pytest.param({"from_unit": "smiles"}, id="parts-of-words"),
    ],
)
def test_what_says_nothing_stays(arguments):
    workflow = planned(arguments)
    assert lifted(workflow, "Is it true to convert None of the miles?").workflow == workflow


DECLARED = {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]}


class TestDeclaredInputs:
    def test_are_the_signature_whatever_else_the_task_says(self):
        workflow = planned({"value": "$inputs.value", "from_unit": "miles"}, inputs=DECLARED)
        found = lifted(workflow, "Convert 5 miles for 17 people", {"value": 5})
        assert (found.workflow, found.inputs, found.uncarried) == (workflow, {"value": 5}, ())

    def test_hold_even_where_the_run_took_defaults(self):
        workflow = planned({"value": "$inputs.value", "from_unit": "miles"}, inputs=DECLARED)
        assert lifted(workflow, "Convert miles").workflow == workflow


@pytest.mark.parametrize(
    ("task", "uncarried"),
    [
        pytest.param("Convert 5 miles", (), id="nothing"),
        pytest.param("Convert 5 miles for 17 people", ("17",), id="a-number"),
        pytest.param("Convert 5 miles, 17 and 17", ("17",), id="each-once"),
        pytest.param("Convert 5 miles into 'my book.txt'", ("'my book.txt'",), id="a-quotation"),
        pytest.param("Convert 5 miles for ACME on 2024-05-01", ("2024-05-01",), id="a-date-but-no-name"),
    ],
)
def test_values_that_no_input_carries_are_named(task, uncarried):
    assert lifted(planned({"value": 5, "from_unit": "miles"}), task).uncarried == uncarried


def test_without_a_task_there_is_nothing_to_lift():
    workflow = planned({"value": 5})
    found = lifted(workflow, "")
    assert (found.workflow, found.inputs, found.uncarried) == (workflow, {}, ())


def test_places_are_listed_in_the_order_of_the_document():
    workflow = planned({"a": 1, "b": ["$inputs.x", "t"], "c": {"d": None}})
    assert list(literal_places(workflow)) == [
        Place("n0", "a", "/a", 1),
        Place("n0", "b", "/b/1", "t"),
        Place("n0", "c", "/c/d", None),
    ]


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_lifted_inputs_put_back_give_the_run_again(one, two):
    workflow = planned({"value": one}, {"value": two, "options": {"deep": one}})
    found = lifted(workflow, f"take {one} and then {two}")
    scope = Scope(found.inputs)
    again = [resolve(node.arguments, scope) for node in found.workflow.nodes]
    assert again == [node.arguments for node in workflow.nodes]


def test_a_code_that_stands_twice_in_a_text_is_one_input_at_both_places():
    found = lifted(planned({"options": {"range": "B3:B3"}}), "Read the cell B3")
    assert found.inputs == {"options": "B3"}
    assert found.workflow.nodes[0].arguments == {"options": {"range": "{$inputs.options}:{$inputs.options}"}}

"""The planner without a model: tools by retrieval, arguments by type, links by name."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.effects import EffectTable
from catalog.search import ToolIndex
from catalog.tools import Snapshot, Tool, ToolId
from server.planning.deterministic import plan_deterministically
from server.planning.view import World
from skills_store.workflow.check import check_workflow

NUMBER, TEXT = {"type": "number"}, {"type": "string"}
UNIT = {"type": "string", "enum": ["celsius", "fahrenheit"]}


def tool(name: str, description: str, output: Any = None, **properties: Any) -> Tool:
    schema = {
        "type": "object",
        "properties": properties,
        "required": [n for n, part in properties.items() if "default" not in part],
        "additionalProperties": False,
    }
    returned = {"type": "object", "properties": output} if output else None
    return Tool(ToolId("s", name), schema, returned, description=description)


WEATHER = tool(
    "current_weather", "Get the current weather temperature of a city.", {"temp_c": NUMBER}, city=TEXT
)
CONVERT = tool(
    "convert_temperature",
    "Convert a temperature to another unit.",
    {"converted": NUMBER},
    value=NUMBER,
    from_unit=UNIT,
    to_unit=UNIT,
    digits={"type": "integer", "default": 2},
)
HASH = tool("sha256", "Compute the SHA-256 hash of a text.", {"digest": TEXT}, text=TEXT)
ADD = tool("add", "Add two numbers.", {"sum": NUMBER}, a=NUMBER, b=NUMBER)
SNAPSHOT = Snapshot.of(WEATHER, CONVERT, HASH, ADD)


def plans(task: str, *wanted: str, inputs: Any = None, snapshot=SNAPSHOT, **more: Any):
    world = World(task, inputs or {}, snapshot, EffectTable(), ToolIndex(snapshot))
    return plan_deterministically(world, wanted, **more)


def called(plan) -> list[str]:
    return [node.tool.tool for node in plan.nodes]


def test_a_tool_is_found_and_filled_from_the_task():
    plan = plans("Compute the sha256 hash of the text 'hello'", "digest")[0]
    assert called(plan) == ["sha256"]
    assert plan.nodes[0].arguments == {"text": "hello"}
    assert plan.outputs == {"digest": "$nodes.sha256.output#/digest"}


def test_two_numbers_go_to_two_arguments():
    plan = plans("Add 3 and 4", "sum")[0]
    assert called(plan) == ["add"]
    assert sorted(plan.nodes[0].arguments.values()) == [3, 4]


def test_given_inputs_are_declared_and_referred_to():
    plan = plans("Add two numbers", "sum", inputs={"a": 3, "b": 4.5})[0]
    assert plan.nodes[0].arguments == {"a": "$inputs.a", "b": "$inputs.b"}
    assert plan.inputs == {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    }


def test_clauses_become_steps_that_are_linked():
    found = plans("Get the current weather temperature of the city 'Oslo' and then convert it to fahrenheit")
    chains = [plan for plan in found if called(plan) == ["current_weather", "convert_temperature"]]
    assert chains
    assert chains[0].nodes[1].arguments["value"] == "$nodes.current_weather.output#/temp_c"
    assert "digits" not in chains[0].nodes[1].arguments


def test_without_a_wanted_name_there_is_one_output_called_result():
    assert [*plans("Compute the sha256 hash of 'x'")[0].outputs] == ["result"]


@pytest.mark.parametrize("limit", [1, 2, 8])
def test_plans_are_distinct_and_bounded(limit):
    found = plans("Add 3 and 4 and then compute the hash of the text 'x'", "digest", limit=limit)
    assert 1 <= len(found) <= limit
    assert len({plan.model_dump_json() for plan in found}) == len(found)


def test_a_plan_is_well_formed_though_its_arguments_may_be_missing():
    for plan in plans("Get the weather, then convert it, then add 3, then hash it", "digest"):
        assert {fault.kind for fault in check_workflow(plan, SNAPSHOT)} <= {
            "missing_argument",
            "invalid_argument",
        }


def test_the_same_task_gives_the_same_plans():
    task = "Add 3 and 4 and then compute the hash of the text 'x'"
    assert plans(task, "digest") == plans(task, "digest")


def test_two_steps_with_one_tool_have_ids_of_their_own():
    adding = Snapshot.of(ADD)
    found = plans("add the numbers 3 and 4 then add the numbers 5 and 6", "sum", snapshot=adding)
    twice = [plan for plan in found if called(plan) == ["add", "add"]]
    assert [node.id for node in twice[0].nodes] == ["add", "add_2"]


@pytest.mark.parametrize("task", ["", "zzz qqq"])
def test_where_no_tool_fits_there_is_no_plan(task):
    assert plans(task) == []


TOTAL = tool("total", "Sum a list of numbers.", {"sum": NUMBER}, numbers={"type": "array", "items": NUMBER})


@pytest.mark.parametrize("task", ["the digests of 'a', 'b' and 'c'", "Compute the sha256 of 'a', 'b' & 'c'"])
def test_what_a_task_says_of_several_things_is_planned_for_each(task):
    plan = plans(task, "digests")[0]
    assert [node.arguments for node in plan.nodes] == [{"text": "a"}, {"text": "b"}, {"text": "c"}]
    assert plan.outputs == {"digests": [f"$nodes.{node.id}.output#/digest" for node in plan.nodes]}
    assert not check_workflow(plan, SNAPSHOT)


def test_a_tool_that_takes_a_list_gets_the_whole_of_it():
    snapshot = Snapshot.of(TOTAL, ADD, HASH)
    plan = plans("Sum 3, 5 and 8", "sum", snapshot=snapshot)[0]
    assert (called(plan), plan.nodes[0].arguments) == (["total"], {"numbers": [3, 5, 8]})
    assert not check_workflow(plan, snapshot)


def test_two_operands_are_no_list_to_go_through():
    assert plans("Add 3 and 5", "sum")[0].nodes[0].arguments == {"a": 3, "b": 5}


def test_a_text_of_a_list_that_looks_like_a_reference_stands_for_itself():
    plan = plans("the digests of '$inputs.x' and 'b'", "digests")[0]
    assert [node.arguments for node in plan.nodes] == [{"text": "$$inputs.x"}, {"text": "b"}]


def test_a_tool_that_takes_one_runs_over_each_item_of_a_list_input():
    plan = plans("Compute the sha256 digests of the texts", "digests", inputs={"texts": ["a", "b"]})[0]
    (node,) = plan.nodes
    assert (node.for_each, node.arguments) == ("$inputs.texts", {"text": "$item"})
    read = {"context": f"$nodes.{node.id}.output", "selector": '[*]."digest"', "type": "jmespath"}
    assert plan.outputs == {"digests": read}
    assert not check_workflow(plan, SNAPSHOT)


def test_a_list_input_of_other_things_is_not_gone_through():
    made = plans("Compute the sha256 digests of the texts", "digests", inputs={"texts": ["a", {"b": 1}]})
    assert all(node.for_each is None for plan in made for node in plan.nodes)


def test_a_list_input_goes_whole_to_a_tool_that_takes_lists():
    snapshot = Snapshot.of(TOTAL, HASH)
    plan = plans("Sum the numbers", "sum", inputs={"numbers": [3, 5, 8]}, snapshot=snapshot)[0]
    assert (plan.nodes[0].for_each, plan.nodes[0].arguments) == (None, {"numbers": "$inputs.numbers"})

"""Planning anew from the task's words, clause by clause."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from catalog.testing import ScriptedServer, ScriptedTool
from catalog.tools import JsonSchema, ToolId
from server.evolution.clause_edits import propose_by_clauses
from server.planning.clause_planner import plan_by_clauses
from server.planning.view import View
from skills_store.workflow.model import Workflow
from tests.worlds import (
    NUMBER,
    SUMS,
    TEXT,
    Arguments,
    gives,
    node,
    scene,
    snapshot_of,
    takes,
    view_of,
    workflow,
    world_of,
)

pytestmark = pytest.mark.anyio

_GROWTH = (
    "Divide the discount by 100, add 1 to it, raise that to the power of the months"
    " and multiply by the price."
)


def _quotient(arguments: Arguments) -> JsonValue:
    return {"result": arguments["a"] / arguments["b"]}


def _power(arguments: Arguments) -> JsonValue:
    return {"result": arguments["base"] ** arguments["exponent"]}


_FACTORS = {"ft": 0.3048, "m": 1.0, "lb": 0.45359237, "kg": 1.0}


def _length(arguments: Arguments) -> JsonValue:
    value = arguments["value"] * _FACTORS[arguments["from_unit"]] / _FACTORS[arguments["to_unit"]]
    return {"input_value": arguments["value"], "output_value": value}


def _statistics(arguments: Arguments) -> JsonValue:
    data = arguments["data"]
    return {
        "data_count": len(data),
        "result": {"mean": sum(data) / len(data), "max": max(data)}[arguments["operation"]],
    }


CALCULATOR = (
    *SUMS,
    ScriptedTool("divide", _quotient, takes(a=NUMBER, b=NUMBER), gives(result=NUMBER), "Divide two numbers"),
    ScriptedTool(
        "power",
        _power,
        takes(base=NUMBER, exponent=NUMBER),
        gives(result=NUMBER),
        "Raise a number to a power",
    ),
)
MEASURES = (
    ScriptedTool(
        "convert_units",
        _length,
        takes(value=NUMBER, from_unit=TEXT, to_unit=TEXT),
        None,
        "Convert a value between units",
    ),
    ScriptedTool(
        "statistics",
        _statistics,
        takes(
            data={"type": "array", "items": NUMBER},
            operation={"type": "string", "description": "what to compute (mean, max, etc.)"},
        ),
        None,
        "Statistics of numbers",
    ),
    ScriptedTool(
        "evaluate_expression",
        lambda _: {"result": 5.0},
        takes(expression=TEXT),
        None,
        "Evaluate an expression",
    ),
    ScriptedTool(
        "show_file",
        lambda _: {"text": "net_price=4.5\nstock=20\n"},
        takes(path=TEXT),
        None,
        "Show a text file",
    ),
    ScriptedTool(
        "read_column",
        lambda _: {"cells": [[2.0], [4.0]]},
        takes(column=TEXT),
        None,
        "Read a column of a sheet",
    ),
)
WORLD = snapshot_of(sums=CALCULATOR, s=MEASURES)
SEEN: dict[ToolId, JsonValue] = {
    ToolId("s", "convert_units"): {"input_value": 1.0, "output_value": 0.3},
    ToolId("s", "statistics"): {"data_count": 2, "result": 3.0},
    ToolId("s", "evaluate_expression"): {"result": 5.0},
    ToolId("s", "show_file"): {"text": "net_price=4.5\nstock=20\n"},
    ToolId("s", "read_column"): {"cells": [[2.0], [4.0]]},
}


def _calls(plan: Workflow | None) -> list[tuple[str, dict[str, Any]]]:
    return [(n.tool.tool if n.tool else "", n.arguments) for n in plan.nodes] if plan else []


def _planned(task: str, inputs: dict[str, Any], base: Workflow | None = None) -> Workflow | None:
    given = base or workflow(node("n1", "sums/add", {"a": 1, "b": 2}), outputs={"answer": "$nodes.n1.output"})
    return plan_by_clauses(View(world_of(task, inputs, WORLD), given, {}, SEEN), tuple(given.outputs))


def test_each_clause_is_a_call_and_what_came_before_is_read() -> None:
    plan = _planned(
        _GROWTH,
        {"price": 40, "discount": 5, "months": 3},
    )
    assert _calls(plan) == [
        ("divide", {"a": "$inputs.discount", "b": 100}),
        ("add", {"a": 1, "b": "$nodes.s1_divide.output#/result"}),
        ("power", {"base": "$nodes.s2_add.output", "exponent": "$inputs.months"}),
        ("multiply", {"a": "$nodes.s3_power.output#/result", "b": "$inputs.price"}),
    ]


def test_a_noun_said_again_is_the_step_about_it_and_a_unit_tells_the_input() -> None:
    plan = _planned(
        "Convert the way from ft to m and the load from lb to kg, then divide the load by the way.",
        {"feet": 10, "pounds": 3},
    )
    assert _calls(plan) == [
        ("convert_units", {"from_unit": "ft", "to_unit": "m", "value": "$inputs.feet"}),
        ("convert_units", {"from_unit": "lb", "to_unit": "kg", "value": "$inputs.pounds"}),
        (
            "divide",
            {
                "a": "$nodes.s2_convert_units.output#/output_value",
                "b": "$nodes.s1_convert_units.output#/output_value",
            },
        ),
    ]


def test_each_element_of_a_list_is_mapped_and_its_reader_takes_all() -> None:
    plan = _planned("Convert each from ft to m and take the mean with statistics.", {"ways": [1, 2.5]})
    assert plan is not None
    assert plan.nodes[0].for_each == "$inputs.ways"
    assert plan.nodes[1].arguments == {
        "operation": "mean",
        "data": {
            "context": "$nodes.s1_convert_units.output",
            "selector": "[].output_value",
            "type": "jmespath",
        },
    }


def test_an_expression_reads_the_inputs_it_names() -> None:
    plan = _planned(
        "Evaluate the expression (base + 2) * high and subtract 1 from it.", {"base": 2, "high": 3}
    )
    assert _calls(plan)[0] == ("evaluate_expression", {"expression": "({$inputs.base} + 2) * {$inputs.high}"})


def test_sound_calls_of_the_plan_are_kept_and_numbers_taken_out_of_their_text() -> None:
    base = workflow(
        node("n1", "s/show_file", {"path": "$inputs.path"}),
        outputs={"worth": "$nodes.n1.output#/worth"},
        inputs=("path",),
    )
    plan = _planned(
        "The file has a net_price and a stock. Multiply the stock by the net_price.", {"path": "a"}, base
    )
    read = {"context": "$nodes.n1.output#/text", "type": "jmespath"}
    assert _calls(plan) == [
        ("show_file", {"path": "$inputs.path"}),
        (
            "multiply",
            {
                "a": {**read, "selector": r"to_number(regex_capture(@, 'stock\s*[=:]\s*(-?[0-9.]+)'))"},
                "b": {**read, "selector": r"to_number(regex_capture(@, 'net_price\s*[=:]\s*(-?[0-9.]+)'))"},
            },
        ),
    ]


def test_the_two_are_the_numbers_of_one_text_in_the_order_the_task_says_them() -> None:
    base = workflow(
        node("n1", "s/show_file", {"path": "$inputs.path"}),
        outputs={"worth": "$nodes.n1.output"},
        inputs=("path",),
    )
    plan = _planned("The file has a net_price and a stock. Multiply the two.", {"path": "a"}, base)
    arguments = _calls(plan)[1][1]
    assert "'net_price" in arguments["a"]["selector"]
    assert "'stock" in arguments["b"]["selector"]


def test_calls_that_read_single_elements_give_way_to_a_mapping_over_all() -> None:
    units = {"from_unit": "ft", "to_unit": "m"}
    base = workflow(
        node("n1", "s/convert_units", {"value": "$inputs.ways#/0", **units}),
        node("n2", "s/convert_units", {"value": "$inputs.ways#/1", **units}),
        outputs={"mean": "$nodes.n2.output"},
        inputs=("ways",),
    )
    plan = _planned("Convert each from ft to m and take the mean with statistics.", {"ways": [1, 2.5]}, base)
    assert plan is not None
    assert [n.for_each for n in plan.nodes] == ["$inputs.ways", None]


def test_a_column_is_flattened_where_a_list_is_wanted() -> None:
    base = workflow(
        node("n1", "s/read_column", {"column": "$inputs.column"}),
        outputs={"mean": "$nodes.n1.output"},
        inputs=("column",),
    )
    plan = _planned("Read the column and take the mean of it with statistics.", {"column": "B"}, base)
    assert _calls(plan)[1][1]["data"] == {
        "context": "$nodes.n1.output#/cells",
        "selector": "[*][0]",
        "type": "jmespath",
    }


def test_what_is_done_to_each_of_two_steps_never_takes_a_name_there_is() -> None:
    base = workflow(
        node("n1", "s/read_column", {"column": "$inputs.left"}),
        node("n2", "s/read_column", {"column": "$inputs.right"}),
        node("s3_statistics", "sums/add", {"a": 1, "b": 2}),
        outputs={"share": "$nodes.s3_statistics.output"},
        inputs=("left", "right"),
    )
    task = (
        "Read both columns, take the mean of each with statistics and divide the left mean by the right mean."
    )
    plan = _planned(task, {"left": "B", "right": "C"}, base)
    assert plan is not None
    assert [n.id for n in plan.nodes[2:]] == ["s4_statistics", "s5_statistics", "s5_divide"]
    assert plan.nodes[-1].arguments == {
        "a": "$nodes.s4_statistics.output#/result",
        "b": "$nodes.s5_statistics.output#/result",
    }


def test_a_converter_is_chosen_by_the_units_it_lists_and_takes_them_in_its_own_spelling() -> None:
    def lists(*units: str) -> JsonSchema:
        return takes(value=NUMBER, **{end: {**TEXT, "enum": [*units]} for end in ("from_unit", "to_unit")})

    converters = tuple(
        ScriptedTool(name, _length, lists(*units), None, "Convert a length from one unit to another")
        for name, units in {"convert_length": ("inch", "mil"), "length_convert": ("foot", "meter")}.items()
    )
    world = snapshot_of(sums=CALCULATOR, own=converters)
    base = workflow(node("n1", "own/convert_length", {}), outputs={"answer": "$nodes.n1.output"})
    task = "Convert the way from ft to m and divide it by the pieces."
    seen: dict[ToolId, JsonValue] = {
        ToolId("own", "length_convert"): {"original_value": 1.0, "converted_value": 0.3}
    }
    view = View(world_of(task, {"feet": 10, "pieces": 4}, world), base, {}, seen)
    assert _calls(plan_by_clauses(view, ("answer",))) == [
        ("length_convert", {"from_unit": "foot", "to_unit": "meter", "value": "$inputs.feet"}),
        ("divide", {"a": "$nodes.s1_length_convert.output#/converted_value", "b": "$inputs.pieces"}),
    ]


def test_a_time_is_taken_out_of_a_longer_text_where_that_form_is_wanted() -> None:
    clock = ScriptedTool(
        "convert_time",
        lambda _: None,
        takes(source_zone=TEXT, time={**TEXT, "description": "Time to convert (HH:MM)"}, target_zone=TEXT),
        None,
        "Convert a time between zones",
    )
    base = workflow(
        node("n1", "clock/convert_time", {}),
        outputs={"first": "$nodes.n1.output", "second": "$nodes.n1.output"},
    )
    inputs = {"time": "14:30", "source": "UTC", "here": "Asia/Tokyo", "beyond": "Asia/Kolkata"}
    task = (
        "A call starts at 14:30 in UTC. Convert the time to Asia/Tokyo, then the time there from Asia/Tokyo"
        " to Asia/Kolkata. What is the local time HH:MM in both?"
    )
    moment: JsonValue = {"timezone": "Asia/Tokyo", "datetime": "2026-12-01T23:30:00+09:00"}
    seen: dict[ToolId, JsonValue] = {ToolId("clock", "convert_time"): {"source": moment, "target": moment}}
    view = View(world_of(task, inputs, snapshot_of(clock=(clock,))), base, {}, seen)
    plan = plan_by_clauses(view, ("first", "second"))
    read = {"selector": r"regex_capture(@, '[T ](\d\d:\d\d)')", "type": "jmespath"}
    first = {"context": "$nodes.s1_convert_time.output#/target/datetime", **read}
    assert plan is not None
    assert _calls(plan) == [
        (
            "convert_time",
            {"source_zone": "$inputs.source", "time": "$inputs.time", "target_zone": "$inputs.here"},
        ),
        (
            "convert_time",
            {"source_zone": "$inputs.here", "time": first, "target_zone": "$inputs.beyond"},
        ),
    ]
    assert plan.outputs == {
        "first": first,
        "second": {"context": "$nodes.s2_convert_time.output#/target/datetime", **read},
    }


@pytest.mark.parametrize(
    "task",
    ["How much is it?", "Sing a song and paint the wall.", "Multiply 3 by 4."],
    ids=["asks", "unknown", "one step"],
)
def test_no_plan_is_made_of_words_that_order_no_two_calls(task: str) -> None:
    assert _planned(task, {"x": 1}) is None


def test_nothing_is_proposed_where_the_workflow_is_that_plan_already() -> None:
    task = "Add the left and the right and multiply by 4."
    base = workflow(
        node("n1", "sums/add", {"a": "$inputs.left", "b": "$inputs.right"}),
        outputs={"answer": "$nodes.n1.output"},
    )
    view = view_of(base, world=world_of(task, {"left": 1, "right": 2}, WORLD))
    plan = plan_by_clauses(view, ("answer",))
    assert plan is not None
    assert len(list(propose_by_clauses(view))) == 1
    assert not list(propose_by_clauses(View(view.world, plan, {}, {}, ())))


async def test_a_plan_that_is_wrong_throughout_is_planned_anew_at_once_and_read_as_its_tools_answered() -> (
    None
):
    base = workflow(
        *(node(f"n{i}", "s/convert_units", {"value": f"$inputs.ways#/{i}", "unit": "x"}) for i in range(3)),
        node("last", "s/statistics", {"data": ["{$nodes.n0.output#/no},{$nodes.n1.output#/no}"]}),
        outputs={"mean": "$nodes.last.output#/none"},
        inputs=("ways",),
    )
    async with scene(
        {"s": ScriptedServer(MEASURES)},
        "approx(output.mean, `0.6096`, `0.0001`)",
        task="Convert each from ft to m and take the mean with statistics.",
        inputs={"ways": [1, 2, 3]},
        planned=True,
    ) as made:
        result = await made.repair(base)
    best = result.best
    assert best.evaluation.status == "verified"
    assert [n.for_each for n in best.candidate.workflow.nodes] == ["$inputs.ways", None]
    assert best.candidate.workflow.nodes[1].arguments["data"] == {
        "context": f"$nodes.{best.candidate.workflow.nodes[0].id}.output",
        "selector": "[].output_value",
        "type": "jmespath",
    }
    assert len(result.records) < 20


@pytest.mark.parametrize(("planned", "kept"), [(False, {"sum", "fourfold"}), (True, set[str]())])
async def test_a_persons_own_steps_are_mended_one_by_one_and_a_planners_given_up(
    planned: bool, kept: set[str]
) -> None:
    base = workflow(
        node("sum", "sums/addition", {"a": "$inputs.left", "bb": "$inputs.right"}),
        node("fourfold", "sums/multiply", {"first": "$nodes.sum.output#/results", "b": 4}),
        outputs={"answer": "$nodes.fourfold.output#/results"},
        inputs=("left", "right"),
    )
    async with scene(
        {"sums": ScriptedServer(CALCULATOR)},
        "output.answer == `12`",
        task="Add the left and the right and multiply by 4.",
        inputs={"left": 1, "right": 2},
        planned=planned,
    ) as made:
        result = await made.repair(base)
    best = result.best
    assert best.evaluation.status == "verified"
    assert {n.id for n in best.candidate.workflow.nodes} & {"sum", "fourfold"} == kept
    assert all(edit.because for edit in best.candidate.edits)


async def test_a_search_puts_all_missing_steps_in_at_once() -> None:
    base = workflow(
        node("n1", "sums/multiply", {"a": "$inputs.price", "b": "$inputs.discount"}),
        outputs={"worth": "$nodes.n1.output#/result"},
        inputs=("price", "discount", "months"),
    )
    async with scene(
        {"sums": ScriptedServer(CALCULATOR)},
        "approx(output.worth, `46.305`, `0.001`)",
        task=_GROWTH,
        inputs={"price": 40, "discount": 5, "months": 3},
    ) as made:
        result = await made.repair(base)
    assert result.best.evaluation.status == "verified"
    assert len(result.best.candidate.workflow.nodes) == 4
    assert len(result.records) < 60

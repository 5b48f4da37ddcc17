"""Edits for references to nothing: the like-named key, the nearest node, a missing producer."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.testing import ScriptedTool
from catalog.tools import ToolId
from server.evolution.insertions import propose_producer
from server.evolution.propose import propose
from server.planning.view import View
from skills_store.workflow.check import check_workflow
from skills_store.workflow.edits import EditParameter, InsertNode, render_edit
from skills_store.workflow.faults import DanglingReference
from skills_store.workflow.model import Node, Workflow
from tests.worlds import (
    NUMBER,
    TEXT,
    WEATHER,
    gives,
    node,
    snapshot_of,
    takes,
    view_of,
    weather_plan,
    workflow,
    world_of,
)

SEEN = {"now": {"station": "north", "temp_c": 5.0}}
CELSIUS = {"from_unit": "celsius", "to_unit": "fahrenheit"}
WORLD = world_of("Tell the current temperature in Oslo in fahrenheit", {"city": "Oslo"})


def seen(planned: Workflow, outputs: dict[str, Any] | None = None, world: Any = WORLD) -> View:
    """Return the view of a workflow with its static faults."""
    faults = check_workflow(planned, world.snapshot)
    assert faults, "the test meant to break something"
    return view_of(planned, *faults, world=world, outputs=outputs)


def best(view: View) -> list[str]:
    """Return what the cheapest proposal does, as it is shown."""
    return [render_edit(edit) for edit in propose(view)[0].edits]


@pytest.mark.parametrize("outputs", [SEEN, {}], ids=["seen", "declared only"])
@pytest.mark.parametrize(
    "pointer", ["/temperature_c", "/tempC", "/result/temp_c", "/temp"], ids=lambda p: p.replace("/", ".")
)
def test_a_dangling_pointer_leads_to_the_like_named_key(pointer: str, outputs: dict[str, Any]):
    planned = weather_plan(conv={"value": f"$nodes.now.output#{pointer}", **CELSIUS})
    assert best(seen(planned, outputs)) == ["conv: value = $nodes.now.output#/temp_c"]


def test_a_dangling_reference_deep_inside_a_value_is_changed_where_it_stands():
    tool = ScriptedTool("sum", [{}], takes(request={"type": "object"}))
    world = world_of(inputs={"city": "Oslo"}, snapshot=snapshot_of(weather=WEATHER, s=[tool]))
    request = {"values": ["$nodes.now.output#/temp_f", 2], "note": "keep {me}"}
    planned = workflow(
        node("now", "weather/current", {"city": "$inputs.city"}),
        node("n", "s/sum", {"request": request}),
        outputs={"o": "$nodes.n.output"},
        inputs=("city",),
    )
    edit = propose(seen(planned, SEEN, world))[0].edits[0]
    assert edit == EditParameter(
        node="n",
        pointer="/request",
        value={"values": ["$nodes.now.output#/temp_c", 2], "note": "keep {me}"},
        because="$nodes.now.output#/temp_f is not there; $nodes.now.output#/temp_c is",
    )


def test_an_unknown_node_becomes_the_nearest_known_one():
    planned = workflow(
        node("weather_now", "weather/current", {"city": "$inputs.city"}),
        node("ahead", "weather/forecast", {"city": "$inputs.city", "days": 1}),
        node("conv", "units/convert_temperature", {"value": "$nodes.weather_naw.output#/temp_c", **CELSIUS}),
        outputs={"o": "$nodes.conv.output", "p": "$nodes.ahead.output"},
        inputs=("city",),
    )
    assert best(seen(planned)) == ["conv: value = $nodes.weather_now.output#/temp_c"]


def test_an_unknown_input_becomes_the_like_named_one():
    planned = weather_plan(now={"city": "$inputs.town"})
    assert best(seen(planned)) == ["now: city = $inputs.city"]


def test_a_dangling_output_is_read_from_the_like_named_key():
    view = seen(weather_plan(output="$nodes.conv.output#/converted"), {"conv": {"converted_value": 41.0}})
    assert best(view) == ["outputs: fahrenheit = $nodes.conv.output#/converted_value"]


def test_the_name_of_an_output_is_escaped_in_its_pointer():
    planned = workflow(
        node("now", "weather/current", {"city": "Oslo"}), outputs={"a/b": "$nodes.now.output#/temp"}
    )
    pointers = {e.pointer for p in propose(seen(planned)) for e in p.edits if isinstance(e, EditParameter)}
    assert pointers == {"/a~1b"}


@pytest.mark.parametrize(
    "written", ["$now.temp_c", "{{now.temp_c}}", "$nodes.now.temp_c", "${now.output.temp_c}"]
)
def test_a_reference_in_another_dialect_is_read_as_what_it_most_likely_means(written: str):
    planned = weather_plan(conv={"value": written, **CELSIUS})
    value = [
        edit.value
        for proposal in propose(seen(planned, SEEN))
        for edit in proposal.edits
        if isinstance(edit, EditParameter) and edit.pointer == "/value"
    ]
    assert value[0] == "$nodes.now.output#/temp_c"


def test_a_missing_producer_is_inserted_with_the_right_tool_filled_and_in_place():
    planned = workflow(
        node("conv", "units/convert_temperature", {"value": "$nodes.now.output#/temp_c", **CELSIUS}),
        outputs={"fahrenheit": "$nodes.conv.output#/converted_value"},
        inputs=("city",),
    )
    insertions = [p for p in propose(seen(planned)) if isinstance(p.edits[0], InsertNode)]
    assert insertions[0].edits == (
        InsertNode(
            planned=Node(id="now", tool=ToolId("weather", "current"), arguments={"city": "$inputs.city"}),
            position=0,
            because="'now' is read and does not exist; weather/current can give it",
        ),
    )
    assert insertions[0] == propose(seen(planned))[0]


def test_a_producer_that_is_known_not_to_give_the_place_costs_more():
    view = view_of(weather_plan(), world=WORLD)
    proposed = list(propose_producer(view, "reading", "/temp_c", 0))
    costs = {
        tool: [p.cost for p in proposed if f"insert reading: {tool}(" in render_edit(p.edits[0])]
        for tool in ("weather/current", "units/convert_temperature")
    }
    assert min(costs["weather/current"]) + 2 < min(costs["units/convert_temperature"])


def test_no_producer_is_offered_under_an_id_that_no_node_can_have():
    planned = weather_plan(now={"city": f"$nodes.{'n' * 65}.output#/city"})
    assert not [p for p in propose(seen(planned)) if isinstance(p.edits[0], InsertNode)]


def test_a_node_never_reads_itself_or_what_comes_after_it():
    planned = workflow(
        node("first", "sums/add", {"a": "$nodes.gone.output#/result", "b": 1}),
        node("second", "sums/add", {"a": "$nodes.first.output#/result", "b": 1}),
        outputs={"o": "$nodes.second.output#/result"},
    )
    view = seen(planned, {"second": {"result": 2}, "first": {"result": 1}})
    for proposal in propose(view):
        for edit in proposal.edits:
            if isinstance(edit, EditParameter) and edit.node == "first":
                assert "$nodes.second." not in str(edit.value)
                assert "$nodes.first." not in str(edit.value)


def test_a_wait_for_an_unknown_node_is_dropped_and_the_others_stay():
    planned = workflow(
        node("now", "weather/current", {"city": "Oslo"}),
        node("ahead", "weather/forecast", {"city": "Oslo", "days": 1}, after=["gone", "now"]),
        outputs={"o": "$nodes.ahead.output"},
    )
    assert best(seen(planned)) == ["ahead: after now"]


def test_the_list_of_a_mapped_node_is_read_from_where_it_is():
    lister = ScriptedTool("list", [{}], takes(), gives(cities={"type": "array", "items": TEXT}, total=NUMBER))
    world = world_of(snapshot=snapshot_of(weather=WEATHER, s=[lister]))
    planned = workflow(
        node("all", "s/list"),
        node("each", "weather/current", {"city": "$item"}, for_each="$nodes.all.output#/city_list"),
        outputs={"o": "$nodes.each.output"},
    )
    edit = propose(seen(planned, {"all": {"cities": ["Oslo"], "total": 1}}, world))[0].edits[0]
    assert edit.model_copy(update={"because": ""}) == EditParameter(
        node="each", pointer="", value="$nodes.all.output#/cities", mapped=True
    )


def test_one_reference_that_is_wrong_in_several_places_is_put_right_in_all_of_them_at_once():
    planned = workflow(
        node("weather_now", "weather/current", {"city": "$inputs.city"}),
        node("one", "sums/add", {"a": "$nodes.weather_naw.output#/temp_c", "b": 1}),
        node("two", "sums/add", {"a": "$nodes.weather_naw.output#/temp_c", "b": 2}),
        outputs={"o": "$nodes.one.output#/result", "p": "$nodes.two.output#/result"},
        inputs=("city",),
    )
    assert best(seen(planned)) == [
        "one: a = $nodes.weather_now.output#/temp_c",
        "two: a = $nodes.weather_now.output#/temp_c",
    ]


def test_a_fault_that_names_a_place_in_no_argument_proposes_nothing_for_it():
    view = view_of(
        weather_plan(),
        DanglingReference(message="", node="now", pointer="/nodes/0/when", reference="$inputs.x"),
    )
    assert propose(view) == []

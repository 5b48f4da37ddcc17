"""Sources: where an argument's value could come from, the likeliest first."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.effects import EffectTable
from catalog.search import ToolIndex
from catalog.tools import Snapshot, Tool, ToolId
from server.planning.slots import Slot, fits, input_reference
from server.planning.sources import argument_sources
from server.planning.view import View, World, argument_schema
from skills_store.workflow.model import parse_workflow

NUMBER, TEXT = {"type": "number"}, {"type": "string"}


def tool(name: str, output: Any = None, **properties: Any) -> Tool:
    return Tool(ToolId("s", name), {"type": "object", "properties": properties}, output)


WEATHER = tool("weather", {"type": "object", "properties": {"temp_c": NUMBER, "city": TEXT}}, city=TEXT)
CONVERT = tool(
    "convert",
    value=NUMBER,
    from_unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
    mode={"type": "string", "default": "exact"},
    note={"type": "string", "description": "How to mark it ('short' or 'long')."},
)
SNAPSHOT = Snapshot.of(WEATHER, CONVERT)


def view(task="", inputs=None, outputs=None, **convert: Any) -> View:
    nodes = [
        {"id": "weather", "tool": {"server": "s", "tool": "weather"}, "arguments": {"city": "$inputs.city"}},
        {"id": "convert", "tool": {"server": "s", "tool": "convert"}, "arguments": convert},
    ]
    workflow = parse_workflow(
        {
            "name": "w",
            "inputs": {"type": "object"},
            "nodes": nodes,
            "outputs": {"out": "$nodes.convert.output"},
        }
    )
    world = World(task, inputs or {}, SNAPSHOT, EffectTable(), ToolIndex(SNAPSHOT))
    return View(world, workflow, outputs or {})


def sources(argument: str, seen: View) -> list[Any]:
    node = seen.workflow.nodes[1]
    slot = Slot(node, argument, argument_schema(CONVERT, argument))
    return [source.value for source in argument_sources(slot, seen)]


def test_an_input_of_the_name_comes_first():
    assert sources("value", view(inputs={"value": 21, "city": "Oslo"}))[0] == "$inputs.value"


def test_inputs_that_do_not_fit_are_none():
    assert "$inputs.city" not in sources("value", view(inputs={"city": "Oslo"}))


def test_an_earlier_output_is_read_where_its_type_fits():
    found = sources("value", view())
    assert "$nodes.weather.output#/temp_c" in found
    assert "$nodes.weather.output#/city" not in found
    assert not [value for value in found if str(value).startswith("$nodes.convert")]


def test_what_was_seen_says_more_than_what_is_declared():
    found = sources("value", view(outputs={"weather": {"degrees": 5, "place": "Oslo"}}))
    assert "$nodes.weather.output#/degrees" in found
    assert "$nodes.weather.output#/temp_c" not in found


def test_the_schemas_own_values_follow_and_one_that_the_task_says_leads():
    assert sources("mode", view())[0] == "exact"
    assert sources("from_unit", view("it is in fahrenheit"))[0] == "fahrenheit"
    assert sources("from_unit", view("it is in celsius"))[0] == "celsius"
    assert set(sources("from_unit", view())) >= {"celsius", "fahrenheit"}


def test_words_that_a_description_lists_are_values():
    assert {"short", "long"} <= set(sources("note", view()))


def test_numbers_of_the_task_fill_numbers_and_inputs_stand_for_their_values():
    assert 21 in sources("value", view("Convert 21 degrees"))
    found = sources("value", view("Convert 21 degrees", inputs={"amount": 21}))
    assert "$inputs.amount" in found
    assert 21 not in found


def test_sources_are_distinct_bounded_and_have_reasons():
    seen = view("Convert 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26")
    slot = Slot(seen.workflow.nodes[1], "value", NUMBER)
    found = argument_sources(slot, seen, limit=10)
    assert len(found) == 10
    assert len({repr(source.value) for source in found}) == 10
    assert [source.cost for source in found] == sorted(source.cost for source in found)
    assert all(source.because and source.cost >= 0 for source in found)


@pytest.mark.parametrize(
    ("value", "schema", "told"),
    [
        (5, NUMBER, True),
        ("5", NUMBER, True),
        ("5 kg", NUMBER, False),
        (5, TEXT, True),
        (True, TEXT, False),
        ("x", {}, True),
        ("c", {"enum": ["a", "b"]}, False),
    ],
)
def test_a_value_fits_as_it_is_or_as_exact_text(value, schema, told):
    assert fits(value, schema) is told


@pytest.mark.parametrize(
    ("value", "reference"),
    [
        pytest.param(21, "$inputs.a", id="one-input"),
        pytest.param("x", None, id="two-inputs"),
        pytest.param(True, None, id="boolean"),
        pytest.param("", None, id="empty"),
        pytest.param(21.5, None, id="none"),
        pytest.param("21", None, id="another-type"),
    ],
)
def test_a_value_is_traced_to_the_one_input_that_has_it(value, reference):
    assert input_reference(value, view(inputs={"a": 21, "b": "x", "c": "x", "d": True, "e": ""})) == reference

"""Variants: valid, one input each, and never an address that nobody knows to exist."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.schema import is_valid
from server.curation.variation import Variant, variants


def others(value: Any, schema: Any = None, name: str = "x", **more: Any) -> list[Any]:
    declared = {"type": "object", "properties": {name: schema or {}}}
    return [variant.inputs[name] for variant in variants({name: value}, declared, **more)[name]]


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        pytest.param("b", {"enum": ["a", "b", "c"]}, ["a", "c"], id="enum"),
        pytest.param(True, {"type": "boolean"}, [False], id="boolean"),
        pytest.param(5, {"type": "integer"}, [6, 10, 12], id="integer"),
        pytest.param(5, {"type": "integer", "maximum": 5}, [4, 2], id="at-its-upper-bound"),
        pytest.param(2.0, {"type": "number"}, [3.2, 3.5, 1.0], id="number"),
        pytest.param([1, 2], None, [[2, 4], [1, 2, 5]], id="numbers"),
        pytest.param(["a", "b"], None, [["a"], ["b", "a"]], id="texts"),
        pytest.param("2024-02-28", None, ["2024-02-29", "2024-03-30", "2024-02-18"], id="date"),
        pytest.param("23:30", None, ["02:30", "06:30", "10:30"], id="time"),
        pytest.param("UTC", None, ["Asia/Kolkata", "America/New_York", "Europe/Berlin"], id="zone"),
        pytest.param("17", None, ["20"], id="number-as-text"),
        pytest.param("miles", None, ["meters", "kilometers", "centimeters"], id="unit"),
        pytest.param("good day", None, ["good day again", "day good", "GOOD DAY"], id="sentence"),
        pytest.param("word", None, ["word again", "wordword"], id="word"),
        pytest.param("abc", {"type": "string", "pattern": "^abc$"}, [], id="pattern"),
    ],
)
def test_other_values_are_of_the_same_kind(value, schema, expected):
    assert others(value, schema) == expected


@pytest.mark.parametrize("name", ["path", "file_name", "repo_url", "user_id", "sheet", "database"])
def test_addresses_are_not_made_up(name):
    assert others("something there", name=name) == []


def test_what_the_world_is_known_to_have_comes_first():
    assert others("a.txt", name="path", seen={"path": ["a.txt", "b.txt"]}) == ["b.txt"]
    assert others(5, {"type": "integer"}, seen={"x": ["no number", 77]}) == [77, 6, 10]


@pytest.mark.parametrize(
    ("name", "value", "schema", "known"),
    [
        ("x", 5, {"type": "integer"}, True),
        ("order_id", 5, {"type": "integer"}, False),
        ("customer", "Ada", {"type": "string"}, False),
        ("unit", "a", {"enum": ["a", "b"]}, True),
    ],
    ids=["number", "record", "text", "enum"],
)
def test_what_is_made_up_and_may_name_nothing_is_told_from_what_is_valid(name, value, schema, known):
    declared = {"type": "object", "properties": {name: schema}}
    made = variants({name: value}, declared)[name]
    assert {variant.known_valid for variant in made} == {known}
    assert variants({name: value}, declared, {name: [7, "Eve", "b"]})[name][0].known_valid


def test_all_values_of_a_small_enum_are_tried():
    assert others("v0", {"enum": [f"v{n}" for n in range(9)]}) == [f"v{n}" for n in range(1, 9)]


def test_one_input_changes_at_a_time():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}}}
    found = variants({"a": 1, "b": True}, schema, per_input=1)
    assert found == {
        "a": [Variant({"a": 2, "b": True}, ("a",))],
        "b": [Variant({"a": 1, "b": False}, ("b",))],
    }


def test_an_input_that_was_left_out_is_varied_by_giving_it():
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"], "default": "x"}}}
    assert variants({}, schema) == {"a": [Variant({"a": "y"}, ("a",))]}


SCALARS = st.one_of(st.integers(-1000, 1000), st.floats(-1e6, 1e6), st.text(max_size=20), st.booleans())
KINDS = st.sampled_from(
    [
        {},
        {"type": "integer", "minimum": 0},
        {"type": "number", "maximum": 10},
        {"type": "string", "maxLength": 12},
    ]
)


@given(SCALARS, KINDS)
def test_every_variant_is_valid_and_another_value(value, schema):
    for other in others(value, schema):
        assert other != value
        assert is_valid(schema, other)

"""Leaves: what of an output can be read, from a value or from a schema."""

from __future__ import annotations

import pytest

from server.planning.leaves import (
    Leaf,
    closed_part,
    json_type,
    leaves_of_schema,
    leaves_of_value,
    output_leaves,
)


def pointers(leaves):
    return [leaf.pointer for leaf in leaves]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (1.5, "number"),
        ("x", "string"),
        ([], "array"),
        ({}, "object"),
    ],
)
def test_json_types_have_their_names(value, name):
    assert json_type(value) == name


def test_a_value_is_read_from_the_whole_to_its_parts():
    found = leaves_of_value({"a/b": {"c": 1}, "list": ["x"]})
    assert pointers(found) == ["", "/a~1b", "/a~1b/c", "/list", "/list/0"]
    assert found[2] == Leaf("/a~1b/c", "c", frozenset({"integer"}), 1, seen=True)
    assert found[4].key == "list"


def test_long_lists_deep_values_and_many_fields_are_cut():
    assert pointers(leaves_of_value({"l": [1, 2, 3, 4]})) == ["", "/l"]
    deep = {"a": {"a": {"a": {"a": {"a": 1}}}}}
    assert pointers(leaves_of_value(deep))[-1] == "/a/a/a/a"
    assert len(leaves_of_value({f"k{i}": i for i in range(200)})) == 60


SCHEMA = {
    "type": "object",
    "properties": {"place": {"$ref": "#/$defs/Place"}, "n": {"type": ["integer", "null"]}},
    "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


def test_a_schema_is_read_through_its_references():
    found = leaves_of_schema(SCHEMA)
    assert pointers(found) == ["", "/place", "/place/city", "/n"]
    assert found[2] == Leaf("/place/city", "city", frozenset({"string"}))
    assert found[3].types == {"integer", "null"}


def test_a_part_of_a_schema_is_closed_on_its_own():
    part = SCHEMA["properties"]["place"]
    assert closed_part(SCHEMA, part) == {"type": "object", "properties": {"city": {"type": "string"}}}
    plain = {"type": "string"}
    assert closed_part(SCHEMA, plain) is plain


def test_what_was_seen_goes_before_what_is_declared():
    assert pointers(output_leaves({"x": 1}, SCHEMA, seen=True)) == ["", "/x"]
    assert pointers(output_leaves(None, SCHEMA, seen=False))[1] == "/place"
    assert output_leaves(None, None, seen=False) == []

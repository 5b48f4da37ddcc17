"""Dialects of JSON Schema: what is closed, what is left out, what cannot be said."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.backends.portable_schema import closed_schema, plain_schema, without_added_nulls

LEAF = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "pattern": "^a", "maxLength": 3},
        {"type": "integer", "minimum": 3},
        {"type": ["number", "null"]},
        {"enum": ["a", 1, None]},
        {"const": "x"},
        {"type": "boolean", "description": "yes or no"},
    ]
)


def objects(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "c"])
    return st.builds(
        lambda properties, required: {
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if name in required],
            "additionalProperties": False,
        },
        st.dictionaries(names, parts, min_size=1),
        st.sets(names),
    )


SCHEMAS = objects(
    st.recursive(
        LEAF,
        lambda parts: st.one_of(
            objects(parts),
            st.builds(lambda items: {"type": "array", "items": items}, parts),
            st.builds(lambda one, two: {"oneOf": [one, two]}, parts, parts),
        ),
        max_leaves=6,
    )
)


def value_of(schema: Any, *, with_optional: bool) -> Any:
    """Return a small value that fits, if the bounds of numbers and texts are left aside."""
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    if "oneOf" in schema:
        return value_of(schema["oneOf"][0], with_optional=with_optional)
    match schema["type"]:
        case "object":
            return {
                name: value_of(part, with_optional=with_optional)
                for name, part in schema["properties"].items()
                if with_optional or name in schema["required"]
            }
        case "array":
            return [value_of(schema["items"], with_optional=with_optional)]
        case "string":
            return "a"
        case "integer":
            return 3
        case "boolean":
            return True
        case _:
            return None


def strict_everywhere(schema: Any) -> bool:
    if isinstance(schema, list):
        return all(strict_everywhere(part) for part in schema)
    if not isinstance(schema, dict):
        return True
    is_object = schema.get("type") == "object"
    closed = not is_object or (
        schema["additionalProperties"] is False and schema["required"] == [*schema["properties"]]
    )
    return closed and all(strict_everywhere(part) for part in schema.values())


@settings(deadline=None)  # the validators are slow to make
@given(SCHEMAS)
def test_the_strict_dialect_is_strict_and_loses_no_answer(schema: Any):
    closed = closed_schema(schema, all_required=True)
    assert closed is not None
    assert strict_everywhere(closed)
    jsonschema.validate(value_of(schema, with_optional=True), closed)


@settings(deadline=None)
@given(SCHEMAS, st.booleans())
def test_the_other_dialects_lose_no_answer(schema: Any, with_optional: bool):
    value = value_of(schema, with_optional=with_optional)
    jsonschema.validate(value, closed_schema(schema, all_required=False))
    jsonschema.validate(value, plain_schema(schema))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {}},
        {"type": "object", "properties": {"a": {"allOf": [{}, {}]}}},
        {"type": "object", "patternProperties": {"^x": {}}},
        {"anyOf": [{"type": "object", "properties": {}}]},
        {"type": "array", "items": {"type": "string"}},
    ],
    ids=json.dumps,
)
def test_what_cannot_be_closed_is_not_pretended(schema: Any):
    assert closed_schema(schema, all_required=True) is None


def test_plain_schemas_leave_out_what_local_servers_trip_over():
    schema = {
        "type": "object",
        "properties": {
            "any": True,
            "price": {"type": "number", "minimum": 1},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "text": {"type": "string", "pattern": "\\$", "format": "email", "maxLength": 5000},
        },
        "anyOf": [{"required": ["price"]}],
        "required": ["any"],
    }
    assert plain_schema(schema) == {
        "type": "object",
        "properties": {
            "any": {},
            "price": {"type": "number"},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "text": {"type": "string"},
        },
        "required": ["any"],
    }


NULLS = {
    "optional": ({"type": "object", "properties": {"a": {}}}, {"a": None}, {}),
    "required": ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, {"a": None}, {"a": None}),
    "in a list": (
        {"type": "object", "properties": {"l": {"type": "array", "items": {"properties": {"a": {}}}}}},
        {"l": [{"a": None}, {"a": 1}]},
        {"l": [{}, {"a": 1}]},
    ),
    "in the branch it is of": (
        {
            "anyOf": [
                {"properties": {"t": {"const": "x"}, "a": {}}, "required": ["t", "a"]},
                {"properties": {"t": {"const": "y"}, "a": {}}, "required": ["t"]},
            ]
        },
        {"t": "y", "a": None},
        {"t": "y"},
    ),
    "behind a reference to itself": (
        {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}},
        {"n": {"n": None}},
        {"n": {}},
    ),
    "unknown": ({"type": "object"}, {"a": None}, {"a": None}),
    "circle": ({"$ref": "#/$defs/n", "$defs": {"n": {"$ref": "#/$defs/n"}}}, {"a": None}, {"a": None}),
}


@pytest.mark.parametrize(("schema", "answer", "expected"), NULLS.values(), ids=NULLS)
def test_nulls_for_absent_properties_are_taken_out(schema: Any, answer: Any, expected: Any):
    assert json.loads(without_added_nulls(json.dumps(answer), schema)) == expected


@given(st.text(), SCHEMAS)
def test_a_text_that_is_no_json_stays_as_it_is(text: str, schema: Any):
    try:
        json.loads(text)
    except ValueError:
        assert without_added_nulls(text, schema) == text

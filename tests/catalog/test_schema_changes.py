"""What schemas do to values and to themselves: coercion, samples, the portable dialect."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from catalog.canonical import canonical_json
from catalog.schema import Coerced, coerce, is_valid, lint_schema, portable_schema, samples
from catalog.tools import JsonSchema

MAYBE_INTEGER: JsonSchema = {"anyOf": [{"type": "integer"}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("schema", "before", "after"),
    [
        ({"type": "integer"}, "300", 300),
        ({"type": "number"}, "300", 300),
        ({"type": "number"}, "-0.5", -0.5),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "boolean"}, "true", True),
        (MAYBE_INTEGER, "7", 7),
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, 2.5, "2.5"),
        ({"type": "string"}, True, "true"),
        ({"type": ["string", "null"]}, 5, "5"),
        ({"enum": [1, 2, 3]}, "2", 2),
        ({"$ref": "#/$defs/N", "$defs": {"N": {"type": "integer"}}}, "2", 2),
    ],
    ids=str,
)
def test_exact_scalar_text_is_read_and_the_change_recorded(schema: JsonSchema, before: Any, after: Any):
    value, changes = coerce(schema, before)
    assert value == after
    assert type(value) is type(after)
    assert changes == [Coerced("", before, after)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "number"}, "300 miles"),
        ({"type": "number"}, " 300"),
        ({"type": "number"}, "1e400"),
        ({"type": "number"}, "0.1234567890123456789"),
        ({"type": "number"}, "NaN"),
        ({"type": "number"}, "٣"),
        ({"type": "integer"}, "3.0"),
        ({"type": "integer"}, "007"),
        ({"type": "integer"}, "+1"),
        ({"type": "integer"}, 3.0),
        ({"type": "integer"}, "9" * 400),
        ({"type": "boolean"}, "yes"),
        ({"type": "boolean"}, 1),
        ({"type": "string"}, None),
        ({"type": "string"}, float("inf")),
        ({"type": "string"}, [1]),
        ({"type": ["string", "integer"]}, "5"),
        ({"type": ["string", "boolean"]}, 5),
        ({"type": "array"}, "[1]"),
        ({}, "5"),
    ],
    ids=str,
)
def test_what_cannot_be_read_exactly_stays(schema: JsonSchema, value: Any):
    assert coerce(schema, value) == (value, [])


def test_nested_values_are_read_with_their_pointers_and_the_original_is_kept():
    schema: JsonSchema = {
        "properties": {
            "a/b": {"type": "array", "items": {"type": "integer"}},
            "o": {
                "anyOf": [{"type": "object", "additionalProperties": {"type": "number"}}, {"type": "null"}]
            },
        }
    }
    value: Any = {"a/b": ["1", 2], "o": {"x": "0.5"}, "free": "3"}
    kept = deepcopy(value)
    assert coerce(schema, value) == (
        {"a/b": [1, 2], "o": {"x": 0.5}, "free": "3"},
        [Coerced("/a~1b/0", "1", 1), Coerced("/o/x", "0.5", 0.5)],
    )
    assert value == kept


LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 0, "maximum": 9},
        {"type": "number"},
        {"type": ["string", "null"]},
        {"type": ["array", "integer"]},
        {"type": "array"},
        {"const": "k"},
        {"enum": [1, "a", None]},
        {"type": "boolean"},
        {"$ref": "#/$defs/D"},
        {"$ref": "#/$defs/D", "description": "there"},
        {},
    ]
)
INNER = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda s: {"type": "array", "items": s}, inner),
        st.builds(lambda a, b: {"type": "array", "prefixItems": [a], "items": b}, inner, inner),
        st.builds(lambda k, a, b: {k: [a, b]}, st.sampled_from(["anyOf", "oneOf", "allOf"]), inner, inner),
        st.builds(lambda a, b: {**a, "anyOf": [b, {"type": "null"}]}, LEAVES, inner),
        st.builds(lambda a, b: {"if": a, "then": b}, inner, inner),
        st.builds(
            lambda p, r, c: {"type": "object", "properties": p, "required": r, "additionalProperties": c},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.lists(st.sampled_from("abc"), unique=True, max_size=1),
            st.booleans() | inner,
        ),
        st.builds(
            lambda s, p: {"type": "object", "patternProperties": {"^[ab]$": s}, "properties": p,
                          "additionalProperties": False},
            inner, st.dictionaries(st.sampled_from("bc"), st.booleans() | inner, max_size=2),
        ),
    ),
    max_leaves=6,
)  # fmt: skip
DEFINED: JsonSchema = {"type": "object", "properties": {"d": {"$ref": "#/$defs/D"}, "n": {"type": "integer"}}}
SCHEMAS = st.builds(lambda s: {**s, "$defs": {"D": DEFINED}}, INNER)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 12) | st.sampled_from(["", "a", "k", "1", "0.5", "true"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abcdn"), inner, max_size=3),
    max_leaves=6,
)
SLOW = settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None)


@given(SCHEMAS)
@example(
    {"type": "object", "additionalProperties": {"type": "array", "anyOf": [{"const": "k"}, {"type": "null"}]}}
)
def test_a_portable_schema_is_a_valid_schema_that_every_host_accepts(schema: Any):
    portable = portable_schema(schema)
    jsonschema.Draft202012Validator.check_schema(portable)
    assert lint_schema(portable) == []
    assert portable["type"] == "object"
    assert "$ref" not in json.dumps(portable)


@given(SCHEMAS, st.dictionaries(st.sampled_from("abcdn"), VALUES, max_size=3))
@SLOW
def test_a_portable_schema_admits_every_object_that_the_original_admits(schema: Any, value: Any):
    assume(is_valid(schema, value))
    assert is_valid(portable_schema(schema), value)


@given(SCHEMAS, VALUES)
def test_coercion_keeps_valid_values_and_is_done_once(schema: Any, value: Any):
    after, changes = coerce(schema, value)
    assert coerce(schema, after) == (after, [])
    assert (canonical_json(after) == canonical_json(value)) == (changes == [])
    if is_valid(schema, value):
        assert is_valid(schema, after)


@given(SCHEMAS, st.integers(0, 99))
@SLOW
def test_samples_fit_differ_and_repeat_by_seed(schema: Any, seed: int):
    found = samples(schema, seed, 4)
    assert found == samples(schema, seed, 4)
    assert len({canonical_json(value) for value in found}) == len(found) <= 4
    assert all(is_valid(schema, value) for value in found)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({"enum": ["a", "b"]}, {"a", "b"}, id="members"),
        pytest.param({"const": 3}, {3}, id="constant"),
        pytest.param({"type": "integer", "minimum": 4, "maximum": 5}, {4, 5}, id="narrow range"),
        pytest.param({"type": "boolean"}, {True, False}, id="booleans"),
        pytest.param({"type": "string", "pattern": "^[0-9]{9}$"}, set[str](), id="pattern not met"),
    ],
)
def test_small_schemas_are_sampled_whole(schema: JsonSchema, expected: set[Any]):
    assert set(samples(schema, 1, 5)) == expected  # pyright: ignore


def test_what_the_schema_names_comes_first():
    schema: JsonSchema = {"type": "string", "examples": ["Oslo"], "default": "Rome"}
    assert samples(schema, 7, 3)[:2] == ["Oslo", "Rome"]


def test_required_properties_are_always_sampled():
    schema: JsonSchema = {
        "type": "object",
        "properties": {
            "value": {"type": "number"},
            "unit": {"enum": ["km", "mile"]},
            "note": {"type": "string"},
        },
        "required": ["value", "unit"],
        "additionalProperties": False,
    }
    found = samples(schema, 3, 4)
    assert len(found) == 4
    assert all(isinstance(value, dict) and {"value", "unit"} <= value.keys() for value in found)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({"type": "object", "properties": {}}, [], id="plain"),
        pytest.param({"anyOf": []}, ["#: anyOf at the top", "#: not an object at the top"], id="union"),
        pytest.param(
            {"type": "object",
             "properties": {"a": True, "b c": {"type": ["string", "null"]}, "d": {"type": "array"}}},
            ["#: property name 'b c'", "#/properties: boolean schema", "#/properties: list of types",
             "#/properties: array without items"],
            id="inside",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}},
            ["#: definitions", "#/properties: $ref"],
            id="references",
        ),
    ],
)  # fmt: skip
def test_lint_names_what_strict_hosts_refuse(schema: JsonSchema, expected: list[str]):
    assert lint_schema(schema) == expected


def test_a_union_at_the_top_becomes_one_object():
    schema: JsonSchema = {
        "description": "Where",
        "oneOf": [
            {"type": "object", "properties": {"city": {"type": "string"}, "at": {"type": "string"}},
             "required": ["city", "at"], "additionalProperties": False},
            {"type": "object", "properties": {"zip": {"type": "integer"}, "at": {"type": "string"}},
             "required": ["zip", "at"], "additionalProperties": False},
        ],
    }  # fmt: skip
    assert portable_schema(schema) == {
        "type": "object",
        "description": "Where",
        "properties": {"city": {"type": "string"}, "at": {"type": "string"}, "zip": {"type": "integer"}},
        "required": ["at"],
        "additionalProperties": False,
    }

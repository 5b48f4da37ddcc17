"""Questions about schemas: types, pointers, whether one feeds another."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.schema import Lookup, feeds, inline_refs, is_valid, lookup, types
from catalog.tools import JsonSchema

NUMBER: JsonSchema = {"type": "number"}
INTEGER: JsonSchema = {"type": "integer"}
TEXT: JsonSchema = {"type": "string"}
MAYBE: JsonSchema = {"anyOf": [NUMBER, {"type": "null"}]}


def listed(items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, {"array", "boolean", "null", "number", "object", "string"}),
        (MAYBE, {"number", "null"}),
        ({"type": ["string", "integer"]}, {"string", "integer"}),
        ({"enum": ["a", 1, None]}, {"string", "integer", "null"}),
        ({"const": 2.5}, {"number"}),
        ({"allOf": [{"type": ["string", "number"]}, INTEGER]}, {"integer"}),
        ({"anyOf": [INTEGER, NUMBER]}, {"number"}),
        ({"$ref": "#/$defs/A", "$defs": {"A": TEXT}}, {"string"}),
        ({"oneOf": [{"$ref": "#/$defs/A"}, listed({})], "$defs": {"A": {"$ref": "#/$defs/B"}, "B": TEXT}},
         {"string", "array"}),
        ({"$ref": "#"}, {"array", "boolean", "null", "number", "object", "string"}),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
)  # fmt: skip
def test_types_look_through_references_and_unions(schema: JsonSchema, expected: set[str]):
    assert types(schema) == expected


OUTPUT: JsonSchema = {
    "type": "object",
    "properties": {
        "temp": MAYBE,
        "where": {"$ref": "#/$defs/Place"},
        "rows": listed({"type": "object", "properties": {"id": INTEGER}, "additionalProperties": False}),
        "pair": {"type": "array", "prefixItems": [TEXT, INTEGER], "items": False},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        "either": {"oneOf": [{"properties": {"x": TEXT}}, {"properties": {"x": INTEGER}}]},
        "both": {"allOf": [{"properties": {"x": TEXT}}, {"properties": {"y": INTEGER}}]},
        "scores": {"type": "object", "additionalProperties": NUMBER},
        "named": {"type": "object", "patternProperties": {"^n_": INTEGER}, "additionalProperties": False},
    },
    "additionalProperties": False,
    "$defs": {
        "Place": {"type": "object", "properties": {"city": TEXT, "in": {"$ref": "#/$defs/Place"}}},
    },
}


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("/temp", Lookup(True, MAYBE, (), True)),
        ("/where/city", Lookup(True, TEXT, (), True)),
        ("/where/in/in/in/city", Lookup(True, TEXT, (), True)),
        ("/where/town", Lookup(False, None, ("city", "in"), False)),
        ("/rows/0/id", Lookup(True, INTEGER, (), True)),
        ("/rows/0/name", Lookup(False, None, ("id",), True)),
        ("/rows/id", Lookup(False, None, (), True)),
        ("/pair/1", Lookup(True, INTEGER, (), True)),
        ("/pair/2", Lookup(False, None, (), True)),
        ("/maybe/city", Lookup(True, TEXT, (), True)),
        ("/either/x", Lookup(True, {"anyOf": [TEXT, INTEGER]}, (), True)),
        ("/both/y", Lookup(True, INTEGER, (), True)),
        ("/scores/any", Lookup(True, NUMBER, (), False)),
        ("/named/n_1", Lookup(True, INTEGER, (), False)),
        ("/named/other", Lookup(False, None, (), True)),
        ("/temp/deeper", Lookup(False, None, (), True)),
        ("/nothing", Lookup(False, None, tuple(sorted(OUTPUT["properties"])), True)),  # pyright: ignore
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_pointer_reads_the_subschema_it_names(pointer: str, expected: Lookup):
    assert lookup(OUTPUT, pointer) == expected


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"type": "array"}], ids=str)
def test_an_open_schema_leaves_a_pointer_uncertain(schema: JsonSchema | None):
    assert lookup(schema, "/0") == Lookup(False, None, (), False)


def test_the_empty_pointer_reads_the_whole():
    assert lookup(NUMBER, "") == Lookup(True, NUMBER, (), True)


def test_a_found_schema_stands_without_its_document():
    found = lookup(OUTPUT, "/where").schema
    assert found is not None
    assert is_valid(found, {"city": "Rome"})
    assert not is_valid(found, {"city": 1})


def test_a_pointer_without_slash_is_misuse():
    with pytest.raises(ValueError, match="pointer"):
        lookup(OUTPUT, "temp")


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        pytest.param(None, NUMBER, None, id="nothing known"),
        pytest.param({}, NUMBER, None, id="anything to number"),
        pytest.param(NUMBER, {}, True, id="number to anything"),
        pytest.param(INTEGER, NUMBER, True, id="integer to number"),
        pytest.param(NUMBER, INTEGER, None, id="number to integer"),
        pytest.param(NUMBER, TEXT, None, id="number to string, coercible"),
        pytest.param(TEXT, NUMBER, None, id="string to number, may be text of one"),
        pytest.param({"type": "boolean"}, NUMBER, False, id="boolean to number"),
        pytest.param({"type": "object"}, TEXT, False, id="object to string"),
        pytest.param(TEXT, listed(TEXT), False, id="string to array"),
        pytest.param(MAYBE, NUMBER, None, id="optional to number"),
        pytest.param(NUMBER, MAYBE, True, id="number to optional"),
        pytest.param({"type": "null"}, TEXT, False, id="null to string"),
        pytest.param({"enum": ["a", "b"]}, {"enum": ["c"]}, False, id="disjoint enums"),
        pytest.param({"enum": ["a"]}, {"enum": ["a", "c"]}, True, id="enum within"),
        pytest.param({"enum": ["a", "b"]}, {"enum": ["a"]}, None, id="enums that overlap"),
        pytest.param(TEXT, {"type": "string", "enum": ["a"]}, None, id="string to enum"),
        pytest.param({"const": "5"}, NUMBER, True, id="text of a number"),
        pytest.param({"const": "five"}, NUMBER, False, id="no text of a number"),
        pytest.param(
            {"type": "number", "minimum": 5}, {"type": "number", "maximum": 3}, False, id="ranges apart"
        ),
        pytest.param(listed(NUMBER), listed({"type": "object"}), False, id="items that never fit"),
        pytest.param(listed(INTEGER), listed(NUMBER), True, id="items that fit"),
        pytest.param(
            {"type": "string", "format": "date"}, {"type": "string", "format": "uri"}, None, id="other format"
        ),
        pytest.param(
            {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
            {"type": "object", "required": ["b"]},
            False,
            id="a required key that is never there",
        ),
        pytest.param(
            {"$ref": "#/$defs/N", "$defs": {"N": INTEGER}},
            {"$ref": "#/$defs/M", "$defs": {"M": NUMBER}},
            True,
            id="references",
        ),
    ],
)
def test_a_source_feeds_a_target(source: JsonSchema | None, target: JsonSchema, expected: bool | None):
    assert feeds(source, target) is expected


def test_inlined_references_keep_prose_and_cut_recursion():
    schema: JsonSchema = {
        "properties": {"at": {"$ref": "#/$defs/Node", "description": "Root"}},
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    node: Any = {"type": "object", "properties": {"next": {"type": "object"}}, "description": "Root"}
    assert inline_refs(schema) == {"properties": {"at": node}}


def test_a_property_called_ref_is_no_reference():
    schema: JsonSchema = {"type": "object", "properties": {"$ref": TEXT}, "enum": [{"$ref": "x"}]}
    assert inline_refs(schema) == schema

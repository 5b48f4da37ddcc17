"""Values against schemas: problems with their place, schemas that are refused."""

from __future__ import annotations

import socket
from time import perf_counter
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import SchemaRejected
from catalog.schema import check_schema, is_valid, problems
from catalog.tools import JsonSchema

SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {
        "value": {"type": "number", "minimum": 0},
        "unit": {"type": "string", "enum": ["km", "mile"]},
        "note": {"anyOf": [{"type": "string", "pattern": "^x"}, {"type": "null"}]},
        "place": {"$ref": "#/$defs/Place"},
        "odd/name~": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["value"],
    "additionalProperties": False,
    "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"value": 1}, [], id="valid"),
        pytest.param({"value": "1"}, [("/value", "type", None)], id="type"),
        pytest.param({"value": -1}, [("/value", "minimum", None)], id="minimum"),
        pytest.param({"value": 1, "unit": "m"}, [("/unit", "enum", None)], id="enum"),
        pytest.param({}, [("", "required", "value")], id="missing"),
        pytest.param({"value": 1, "place": {}}, [("/place", "required", "city")], id="missing inside"),
        pytest.param(
            {"value": 1, "v": 2, "w": 3},
            [("", "additionalProperties", "v"), ("", "additionalProperties", "w")],
            id="unexpected, one problem each",
        ),
        pytest.param({"value": 1, "note": 5}, [("/note", "anyOf", None)], id="no alternative"),
        pytest.param({"value": 1, "note": "y"}, [("/note", "pattern", None)], id="the alternative meant"),
        pytest.param({"value": 1, "odd/name~": ["1"]}, [("/odd~1name~0/0", "type", None)], id="escaped"),
        pytest.param([], [("", "type", None)], id="another type"),
        pytest.param({"value": 1, "note": "x\ud800"}, [("", "json", None)], id="not writable as JSON"),
    ],
)
def test_each_problem_has_its_place_keyword_and_argument(
    value: Any, expected: list[tuple[str, str, str | None]]
):
    found = problems(SCHEMA, value)
    assert sorted((p.pointer, p.keyword, p.argument) for p in found) == sorted(expected)
    assert is_valid(SCHEMA, value) == (expected == [])


def test_expected_is_the_schema_that_refused():
    by_keyword = {p.keyword: p for p in problems(SCHEMA, {"unit": "m", "note": 5, "zone": 1})}
    assert by_keyword["enum"].expected == {"type": "string", "enum": ["km", "mile"]}
    assert by_keyword["enum"].found == "m"
    assert by_keyword["anyOf"].expected == SCHEMA["properties"]["note"]  # pyright: ignore
    assert by_keyword["required"].expected == {"type": "number", "minimum": 0}
    unexpected = by_keyword["additionalProperties"]
    assert unexpected.found == 1
    assert set(unexpected.expected["properties"]) == set(SCHEMA["properties"])  # pyright: ignore


def test_expected_is_complete_without_the_document():
    found = problems({"$ref": "#/$defs/A", "$defs": {"A": {"items": {"$ref": "#/$defs/B"}, "maxItems": 0},
                                                     "B": {"type": "integer"}}}, [1])  # fmt: skip
    assert [p.expected for p in found] == [{"items": {"type": "integer"}, "maxItems": 0}]


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "nope"}, id="unknown type"),
        pytest.param({"pattern": "("}, id="broken pattern"),
        pytest.param({"pattern": "(?=a)"}, id="look-around"),
        pytest.param({"minimum": "1"}, id="wrong keyword value"),
        pytest.param({"$ref": "#/nowhere"}, id="dangling reference"),
        pytest.param({"$ref": 7}, id="reference that is no string"),
        pytest.param({"$ref": "http://example.org/s"}, id="remote reference"),
        pytest.param({"$ref": "file:///etc/passwd"}, id="file reference"),
        pytest.param({"$id": "http://example.org/a", "$ref": "b"}, id="relative reference"),
        pytest.param({"properties": {"a": {"$dynamicRef": "http://example.org/s"}}}, id="dynamic reference"),
        pytest.param({"description": "x" * 200_001}, id="too large"),
        pytest.param({"const": float("nan")}, id="not JSON"),
    ],
)
def test_a_schema_that_cannot_be_trusted_is_rejected(schema: JsonSchema, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(SchemaRejected):
        check_schema(schema)
    with pytest.raises(SchemaRejected):
        problems(schema, 1)


def doubling(levels: int) -> JsonSchema:
    twice = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/l0", "$defs": {**twice, f"l{levels}": {"type": "integer"}}}  # pyright: ignore


def nested(levels: int) -> JsonSchema:
    schema: JsonSchema = {"type": "integer"}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    "schema", [doubling(24), nested(65), nested(3_000)], ids=["doubling", "deep", "deeper"]
)
def test_a_schema_that_would_cost_too_much_is_rejected_at_once(schema: JsonSchema):
    before = perf_counter()
    with pytest.raises(SchemaRejected):
        check_schema(schema)
    assert perf_counter() - before < 1


def test_a_value_of_a_recursive_schema_is_judged_at_once_however_deep():
    branch = {"properties": {"c": {"$ref": "#/$defs/t"}}}
    schema: JsonSchema = {"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "anyOf": [branch, branch]}}}
    value: Any = 3
    for _ in range(40):
        value = {"c": value}
    before = perf_counter()
    found = problems(schema, value)
    assert perf_counter() - before < 1
    assert [p.keyword for p in found] == ["$ref"]


def test_a_pattern_that_other_engines_hang_on_is_linear():
    before = perf_counter()
    assert not is_valid({"type": "string", "pattern": "^(a+)+$"}, "a" * 5_000 + "b")
    assert perf_counter() - before < 1


@pytest.mark.parametrize("uri", ["https://example.org/own-dialect", "", 5])
def test_an_unknown_dialect_is_read_as_the_latest(uri: Any):
    schema: JsonSchema = {"$schema": uri, "prefixItems": [{"type": "integer"}]}
    assert is_valid(schema, [1])
    assert not is_valid(schema, ["a"])


def test_an_older_dialect_keeps_its_meaning():
    schema: JsonSchema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{"type": "integer"}],
    }
    assert not is_valid(schema, ["a"])


SCHEMAS = st.recursive(
    st.one_of(
        st.sampled_from([{}, {"type": "string"}, {"type": "integer", "minimum": 2}, {"type": "null"}]),
        st.builds(lambda v: {"enum": v}, st.lists(st.integers(0, 3) | st.text("ab", max_size=2), min_size=1)),
        st.just({"type": ["boolean", "number"]}),
    ),
    lambda inner: st.one_of(
        st.builds(lambda s: {"type": "array", "items": s}, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(
            lambda p, r, c: {"type": "object", "properties": p, "required": r, "additionalProperties": c},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.lists(st.sampled_from("abc"), unique=True, max_size=2),
            st.booleans(),
        ),
    ),
    max_leaves=8,
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 5)
    | st.floats(-2, 2)
    | st.sampled_from(["", "a", "1", "2.5"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=8,
)


@given(SCHEMAS, VALUES)
def test_the_verdict_is_that_of_the_reference_implementation(schema: Any, value: Any):
    valid = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert is_valid(schema, value) == valid
    assert (problems(schema, value) == []) == valid

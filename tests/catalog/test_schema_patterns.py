"""Patterns that no engine bounds are taken out, wherever they stand, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.schema import check_schema, is_valid, without_unusable_patterns

AHEAD = "^(?!x).*$"


@pytest.mark.parametrize(
    ("schema", "admitted"),
    [
        pytest.param({"properties": {"a": {"type": "string", "pattern": AHEAD}}}, {"a": "x"}, id="property"),
        pytest.param(
            {"$defs": {"d": {"pattern": AHEAD}}, "properties": {"a": {"$ref": "#/$defs/d"}}},
            {"a": "x"},
            id="definition",
        ),
        pytest.param(
            {
                "patternProperties": {AHEAD: {"type": "string"}, "^n": {"type": "number"}},
                "additionalProperties": False,
            },
            {"other": "x", "n": 1},
            id="pattern of a key",
        ),
        pytest.param(
            {"anyOf": [{"required": ["a"]}, {"items": {"pattern": "(a)\\1"}}]}, {"a": 1}, id="alternative"
        ),
    ],
)
def test_a_pattern_that_is_not_evaluated_is_dropped_and_the_rest_holds(schema: Any, admitted: Any) -> None:
    usable, dropped = without_unusable_patterns(schema)
    check_schema(usable)
    assert len(dropped) == 1
    assert is_valid(usable, admitted)


def test_what_other_keywords_say_still_holds() -> None:
    schema: Any = {
        "properties": {"a": {"type": "string", "pattern": AHEAD, "maxLength": 2}, "b": {"pattern": "^b"}}
    }
    usable, dropped = without_unusable_patterns(schema)
    assert dropped == [AHEAD]
    assert [is_valid(usable, value) for value in ({"a": "xx"}, {"a": "xxx"}, {"a": 1}, {"b": "c"})] == [
        True,
        False,
        False,
        False,
    ]


def test_a_schema_without_such_patterns_stays_as_it_is() -> None:
    schema: Any = {"properties": {"a": {"pattern": "^[a-z]+$"}, "b": True}, "patternProperties": {"^x": {}}}
    assert without_unusable_patterns(schema) == (schema, [])

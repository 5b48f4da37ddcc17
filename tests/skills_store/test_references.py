"""References, templates, selectors and quotations inside values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from skills_store.workflow.references import (
    ExpressionError,
    Reference,
    Scope,
    Unresolved,
    escape_literal,
    find_references,
    is_selector,
    map_references,
    parse_reference,
    resolve,
)
from skills_store.workflow.scan import Unreadable, scan
from tests.strategies import json_values, values

SCOPE = Scope(
    inputs={"city": "Oslo", "n": 5, "dotted.name": 1},
    outputs={"a": {"x": [1, {"y/z": None}], "": 0, "~": 2}},
    item={"id": 7},
    has_item=True,
)
OUTSIDE = Scope(inputs=SCOPE.inputs, outputs=SCOPE.outputs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$inputs.city", Reference("inputs", "city")),
        ("$inputs.a-b.c", Reference("inputs", "a-b.c")),
        ("$nodes.a_1.output", Reference("nodes", "a_1")),
        ("$nodes.a.output#/x/0", Reference("nodes", "a", "/x/0")),
        ("$nodes.a.output#", Reference("nodes", "a")),
        ("$item", Reference("item")),
        ("$item#/a~1b", Reference("item", "", "/a~1b")),
    ],
)
def test_a_reference_is_a_whole_string(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected
    assert parse_reference(str(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "$",
        "$x",
        "$inputs",
        "$inputs.",
        "$input.city",
        "$nodes.a",
        "$nodes.A.output",
        "$nodes.a.output.x",
        "$items",
        "$nodes.a.output#x",
        "$inputs.city ",
        " $inputs.city",
        "$nodes.a.output/x",
        "inputs.city",
        "$item.id",
    ],
)
def test_what_is_nearly_a_reference_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse_reference(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("$inputs.n", 5, id="keeps its type"),
        pytest.param("$nodes.a.output#/x/1/y~1z", None, id="escaped pointer to null"),
        pytest.param("$nodes.a.output#/", 0, id="empty key"),
        pytest.param("$nodes.a.output#/~0", 2, id="tilde"),
        pytest.param("$inputs.dotted.name", 1, id="dotted input"),
        pytest.param({"k": ["$item#/id"]}, {"k": [7]}, id="nested"),
        pytest.param(
            "in {$inputs.city} at {$nodes.a.output#/x}", 'in Oslo at [1,{"y/z":null}]', id="template"
        ),
        pytest.param("$$inputs.city", "$inputs.city", id="escaped reference"),
        pytest.param("$$ {$inputs.n}", "$ 5", id="template behind an escape"),
        pytest.param("{{$inputs.n}", "{$inputs.n}", id="escaped placeholder"),
        pytest.param('{"a": {b}} ${x} 5$', '{"a": {b}} ${x} 5$', id="other braces are literal"),
        pytest.param({"$literal": "$inputs.n"}, "$inputs.n", id="quotation"),
        pytest.param(
            {"context": "$nodes.a.output", "selector": "x[0]", "type": "jmespath"}, 1, id="selector"
        ),
        pytest.param(
            {
                "context": "$nodes.a.output#/x/0",
                "with": {"n": "$inputs.n"},
                "selector": "add(context, n)",
                "type": "jmespath",
            },
            6,
            id="selector with names",
        ),
        pytest.param(
            {"context": 1, "selector": "x", "type": "jmespath", "more": 2},
            {"context": 1, "selector": "x", "type": "jmespath", "more": 2},
            id="one key more is no selector",
        ),
    ],
)
def test_a_value_resolves(value: Any, expected: Any) -> None:
    assert resolve(value, SCOPE) == expected


@pytest.mark.parametrize(
    ("value", "available", "pointer"),
    [
        pytest.param({"k": "$inputs.nope"}, ["city", "dotted.name", "n"], "/k", id="input"),
        pytest.param(["$nodes.b.output"], ["a"], "/0", id="node"),
        pytest.param("$nodes.a.output#/y", ["", "x", "~"], "", id="key"),
        pytest.param("$nodes.a.output#/x/5", ["0…1"], "", id="index"),
        pytest.param("$nodes.a.output#/x/-1", ["0…1"], "", id="negative index"),
        pytest.param("$inputs.city#/0", [], "", id="inside a text"),
        pytest.param("at {$nodes.b.output}", ["a"], "", id="template"),
    ],
)
def test_what_is_not_there_lists_what_is(value: Any, available: list[str], pointer: str) -> None:
    with pytest.raises(Unresolved) as caught:
        resolve(value, SCOPE)
    assert caught.value.available == available
    assert caught.value.pointer == pointer


def test_an_item_is_only_there_in_a_mapped_node() -> None:
    with pytest.raises(Unresolved, match="outside of a for_each"):
        resolve("$item", OUTSIDE)


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        pytest.param({"a/b": "$x"}, "/a~1b", id="reference"),
        pytest.param(["ok", "at {$nodes.x}"], "/1", id="template"),
        pytest.param({"context": 1, "selector": "a[", "type": "jmespath"}, "/selector", id="selector"),
        pytest.param({"context": 1, "selector": 5, "type": "jmespath"}, "/selector", id="selector type"),
        pytest.param({"context": 1, "selector": "a", "type": "jmespath"}, "/selector", id="selector miss"),
        pytest.param({"context": 1, "selector": "a", "type": "jmespath", "with": 5}, "/with", id="with"),
    ],
)
def test_what_cannot_be_read_says_where(value: Any, pointer: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        resolve(value, SCOPE)
    assert caught.value.pointer == pointer


@given(json_values)
def test_an_escaped_literal_stands_for_itself(value: Any) -> None:
    escaped = escape_literal(value)
    assert resolve(escaped, Scope()) == value
    assert list(find_references(escaped)) == []


@pytest.mark.parametrize(
    "value",
    ["$inputs.n", "{$inputs.n}", "$$", "{{$", "{{{$item}", {"$literal": 1}, {"$literal": {"$literal": "$"}}],
)
def test_a_literal_that_looks_like_an_expression_is_escaped(value: Any) -> None:
    assert resolve(escape_literal(value), Scope()) == value


@given(values(("alpha", "beta"), item=True))
def test_mapping_references_onto_themselves_changes_nothing(value: Any) -> None:
    assert map_references(value, lambda reference: reference) == value


@given(values(("alpha", "beta"), item=True))
def test_every_mapped_reference_is_found_again(value: Any) -> None:
    moved = map_references(value, lambda _: Reference("nodes", "moved", "/x"))
    before, after = list(find_references(value)), list(find_references(moved))
    assert [found.pointer for found in after] == [found.pointer for found in before]
    assert {str(found.reference) for found in after} <= {"$nodes.moved.output#/x"}


def test_a_scan_goes_on_after_what_cannot_be_read() -> None:
    value = {"a": "$bad", "b": ["$inputs.n", "{$nodes.x} {$inputs.n}"], "c": {"$literal": "$bad"}}
    parts = list(scan(value))
    assert [(type(part) is Unreadable, part.pointer) for part in parts] == [
        (True, "/a"),
        (False, "/b/0"),
        (True, "/b/1"),
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"context": 1, "selector": "a", "type": "jmespath"}, True),
        ({"context": 1, "selector": "a", "type": "jmespath", "with": {}}, True),
        ({"context": 1, "selector": "a", "type": "jsonpath"}, False),
        ({"context": 1, "selector": "a"}, False),
        ("context", False),
    ],
)
def test_a_selector_has_exactly_its_keys(value: Any, expected: bool) -> None:
    assert is_selector(value) is expected

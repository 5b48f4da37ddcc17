"""Derivation: the ways in which an earlier output explains a value, and when none does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.compilation.derivation import Known, derivations
from skills_store.workflow.references import Scope, resolve

USERS = {
    "users": [
        {"name": "Ada", "zip": 10115, "user_id": "ada_lovelace_17"},
        {"name": "Alan", "zip": 20095, "user_id": "alan_turing_23"},
    ],
    "first": {"order_id": "#W2378156", "state": "open"},
    "note": "Order created\nYour reference: REF-99817, please keep it.",
    "count": 12345,
    "small": 7,
}
OUTPUTS = {"search": USERS}
BY_NAME = {
    "context": "$nodes.search.output#/users",
    "selector": "find_item(context, 'name', sought).user_id",
    "type": "jmespath",
    "with": {"sought": "$inputs.name"},
}


def best(value: Any, argument: str = "x", known: tuple[Known, ...] = ()) -> Any:
    ways = derivations(value, argument, OUTPUTS, known)
    return ways[0].expression if ways else None


@pytest.mark.parametrize(
    ("value", "argument", "expression"),
    [
        pytest.param("#W2378156", "order_id", "$nodes.search.output#/first/order_id", id="a-text"),
        pytest.param(12345, "n", "$nodes.search.output#/count", id="a-telling-number"),
        pytest.param(7, "small", "$nodes.search.output#/small", id="a-small-one-under-its-own-name"),
        pytest.param(
            "ada_lovelace_17", "user_id", "$nodes.search.output#/users/0/user_id", id="the-first-item"
        ),
        pytest.param(
            "see #W2378156 now", "text", "see {$nodes.search.output#/first/order_id} now", id="inside-a-text"
        ),
    ],
)
def test_what_an_output_holds_is_read_from_it(value, argument, expression):
    assert best(value, argument) == expression


@pytest.mark.parametrize(
    ("value", "argument"),
    [
        pytest.param(7, "n", id="a-small-number-under-another-name"),
        pytest.param("shut", "x", id="unseen"),
        pytest.param(12345.5, "n", id="another-number"),
        pytest.param(True, "flag", id="a-truth"),
        pytest.param("a", "x", id="a-letter"),
    ],
)
def test_chance_explains_nothing(value, argument):
    assert best(value, argument) is None


def test_an_item_is_found_by_what_is_known_rather_than_by_its_place():
    assert best("alan_turing_23", "user_id", (Known("$inputs.name", "Alan"),)) == BY_NAME


def test_a_selector_made_that_way_finds_another_item_for_another_input():
    found = resolve(BY_NAME, Scope(inputs={"name": "Ada"}, outputs=OUTPUTS))
    assert found == "ada_lovelace_17"


def test_a_value_is_captured_from_a_text_by_the_words_before_it():
    selector = best("REF-99817", "reference")
    assert selector["context"] == "$nodes.search.output#/note"
    other = {"search": {**USERS, "note": "Something else\nYour reference: AB-1, thanks"}}
    assert resolve(selector, Scope(outputs=other)) == "AB-1"


def test_a_better_named_place_wins():
    outputs = {"a": {"zip": 10115, "user_id": "u-1001"}, "b": {"owner": "u-1001"}}
    assert derivations("u-1001", "owner", outputs)[0].expression == "$nodes.b.output#/owner"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=20,
    ),
    st.integers(min_value=1000) | st.text(min_size=4, max_size=20),
)
def test_whatever_is_proposed_gives_the_value(output, value):
    outputs = {"n": output}
    for way in derivations(value, "x", outputs):
        assert resolve(way.expression, Scope(outputs=outputs)) == value


def test_an_item_is_not_found_by_what_several_items_have():
    rows = {"rows": [{"group": "north", "code": "N-4711"}, {"group": "north", "code": "N-0815"}]}
    ways = derivations("N-4711", "code", {"n": rows}, [Known("$inputs.group", "north")])
    assert [way.expression for way in ways] == ["$nodes.n.output#/rows/0/code"]

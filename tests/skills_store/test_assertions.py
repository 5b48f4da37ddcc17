"""Assertions: exactly true, or words for what was there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills_store.workflow.assertions import Checked, assertion_problem, check_assertion, named_nodes
from tests.strategies import json_values

OUTPUT: dict[str, Any] = {
    "total": 4,
    "mean": 0.1 + 0.2,
    "items": [{"price": 1}, {"price": 5}],
    "ok": True,
    "unit": "km",
    "nothing": None,
}


def check(expression: str, output: Any = OUTPUT) -> Checked:
    return check_assertion(expression, output=output, inputs={"limit": 9}, nodes={"first": {"n": 1}})


@pytest.mark.parametrize(
    "expression",
    [
        "output.total == `4`",
        "output.total == `4.0`",
        "approx(output.mean, `0.3`, `1e-9`)",
        "output.ok && output.unit == 'km'",
        "output.total < inputs.limit",
        "nodes.first.output.n == `1`",
        "length(output.items[?price > `2`]) == `1`",
        "output.nothing == `null`",
        "output.total == `5` || output.ok",
        "!contains(output.unit, 'mi')",
    ],
)
def test_what_holds_passes(expression: str) -> None:
    assert check(expression).passed


@pytest.mark.parametrize(
    ("expression", "message", "found"),
    [
        pytest.param(
            "output.total == `5`", "output.total == `5`: left is 4", 4, id="comparison with a literal"
        ),
        pytest.param(
            "output.total >= inputs.limit",
            "output.total >= inputs.limit: left is 4, right is 9",
            4,
            id="comparison of two values",
        ),
        pytest.param(
            "output.ok && output.total > `9`",
            "output.ok && output.total > `9`: output.total > `9`: left is 4",
            4,
            id="second of two",
        ),
        pytest.param("output.total", "output.total: it is 4, not true", 4, id="truthy is no pass"),
        pytest.param("output.items", None, OUTPUT["items"], id="a full list is no pass"),
        pytest.param("output.nothing", "output.nothing: it is null, not true", None, id="null"),
        pytest.param(
            "approx(output.total, `5`, `0.1`)",
            "approx(output.total, `5`, `0.1`): output.total is 4",
            4,
            id="function",
        ),
        pytest.param("`false`", "`false`: it is false, not true", False, id="literally false"),
    ],
)
def test_what_does_not_hold_says_what_was_there(expression: str, message: str | None, found: Any) -> None:
    result = check(expression)
    assert not result.passed
    assert result.found == found
    if message is not None:
        assert result.message == message


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        pytest.param(
            "output.totl == `4`", "keys there: items, mean, nothing, ok, total, unit", id="wrong key"
        ),
        pytest.param("output.totl == `null`", "nothing at 'totl'", id="a missing key is not null"),
        pytest.param("!output_.x", "nothing at 'output_'", id="negated miss"),
        pytest.param("`true` || output.totl", "nothing at 'totl'", id="miss behind a true"),
        pytest.param("output.totl || `true`", "nothing at 'totl'", id="miss before a true"),
        pytest.param("not_null(output.totl, `true`)", "nothing at 'totl'", id="miss in not_null"),
        pytest.param("nodes.second.output == `1`", "keys there: first", id="node that did not finish"),
        pytest.param("output.total == '4'", "cannot be compared", id="types"),
        pytest.param("output.total != '4'", "cannot be compared", id="unequal types are no pass either"),
        pytest.param("divide(output.total, `0`) == `1`", "division by zero", id="exception"),
        pytest.param("output.total ==", "Incomplete", id="malformed"),
        pytest.param("lower(output.total) == 'x'", "invalid type", id="wrong argument"),
    ],
)
def test_what_cannot_be_evaluated_fails_and_shows_the_output(expression: str, words: str) -> None:
    result = check(expression)
    assert not result.passed
    assert words in result.message
    assert '"total":4' in result.message


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        pytest.param("output.total == `777`", "output.total == …: output.total is 4", id="comparison"),
        pytest.param("output.unit == 'mi777'", 'output.unit == …: output.unit is "km"', id="text"),
        pytest.param(
            "output.total == add(inputs.limit, `777`)",
            "output.total == add(inputs.limit, …): output.total is 4, inputs.limit is 9",
            id="computed with a literal",
        ),
        pytest.param(
            "output.ok && approx(output.total, `777`, `0.7`)",
            "approx(output.total, …, …): output.total is 4",
            id="function",
        ),
        pytest.param(
            "output.items[?price > `777`].price | length(@) == `1`",
            'output.items[?price > …].price | (length(@) == …): output.items is [{"price":1},{"price":5}]',
            id="filter",
        ),
        pytest.param("output.total == '777'", None, id="types"),
        pytest.param("output.totl == `777`", None, id="miss"),
        pytest.param("output.total == `777", None, id="unreadable"),
        pytest.param("`777` == `778`", "… == …: does not hold", id="literals only"),
        pytest.param(
            "[`777`, output.total] == `[]`", "[…, output.total] == …: does not hold", id="literal in a list"
        ),
    ],
)
def test_a_hint_shows_what_was_there_and_no_literal(expression: str, hint: str | None) -> None:
    result = check(expression)
    assert not result.passed
    assert "777" in result.message
    assert "777" not in result.hint
    if hint is not None:
        assert result.hint == hint


def test_large_values_are_shown_by_their_start() -> None:
    result = check("output.text == ''", {"text": "x" * 1_000_000})
    assert not result.passed
    assert len(result.message) < 1_000
    assert isinstance(result.found, str)
    assert len(result.found) < 1_000


def test_deep_values_fail_and_do_not_raise() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    assert not check("output == `1`", deep).passed
    assert not check("output.x", deep).passed


@given(
    json_values,
    st.text(max_size=20)
    | st.sampled_from(["output.a == `1`", "output[0]", "output", "keys(output)", "output == output"]),
)
def test_an_assertion_never_raises_and_passes_only_on_true(output: Any, expression: str) -> None:
    result = check_assertion(expression, output=output, inputs={}, nodes={})
    assert not (result.passed and assertion_problem(expression))
    if expression == "output":
        assert result.passed is (output is True)


def test_the_nodes_an_assertion_names() -> None:
    text = "nodes.a.output.x == nodes.b.output && length(nodes.c.output[*].q) == `1` && output.nodes == 'd'"
    assert named_nodes(text) == {"a", "b", "c"}
    assert named_nodes("nodes.a.") == frozenset()

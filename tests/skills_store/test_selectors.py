"""Selectors: strict where stock jmespath answers null, bounded whatever they are given."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.canonical import canonical_json
from skills_store.workflow.expression_text import render_ast
from skills_store.workflow.selectors import (
    SelectorError,
    SelectorMiss,
    evaluate_selector,
    parse_selector,
    selector_problem,
)
from tests.strategies import json_values

DATA: dict[str, Any] = {
    "items": [{"price": 1, "name": "b"}, {"price": 5, "name": "a"}],
    "text": "Total: 42 km, 7 mi",
    "day": "2024-02-28",
    "nothing": None,
    "flag": True,
    "nested": [[1, 2], [3]],
    "numbers": [1, 1.0, True, "1", 1],
    "rate": 2.5,
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("items[*].price", [1, 5], id="projection"),
        pytest.param("items[?price > `2`].name | [0]", "a", id="filter"),
        pytest.param("items[-1].name", "a", id="last"),
        pytest.param("nested[]", [1, 2, 3], id="flatten"),
        pytest.param("items[0].*", [1, "b"], id="values"),
        pytest.param("{a: rate, b: items[0:1]}", {"a": 2.5, "b": [{"price": 1, "name": "b"}]}, id="object"),
        pytest.param("missing || text", DATA["text"], id="or stands in for a miss"),
        pytest.param("items[9].name || 'none'", "none", id="or stands in for an index"),
        pytest.param("not_null(missing, nothing, rate)", 2.5, id="not_null skips misses"),
        pytest.param("items[?(discount || `0`) == `0`] | length(@)", 2, id="or inside a filter"),
        pytest.param("nothing == null_ || `1`", 1, id="miss in a comparison on the left"),
        pytest.param("nothing == `null`", True, id="null compares with everything"),
        pytest.param("rate == `null`", False, id="everything compares with null"),
        pytest.param("add(rate, `1`)", 3.5, id="add"),
        pytest.param("subtract(rate, `1`)", 1.5, id="subtract"),
        pytest.param("multiply(rate, `2`)", 5.0, id="multiply"),
        pytest.param("divide(`6`, `3`)", 2, id="exact division of integers"),
        pytest.param("divide(`1`, `4`)", 0.25, id="divide"),
        pytest.param("modulo(`7`, `3`)", 1, id="modulo"),
        pytest.param("power(`2`, `10`)", 1024, id="power"),
        pytest.param("round(`2.675`, `2`)", 2.68, id="round half up"),
        pytest.param("round(rate, `0`)", 3, id="round to an integer"),
        pytest.param("round(`1234`, `-2`)", 1200, id="round to hundreds"),
        pytest.param("approx(rate, `2.51`, `0.02`)", True, id="approx"),
        pytest.param("lower(text)", "total: 42 km, 7 mi", id="lower"),
        pytest.param("upper('ab')", "AB", id="upper"),
        pytest.param("trim(' x ')", "x", id="trim"),
        pytest.param("split('a,b', ',')", ["a", "b"], id="split"),
        pytest.param("replace('aXa', 'a', 'b')", "bXb", id="replace"),
        pytest.param("substring('abcdef', `1`, `3`)", "bc", id="substring"),
        pytest.param("pad_left('7', `3`, '0')", "007", id="pad_left"),
        pytest.param("regex_capture(text, '(\\d+) km')", "42", id="first group"),
        pytest.param("regex_capture(text, '\\d+')", "42", id="whole match"),
        pytest.param("regex_captures(text, '(\\d+) ')", ["42", "7"], id="all captures"),
        pytest.param("regex_match(text, '^Total')", True, id="regex_match"),
        pytest.param("to_number(regex_capture(text, '\\d+'))", 42, id="to_number"),
        pytest.param("to_number('nan')", None, id="nan is no number"),
        pytest.param("to_string(items[0])", '{"price":1,"name":"b"}', id="to_string"),
        pytest.param("unique(numbers)", [1, True, "1"], id="unique"),
        pytest.param("contains(`[1]`, `true`)", False, id="true is not 1"),
        pytest.param("zip_lists(nested[0], `[3, 4]`)", [[1, 3], [2, 4]], id="zip_lists"),
        pytest.param(
            "group_by(items, &price > `2`)[*].{key: key, n: length(items)}",
            [{"key": False, "n": 1}, {"key": True, "n": 1}],
            id="group_by",
        ),
        pytest.param("sum_by(items, &price)", 6, id="sum_by"),
        pytest.param("sort_by(items, &name)[*].name", ["a", "b"], id="sort_by"),
        pytest.param("date_format('28.02.2024', '%d.%m.%Y', '%Y-%m-%d')", "2024-02-28", id="date_format"),
        pytest.param("date_format(day, 'iso', '%d %b')", "28 Feb", id="date_format from iso"),
        pytest.param("date_add_days(day, `2`)", "2024-03-01", id="date_add_days"),
        pytest.param("date_add_days('2024-02-28T10:00:00', `1`)", "2024-02-29T10:00:00", id="with time"),
        pytest.param("date_diff_days(day, '2024-03-01')", 2, id="date_diff_days"),
        pytest.param("has_key(@, 'missing')", False, id="has_key"),
    ],
)
def test_a_selector_selects(expression: str, expected: Any) -> None:
    assert evaluate_selector(expression, DATA) == expected


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        pytest.param("items[0].cost", "keys there: name, price", id="key"),
        pytest.param("text.length", "the string 'Total: 42 km, 7 mi' has no keys", id="key of a text"),
        pytest.param("nothing.x", "null has no keys", id="key of null"),
        pytest.param("items[5]", "the list has 2 elements", id="index"),
        pytest.param("items[*].cost", "keys there: name, price", id="key in a projection"),
        pytest.param("items[?cost > `1`]", "keys there: name, price", id="key in a filter"),
        pytest.param("text[*]", "reads a list", id="projection of a text"),
        pytest.param("text[]", "reads a list", id="flattened text"),
        pytest.param("items.*", "reads an object", id="values of a list"),
        pytest.param("rate[0]", "reads a list, here is the number 2.5", id="index of a number"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(expression: str, words: str) -> None:
    with pytest.raises(SelectorMiss) as caught:
        evaluate_selector(expression, DATA)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        pytest.param("rate == '2.5'", "cannot be compared", id="number and text"),
        pytest.param("flag == `1`", "cannot be compared", id="boolean and number"),
        pytest.param("rate < text", "cannot be ordered", id="order of number and text"),
        pytest.param("items < items", "cannot be ordered", id="order of lists"),
        pytest.param("nothing < `1`", "cannot be ordered", id="order of null"),
        pytest.param("(rate == '2.5') || `true`", "cannot be compared", id="no miss, so or does not help"),
        pytest.param("divide(`1`, `0`)", "division by zero", id="divide by zero"),
        pytest.param("modulo(`1`, `0`)", "division by zero", id="modulo zero"),
        pytest.param("power(`10`, `1000000000`)", "too large", id="power"),
        pytest.param("power(`-1`, `0.5`)", "no real number", id="complex"),
        pytest.param("multiply(`1e308`, `10`)", "no JSON number", id="infinity"),
        pytest.param("regex_capture(text, 'miles')", "is nowhere in", id="no match"),
        pytest.param("regex_match(text, '(')", "no pattern", id="bad pattern"),
        pytest.param("regex_match(text, '(a)\\1')", "no pattern", id="backreference"),
        pytest.param("split(text, '')", "separator is empty", id="empty separator"),
        pytest.param("zip_lists(items, nested[0], `[]`)", "lengths differ: 2, 2, 0", id="uneven lists"),
        pytest.param("sum_by(items, &name)", "is no number", id="sum of texts"),
        pytest.param("date_add_days('soon', `1`)", "no ISO 8601 date", id="no date"),
        pytest.param("date_add_days(day, `0.5`)", "no whole day", id="half a day"),
        pytest.param("date_format('x', '%Y', '%Y')", "does not match format", id="wrong format"),
        pytest.param("date_diff_days(day, '2024-03-01T00:00:00+00:00')", "", id="naive and aware"),
        pytest.param("lower(rate)", "invalid type", id="argument type"),
        pytest.param("contains(text, `5`)", "a text contains only texts", id="number in a text"),
        pytest.param("pad_left('x', `1e9`, ' ')", "pad_left", id="huge width"),
        pytest.param("approx(rate, `1`, `-1`)", "negative", id="negative tolerance"),
    ],
)
def test_what_cannot_be_done_is_an_error(expression: str, words: str) -> None:
    with pytest.raises(SelectorError) as caught:
        evaluate_selector(expression, DATA)
    assert words in str(caught.value)
    assert not isinstance(caught.value, SelectorMiss)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param("items[", "Incomplete", id="incomplete"),
        pytest.param("a b", "not jmespath", id="two words"),
        pytest.param("foo(text)", "unknown function foo()", id="unknown function"),
        pytest.param("a[?bad(@)]", "unknown function bad()", id="unknown function deep inside"),
        pytest.param("lower(text, text)", "takes 1 arguments, not 2", id="too many arguments"),
        pytest.param("zip_lists()", "at least 1", id="too few arguments"),
        pytest.param("`celsius`", "a text literal is '…'", id="bare word in backticks"),
        pytest.param("`NaN`", "no finite JSON", id="NaN literal"),
        pytest.param("`[1e999]`", "no finite JSON", id="infinite literal"),
        pytest.param("a" * 2001, "at most 2000", id="too long"),
        pytest.param("(" * 900 + "a" + ")" * 900, "nested too deeply", id="too deep"),
    ],
)
def test_what_cannot_be_read_is_told_without_a_value(expression: str, words: str) -> None:
    problem = selector_problem(expression)
    assert problem is not None
    assert words in problem
    with pytest.raises(SelectorError):
        evaluate_selector(expression, DATA)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("@" + " | [@, @]" * 200, id="doubling by reference"),
        pytest.param("[@, @][]" + " | [*].[@, @, @, @][]" * 80, id="growing lists"),
        pytest.param("to_string(@)" + " | join(@, [@, @, @, @])" * 60, id="growing text"),
        pytest.param("`9`" + " | multiply(@, @)" * 100, id="growing integer"),
        pytest.param(
            "replace(to_string(@), ' ', to_string(@))" + " | replace(@, ' ', @)" * 40, id="growing replace"
        ),
        pytest.param("[@]" + " | [@, @]" * 60 + " | group_by(@, &@)", id="grouping by a doubled value"),
        pytest.param("[@]" + " | [@, @]" * 60 + " | unique(@)", id="unique doubled values"),
        pytest.param("[@]" + " | [@, @]" * 60 + " | (@ == [@, @])", id="comparing doubled values"),
        pytest.param("[@]" + " | [@, @]" * 60 + " | contains(@, [@])", id="seeking in doubled values"),
        pytest.param("regex_match('" + "a" * 1000 + "!', '(a*)*(a*)*(a*)*$')", id="catastrophic pattern"),
        pytest.param("!" * 1999 + "a", id="deep expression"),
    ],
)
def test_no_expression_runs_away(expression: str) -> None:
    started = time.monotonic()
    with contextlib.suppress(SelectorError):
        evaluate_selector(expression, {"a": "one two three"})
    assert time.monotonic() - started < 15


@given(
    json_values, st.sampled_from(["@", "a", "[0]", "[*].a", "a || b", "keys(@)", "@.*", "length(@)", "[?a]"])
)
def test_a_selector_gives_json_or_says_why_not(value: Any, expression: str) -> None:
    try:
        selected = evaluate_selector(expression, value)
    except SelectorError:
        return
    assert canonical_json(selected)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_selector(text)
    except SelectorError:
        assert selector_problem(text)


@pytest.mark.parametrize(
    "expression",
    [
        "a.b[0].c",
        "a[*].b[].c",
        "a[?x == '1' && y].z | [0]",
        "a[1:3].b",
        "*.b",
        "a.*.b",
        "a.[b, c]",
        "a.{x: b, y: c}",
        "!(a || b) && c",
        "sort_by(a, &b.c)[-1]",
        '"x y".z',
        "'it\\'s' == `[1, \"a\"]`",
        "a[?b].c[*].d",
        "@",
    ],
)
def test_a_rendered_expression_means_the_same(expression: str) -> None:
    ast = parse_selector(expression)
    assert parse_selector(render_ast(ast)) == ast

"""Task literals: which values a sentence states, and whether it says a value."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.planning.literals import clauses, mentions, spoken_lists, task_literals


def stated(task: str, *, words: bool = False) -> list[tuple[str, Any]]:
    return [(x.kind, x.value) for x in task_literals(task) if words or x.kind != "word"]


@pytest.mark.parametrize(
    ("task", "found"),
    [
        pytest.param("add 3 and -4.5", [("number", 3), ("number", -4.5)], id="numbers"),
        pytest.param(
            "take 1,234,567 or 2e3", [("number", 1234567), ("number", 2000.0)], id="written-numbers"
        ),
        pytest.param(
            "say 'hello there' and \"bye\"", [("quoted", "hello there"), ("quoted", "bye")], id="quoted"
        ),
        pytest.param("the dog's and cat's 5 toys", [("number", 5)], id="apostrophes"),
        pytest.param("get https://example.org/a?b=1.", [("url", "https://example.org/a?b=1")], id="url"),
        pytest.param("mail ann@example.org now", [("email", "ann@example.org")], id="email"),
        pytest.param(
            "on 2024-05-01 at 09:30", [("date", "2024-05-01"), ("time", "09:30")], id="date-and-time"
        ),
        pytest.param("in Europe/Berlin and UTC", [("zone", "Europe/Berlin"), ("zone", "UTC")], id="zones"),
        pytest.param("open /tmp/a b.csv", [("path", "/tmp/a"), ("path", "b.csv")], id="paths"),
        pytest.param("sum A1:B2 of total_sum", [("symbol", "A1:B2"), ("symbol", "total_sum")], id="symbols"),
        pytest.param("weather in New York and Oslo", [("name", "New York"), ("name", "Oslo")], id="names"),
        pytest.param(
            'insert {"name": "ann", "age": 3} into t 4',
            [("json", {"name": "ann", "age": 3}), ("number", 4)],
            id="record",
        ),
        pytest.param('with [{"a": 1}, {"b": 2}].', [("json", [{"a": 1}, {"b": 2}])], id="records"),
        pytest.param("sort [3, 1, 2]", [("number", 3), ("number", 1), ("number", 2)], id="list-is-none"),
        pytest.param("parse '{\"a\": 1}'", [("quoted", '{"a": 1}')], id="quoted-record-is-text"),
        pytest.param("fill ${name} and {b}", [], id="placeholders-are-none"),
        pytest.param(
            'sum {"a": NaN, "b": 2}', [("quoted", "a"), ("quoted", "b"), ("number", 2)], id="no-json"
        ),
        pytest.param("'5' is not 5", [("quoted", "5"), ("number", 5)], id="quoted-number-is-text"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_values_are_found_in_their_order(task, found):
    assert stated(task) == found


def test_words_leave_out_what_every_sentence_has():
    assert stated("Convert the miles to kilometers", words=True) == [
        ("word", "Convert"),
        ("word", "miles"),
        ("word", "kilometers"),
    ]


@given(st.text(max_size=120))
def test_literals_are_apart_in_order_and_where_they_say(task):
    found = task_literals(task)
    assert all(task[literal.start : literal.end] == literal.text for literal in found)
    assert all(one.end <= two.start for one, two in pairwise(found))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (5, True),
        (5.0, True),
        (55, False),
        ("miles", True),
        ("MILES", True),
        (" miles ", True),
        ("mile", False),
        ("New York", True),
        ("a+b", True),
        ("", False),
        (True, False),
        (None, False),
        (["miles"], False),
    ],
)
def test_a_task_says_a_value_as_a_whole(value, said):
    assert mentions("Convert 5 Miles to New York by a+b", value) is said


@pytest.mark.parametrize(
    ("task", "lists"),
    [
        pytest.param("the digests of 'a', 'b' and 'c'", [["a", "b", "c"]], id="quoted"),
        pytest.param("sum 3, 5, and 8", [[3, 5, 8]], id="numbers"),
        pytest.param("sum [3; 5 & 8]", [[3, 5, 8]], id="other-marks"),
        pytest.param("weather of Oslo and Rome, then 3 and 4", [["Oslo", "Rome"], [3, 4]], id="two-lists"),
        pytest.param("add 3 to 4, or 5 or 6", [], id="no-list"),
        pytest.param("3, 'a' and 5", [], id="of-several-kinds"),
        pytest.param("apples, pears and plums", [], id="plain-words"),
        pytest.param("take 5 and", [], id="nothing-follows"),
    ],
)
def test_values_of_one_kind_in_a_row_are_a_list(task, lists):
    assert [listed.values for listed in spoken_lists(task)] == lists


def test_a_list_is_not_taken_apart_into_clauses():
    task = "get the weather of New York, Los Angeles and Rome, then convert it to fahrenheit"
    assert clauses(task) == [
        "get the weather of New York, Los Angeles and Rome",
        "convert it to fahrenheit",
    ]

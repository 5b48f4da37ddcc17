"""How like two tasks are once the values of inputs are slots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.planning.task_reading import Reading, is_same_family, pattern_of, read_as

MILES = ("Convert 5 miles to kilometers", {"value": 5, "from": "miles", "to": "kilometers"})
ROWS = ("Count rows over 100 in sales.csv", {"path": "sales.csv"})


@pytest.mark.parametrize(
    ("task", "own", "alike"),
    [
        pytest.param("Convert 7 feet to meters", MILES, 1.0, id="other-values"),
        pytest.param("Please convert 7 feet to meters", MILES, 1.0, id="small-talk"),
        pytest.param("Count rows over 100 in other.csv", ROWS, 1.0, id="a-path"),
        pytest.param("Count rows over 200 in other.csv", ROWS, 5 / 7, id="a-value-nobody-lifted"),
        pytest.param("Convert 7 feet to meters and add 2", MILES, 5 / 8, id="more-to-do"),
        pytest.param("Sing", MILES, 1 / 5, id="something-else-in-a-slot-for-words"),
        pytest.param("", MILES, 0.0, id="nothing"),
    ],
)
def test_likeness_is_the_share_of_what_either_says_that_both_say(task, own, alike):
    assert pattern_of(*own).likeness(task) == pytest.approx(alike)


def test_what_stands_in_a_slot_without_being_of_its_kind_is_told_apart():
    reading = read_as("Show the orders of user Grace", "Show the orders of user 17", {"user_id": 17})
    assert reading == Reading(instead={"user_id": "Grace"})


def test_a_word_is_no_value_where_an_identifier_stood():
    own = ("Show the orders of U-17", {"user_id": "U-17"})
    assert read_as("Show the orders of Grace", *own) == Reading(instead={"user_id": "Grace"})
    assert read_as("Show the orders of U-18", *own) == Reading({"user_id": "U-18"})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param("Add 3 to 4", "Add 5 to 6", True, id="values"),
        pytest.param("Hash 'a' with sha256", "Hash 'b' with sha256", True, id="quoted"),
        pytest.param("Add 3 to 4", "Subtract 3 from 4", False, id="words"),
        pytest.param("", "", False, id="nothing"),
    ],
)
def test_a_family_says_the_same_with_other_values(one, other, same):
    assert is_same_family(one, other) is same


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_tasks_are_compared(one, other):
    assert 0 <= pattern_of(other, {"x": other[:5]}).likeness(one) <= 1
    assert pattern_of(one, {}).likeness(one) == 1.0


DIGESTS = ("the digests of 'a', 'b' and 'c'", {"texts": ["a", "b", "c"]})
FRUITS = ["apple", "fig tree", "plum"]
LETTERS = ("Count the letters of apple, fig tree and plum per word", {"fruits": FRUITS})
TOTAL = ("Sum 3, 5 and 8 in EUR", {"numbers": [3, 5.0, 8], "currency": "EUR"})


@pytest.mark.parametrize(
    ("task", "own", "values"),
    [
        pytest.param("the digests of 'x' and 'y'", DIGESTS, {"texts": ["x", "y"]}, id="fewer"),
        pytest.param("the digests of 'p', 'q', 'r', and 's'", DIGESTS, {"texts": [*"pqrs"]}, id="more"),
        pytest.param("the digest of 'x'", DIGESTS, {"texts": ["x"]}, id="one"),
        pytest.param("the digests of x and y", DIGESTS, None, id="of-another-kind"),
        pytest.param("the digests of 'x' and 5", DIGESTS, None, id="of-two-kinds"),
        pytest.param("the digests of 'x' and 'y', joined", DIGESTS, None, id="more-to-do"),
        pytest.param("the digests of", DIGESTS, None, id="nothing-there"),
        pytest.param(
            "Count the letters of pear and sour cherry per word",
            LETTERS,
            {"fruits": ["pear", "sour cherry"]},
            id="words",
        ),
        pytest.param("Sum [1, 2] in USD", TOTAL, {"numbers": [1, 2], "currency": "USD"}, id="numbers"),
        pytest.param(
            "Add 3, 4 and 3", ("Add 3, 4 and 3", {"all": [3, 4, 3], "first": 3}), None, id="two-inputs"
        ),
    ],
)
def test_a_list_that_a_task_says_is_a_slot_for_lists_of_any_length(task, own, values):
    reading = read_as(task, *own)
    assert (reading and reading.values) == values


INSERTED = ('Insert {"name": "ann"} into t', {"row": {"name": "ann"}, "table": "t"})


@pytest.mark.parametrize(
    ("task", "row"),
    [
        pytest.param('Insert {"name": "bob", "age": 3} into t', {"name": "bob", "age": 3}, id="other"),
        pytest.param("Insert {} into t", None, id="empty"),
        pytest.param("Insert 5 into t", None, id="no-record"),
        pytest.param('Insert {"name": "bob"} into t twice', None, id="more-to-do"),
    ],
)
def test_a_record_that_a_task_writes_is_a_slot_for_records(task, row):
    reading = read_as(task, *INSERTED)
    assert (None if reading is None or reading.instead else reading.values["row"]) == row


def test_a_list_of_another_length_does_not_make_a_task_another():
    assert pattern_of(*DIGESTS).likeness("the digests of 'x', 'y', 'z', 'u' and 'v'") == 1.0
    assert pattern_of(*DIGESTS).likeness("the digests of x") < 0.85

"""Differences: the smallest places, escaped, and what is not compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.curation.differences import differences, is_moment, value_at

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("one", "two", "places"),
    [
        pytest.param({"a": 1}, {"a": 1.0}, [], id="equal-numbers"),
        pytest.param({"a": 1}, {"a": True}, ["/a"], id="true-is-not-one"),
        pytest.param({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ["/a/b/1"], id="nested"),
        pytest.param({"a/b": 1, "c~d": 2}, {"a/b": 2, "c~d": 3}, ["/a~1b", "/c~0d"], id="escaped"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, ["/a"], id="other-length"),
        pytest.param({"a": 1}, {"b": 1}, [""], id="other-keys"),
        pytest.param(1, "1", [""], id="other-type"),
    ],
)
def test_the_smallest_places_that_hold_each_difference(one, two, places):
    assert differences(one, two) == places


@pytest.mark.parametrize(
    ("apart_from", "places"),
    [((), ["/a/b", "/ab"]), (("/a",), ["/ab"]), (("/a/b",), ["/ab"]), (("",), []), (("/a", "/ab"), [])],
)
def test_places_left_out_hide_what_is_inside_of_them_only(apart_from, places):
    assert differences({"a": {"b": 1}, "ab": 1}, {"a": {"b": 2}, "ab": 2}, apart_from=apart_from) == places


@given(JSON)
def test_a_value_does_not_differ_from_itself(value):
    assert differences(value, value) == []


@given(JSON, JSON)
def test_values_differ_at_the_places_that_are_named(one, two):
    for place in differences(one, two):
        assert differences(value_at(one, place), value_at(two, place)) == [""]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("2024-02-29T12:30:00Z", True),
        ("2024-02-29 12:30:01.123+02:00", True),
        ("2024-02-29", False),
        ("at 2024-02-29T12:30:00Z", False),
        (1709209800, False),
        (None, False),
    ],
)
def test_a_moment_is_a_date_with_a_time(value, told):
    assert is_moment(value) is told

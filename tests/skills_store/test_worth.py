"""What a skill is worth: explicit calls apart, the world's faults nowhere, savings with intervals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills_store.utility import Use, UseCounts
from skills_store.worth import Cost, worth_of


def use(route="direct", succeeded=True, world=False):
    return Use("s", 1, route, succeeded, world, 1.0)


def test_explicit_calls_count_apart_from_what_the_bank_chose():
    worth = worth_of([use(), use("seeded", False), use("call", False), use("call")], [], [])
    assert (worth.unasked, worth.asked) == (UseCounts(2, 1), UseCounts(2, 1))
    assert worth.by_route == (
        ("call", UseCounts(2, 1)),
        ("direct", UseCounts(1, 1)),
        ("seeded", UseCounts(1)),
    )


def test_the_worlds_faults_do_not_lower_the_utility():
    clean, dirty = (
        worth_of([use()] * 3, [], []),
        worth_of([*[use()] * 3, *[use("direct", False, True)] * 9], [], []),
    )
    assert clean.utility == dirty.utility == 0.8
    assert worth_of([], [], []).utility == 0.5


def test_savings_are_means_with_the_interval_of_the_difference():
    own, planned = [Cost(0, 1, 0.1), Cost(0, 1, 0.3)], [Cost(900, 4, 2.0), Cost(1100, 6, 4.0)]
    worth = worth_of([], own, planned)
    assert worth.calls.mean == 4.0
    assert worth.calls.low == pytest.approx(4.0 - 1.959963984540054)  # variances 0 and 2, two of each
    assert worth.tokens.mean == 1000.0
    assert worth.compared == (2, 2)


@pytest.mark.parametrize(("own", "planned"), [(0, 5), (1, 5), (5, 1)])
def test_nothing_is_said_of_savings_with_too_little_to_compare(own, planned):
    worth = worth_of([], [Cost(1, 1, 1)] * own, [Cost(2, 2, 2)] * planned)
    assert (worth.tokens, worth.calls, worth.seconds) == (None, None, None)


@given(
    st.lists(st.floats(0, 1e6), min_size=2, max_size=9), st.lists(st.floats(0, 1e6), min_size=2, max_size=9)
)
def test_the_mean_lies_in_its_interval(own, planned):
    saved = worth_of([], [Cost(seconds=s) for s in own], [Cost(seconds=s) for s in planned]).seconds
    assert saved.low <= saved.mean <= saved.high

"""Rates and intervals: published values, bounds, and what must not count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills_store.utility import Interval, Use, UseCounts, success_interval, success_rate


@st.composite
def counts(draw: st.DrawFn) -> UseCounts:
    uses = draw(st.integers(0, 500))
    world_faults = draw(st.integers(0, uses))
    return UseCounts(uses, draw(st.integers(0, uses - world_faults)), world_faults)


@pytest.mark.parametrize(
    ("given_counts", "rate"),
    [
        pytest.param(UseCounts(), 0.5, id="nothing-known"),
        pytest.param(UseCounts(1, 1), 2 / 3, id="one-success"),
        pytest.param(UseCounts(1, 0), 1 / 3, id="one-failure"),
        pytest.param(UseCounts(10, 8, 2), 9 / 10, id="world-faults-left-out"),
    ],
)
def test_the_rate_is_smoothed(given_counts, rate):
    assert success_rate(given_counts) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        pytest.param(0, 10, 0.0, 0.2775, id="none-of-ten"),
        pytest.param(5, 10, 0.2366, 0.7634, id="half-of-ten"),
        pytest.param(10, 10, 0.7225, 1.0, id="all-of-ten"),
        pytest.param(81, 263, 0.2553, 0.3662, id="81-of-263"),
    ],
)
def test_the_interval_has_the_published_values(successes, trials, low, high):
    found = success_interval(UseCounts(trials, successes))
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_without_evidence_everything_is_possible():
    assert success_interval(UseCounts(3, 0, 3)) == Interval(0.0, 1.0)


@given(counts())
def test_rate_and_interval_stay_inside_the_unit_and_agree(some):
    found = success_interval(some)
    assert 0 <= found.low <= found.high <= 1
    assert 0 < success_rate(some) < 1
    if some.judged:
        assert found.low <= some.successes / some.judged <= found.high


@given(counts(), st.integers(1, 50))
def test_world_faults_change_nothing(some, more):
    stormy = UseCounts(some.uses + more, some.successes, some.world_faults + more)
    assert success_rate(stormy) == success_rate(some)
    assert success_interval(stormy) == success_interval(some)


@given(counts(), st.integers(1, 50))
def test_more_successes_raise_the_rate_and_the_lower_bound(some, more):
    better = UseCounts(some.uses + more, some.successes + more, some.world_faults)
    assert success_rate(better) > success_rate(some)
    assert success_interval(better).low > success_interval(some).low


@pytest.mark.parametrize("wrong", [(1, 2, 0), (1, 1, 1), (-1, 0, 0), (0, 0, -1)], ids=str)
def test_impossible_counts_cannot_be_built(wrong):
    with pytest.raises(ValueError, match="impossible counts"):
        UseCounts(*wrong)


def test_a_success_is_never_a_world_fault():
    with pytest.raises(ValueError, match="not stopped by a world fault"):
        Use("temperature", 1, "direct", succeeded=True, world_fault=True, at=1.0)

"""Growth and intensity as numbers: no blow-up, gains clipped, guidance only after real stagnation."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.evolution.growth import Growth, intensity
from server.evolution.options import SearchOptions, Switches

OPTIONS = SearchOptions()
scores = st.floats(0, 1)


def after(*told: float, start: Growth | None = None) -> Growth:
    growth = start or Growth()
    for score in told:
        growth = growth.scored(score, OPTIONS.smoothing)
    return growth


@pytest.mark.parametrize(
    ("best", "score", "statistic"),
    [
        pytest.param(0.0, 0.5, 0.1 * 0.25, id="from nothing the gain is the score"),
        pytest.param(0.0, 0.0, 0.0, id="nothing gained from nothing"),
        pytest.param(0.5, 0.6, 0.1 * 0.2**2, id="relative to the best"),
        pytest.param(0.5, 0.4, 0.0, id="a loss is no gain"),
        pytest.param(1e-12, 0.9, 0.1, id="clipped to one"),
    ],
)
def test_one_score_moves_growth(best: float, score: float, statistic: float):
    growth = after(score, start=Growth(best=best))
    assert growth.statistic == pytest.approx(statistic)
    assert growth.best == max(best, score)


@given(st.lists(scores, max_size=60))
def test_growth_and_intensity_stay_within_their_bounds(told: list[float]):
    growth = after(*told)
    assert 0 <= growth.statistic <= 1
    assert growth.best == max([0.0, *told])
    assert OPTIONS.lowest_intensity <= intensity(growth, OPTIONS) <= OPTIONS.highest_intensity


@given(scores, st.integers(0, 200))
def test_growth_wears_off_when_nothing_grows(first: float, generations: int):
    growth = after(first, *[first] * generations)
    assert growth.statistic <= 0.1 * 0.9**generations + 1e-12


def test_the_faster_the_growth_the_less_is_explored():
    told = [intensity(Growth(statistic=g), OPTIONS) for g in (0.0, 0.001, 0.01, 0.1, 1.0)]
    assert told == sorted(told, reverse=True)
    assert told[0] == OPTIONS.highest_intensity
    assert told[3] < 0.3, "one doubling of the best takes intensity to about a quarter"


def test_without_growth_control_the_intensity_stays_half_way():
    fixed = replace(OPTIONS, switches=Switches(growth_control=False))
    assert [intensity(Growth(statistic=g), fixed) for g in (0.0, 0.1, 1.0)] == pytest.approx([0.4] * 3)


class TestGuidance:
    def test_there_is_none_at_the_beginning_although_nothing_has_grown(self):
        assert not Growth().wants_guidance(OPTIONS)

    def test_it_comes_after_generations_without_a_better_candidate_and_then_not_for_a_while(self):
        options = replace(OPTIONS, generations=20, stagnation_generations=3)
        growth, told = Growth(), list[bool]()
        for _ in range(16):
            wanted = growth.wants_guidance(options)
            told.append(wanted)
            growth = growth.guided(options) if wanted else growth
            growth = growth.passed(improved=False)
        assert [place for place, wanted in enumerate(told) if wanted] == [3, 8, 13]

    @settings(deadline=None)
    @given(st.lists(st.booleans(), min_size=1, max_size=40))
    def test_it_never_comes_within_generations_of_an_improvement(self, improvements: list[bool]):
        growth = Growth()
        for generation, improved in enumerate(improvements):
            growth = growth.passed(improved=improved)
            latest = improvements[max(0, generation - 2) : generation + 1]
            if any(latest) or generation < 2:
                assert not growth.wants_guidance(OPTIONS)

    def test_growth_that_is_under_way_is_not_disturbed(self):
        assert not Growth(statistic=0.5, stale=9).wants_guidance(OPTIONS)


@pytest.mark.parametrize(
    "wrong",
    [{"elites": 1.5}, {"lowest_intensity": 0.8}, {"size": 0}, {"children": 0}, {"generations": -1}],
)
def test_options_out_of_bounds_are_refused(wrong: dict[str, float]):
    with pytest.raises(ValueError, match="are"):
        SearchOptions(**wrong)  # pyright: ignore[reportArgumentType]


def test_no_number_of_the_statistic_is_anything_but_finite():
    assert math.isfinite(after(0.0, 1e-300, 1.0).statistic)

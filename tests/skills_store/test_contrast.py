"""The sequential test: fair for a harmless skill whatever the tasks do, quick for a harmful one."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills_store.contrast import (
    ERROR_RATE,
    SUSPICION,
    SUSPICIOUS_SHARE,
    Contrast,
    Trial,
    contrast_of,
    is_withheld,
    share_for,
    trials_of,
)
from skills_store.episodes import TaskEpisode

SHARES = st.sampled_from((0.1, 0.2, 0.5, SUSPICIOUS_SHARE))
OUTCOMES = st.lists(st.booleans(), max_size=8)


@given(outcomes=OUTCOMES, share=SHARES, before=st.lists(st.booleans(), max_size=5))
def test_whatever_the_outcomes_are_the_bet_wins_nothing_on_average_over_the_coin(outcomes, share, before):
    """Exact: the outcomes stand fast, as with a skill that makes no difference; only the coin varies."""
    mean = 0.0
    for coins in product((False, True), repeat=len(outcomes)):
        chance = 1.0
        for coin in coins:
            chance *= share if coin else 1 - share
        trials = [Trial(coin, right, share) for coin, right in zip(coins, outcomes, strict=True)]
        mean += chance * contrast_of(trials, before).evidence
    assert mean == pytest.approx(1.0)


@given(trials=st.lists(st.builds(Trial, st.booleans(), st.booleans(), SHARES), max_size=40))
def test_evidence_is_kept_at_its_most_and_grows_trial_by_trial(trials):
    contrast = Contrast()
    most = 1.0
    for trial in trials:
        contrast = contrast.after(trial)
        most = max(most, contrast.evidence)
    assert contrast == contrast_of(trials)
    assert contrast.most_evidence == most
    assert contrast.guided.uses + contrast.withheld.uses == len(trials)


def streams(with_it, without, uses, count=300):
    """Return in how many of some simulated streams a step was taken within so many guided uses."""
    dice, taken = random.Random(7), 0
    for _ in range(count):
        contrast = contrast_of((), [True, True])
        while contrast.guided.uses < uses and not contrast.is_worse:
            share = share_for(contrast)
            withheld = dice.random() < share
            right = dice.random() < (without if withheld else with_it)
            contrast = contrast.after(Trial(withheld, right, share))
        taken += contrast.is_worse
    return taken


def test_a_harmful_skill_is_found_within_14_uses_in_most_simulated_streams():
    assert streams(0.15, 0.85, 14) >= 0.8 * 300


@pytest.mark.parametrize("rate", [0.85, 0.5])
def test_a_skill_that_makes_no_difference_is_let_alone_in_nearly_all(rate):
    # Of 300 streams with probability 0.01 each, 9 or more are too many (binomial: p < 0.004).
    assert streams(rate, rate, 50) < 9


def test_a_better_skill_is_never_worse():
    assert streams(0.95, 0.5, 60, count=100) == 0


class TestTheShare:
    def test_grows_under_suspicion_and_falls_again(self):
        failed, right = Trial(False, False, 0.2), Trial(False, True, 0.2)
        assert share_for(contrast_of([])) == 0.2
        assert share_for(contrast_of([failed, failed])) == SUSPICIOUS_SHARE
        assert share_for(contrast_of([failed, failed, right])) == 0.2

    def test_stays_for_a_skill_that_was_never_wrong_however_the_coin_fell(self):
        withheld = [Trial(True, True, 0.2)] * 4
        lucky, unlucky = contrast_of(withheld), contrast_of([Trial(False, False, 0.2), *withheld])
        assert min(lucky.evidence, unlucky.evidence) > SUSPICION
        assert (share_for(lucky), share_for(unlucky)) == (0.2, SUSPICIOUS_SHARE)

    def test_of_nothing_stays_nothing(self):
        assert share_for(contrast_of([Trial(False, False, 0.2)] * 4), 0.0) == 0.0

    @given(name=st.text(min_size=1, max_size=8), version=st.integers(1, 9), task=st.text(max_size=20))
    def test_decides_a_coin_that_always_falls_the_same(self, name, version, task):
        first = [is_withheld(name, version, number, task, 0.2) for number in range(20)]
        assert first == [is_withheld(name, version, number, task, 0.2) for number in range(20)]

    def test_is_what_the_coin_withholds_in_the_long_run(self):
        for share in (0.2, 0.5):
            held = sum(is_withheld("s", 1, n, "t", share) for n in range(20_000)) / 20_000
            assert held == pytest.approx(share, abs=0.012)
        assert not any(is_withheld("s", 1, n, "t", 0.0) for n in range(100))


class TestThePapersRule:
    def test_is_computed_and_moves_nothing(self):
        trials = [Trial(False, n < 2, 0.2) for n in range(14)] + [Trial(True, n < 1, 0.2) for n in range(3)]
        contrast = contrast_of(trials)
        assert contrast.paper_delta == pytest.approx(2 / 14 - 1 / 3)
        assert contrast.paper_would_suppress
        assert not contrast.is_worse

    def test_says_nothing_below_its_least_counts(self):
        assert contrast_of([Trial(False, False, 0.2)] * 9).paper_delta is None


def test_rates_are_compared_within_strata_alone():
    easy = [Trial(False, True, 0.2, "easy")] * 8 + [Trial(True, True, 0.2, "easy")] * 2
    hard = [Trial(False, False, 0.2, "hard")] * 2 + [Trial(True, False, 0.2, "hard")] * 8
    assert contrast_of(easy + hard).delta == pytest.approx(0.0)
    assert contrast_of(easy[:1] + hard[-1:]).delta is None


def test_trials_are_read_from_episodes_oldest_first_and_without_the_worlds_faults():
    def episode(outcome, arm="guided", **more):
        named = {"skill": "s", "version": 1, "arm": arm, "share": 0.2} if arm else {}
        return TaskEpisode("t", "direct", outcome, 1.0, **named, **more)

    newest_first = [
        episode("wrong", "withheld", stratum="a"),
        episode("world"),
        episode("right"),
        episode("right", None),
    ]
    assert trials_of(newest_first) == [Trial(False, True, 0.2), Trial(True, False, 0.2, "a")]


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5, -0.1])
def test_a_share_that_no_coin_has_is_refused(share):
    with pytest.raises(ValueError, match="coin"):
        Trial(True, True, share)
    with pytest.raises(ValueError, match="trial"):
        TaskEpisode("t", "direct", "right", 1.0, skill="s", version=1, arm="guided", share=share)


def test_an_error_rate_is_a_probability():
    assert contrast_of(()).error_rate == ERROR_RATE
    with pytest.raises(ValueError, match="error rate"):
        contrast_of((), error_rate=1.0)

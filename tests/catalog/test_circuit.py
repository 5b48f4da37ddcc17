"""The circuit of an upstream, against a clock that is set by hand."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from catalog.circuit import FAILURES_TO_OPEN, Circuit


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def circuit(clock: Clock) -> Circuit:
    return Circuit(clock, lambda: 0.0)


def opened(circuit: Circuit) -> Circuit:
    for _ in range(FAILURES_TO_OPEN):
        assert circuit.admit()
        circuit.failed("no answer")
    return circuit


def test_it_opens_after_failures_in_a_row_and_says_until_when(circuit: Circuit) -> None:
    for _ in range(FAILURES_TO_OPEN - 1):
        circuit.failed("no answer")
    assert circuit.state == "closed"
    circuit.failed("no answer within 1 s")
    assert (circuit.state, circuit.admit(), circuit.retry_seconds) == ("open", False, 0.5)
    assert circuit.why() == (
        "its circuit is open after 5 failures in a row, the last: no answer within 1 s;"
        " it is tried again in 0.5 s"
    )


def test_an_answer_between_failures_keeps_it_closed(circuit: Circuit) -> None:
    for _ in range(FAILURES_TO_OPEN):
        circuit.failed("no answer")
        circuit.succeeded()
    assert (circuit.state, circuit.failures, circuit.retry_seconds) == ("closed", 0, None)


def test_half_open_it_lets_one_trial_pass_which_closes_it(circuit: Circuit, clock: Clock) -> None:
    opened(circuit)
    clock.now += 0.5
    assert [circuit.state, circuit.admit(), circuit.admit()] == ["half_open", True, False]
    assert circuit.why().endswith("it is being tried again now")
    circuit.succeeded()
    assert [circuit.state, circuit.admit(), circuit.admit()] == ["closed", True, True]


def test_a_trial_that_fails_opens_it_for_longer_and_longer_up_to_a_bound(
    circuit: Circuit, clock: Clock
) -> None:
    opened(circuit)
    waited: list[float | None] = []
    for _ in range(8):
        waited.append(circuit.retry_seconds)
        clock.now += circuit.retry_seconds or 0
        assert circuit.admit()
        circuit.failed("again")
    assert waited == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_a_trial_that_nobody_waited_for_leaves_room_for_another(circuit: Circuit, clock: Clock) -> None:
    opened(circuit)
    clock.now += 0.5
    assert circuit.admit()
    circuit.abandoned()
    assert (circuit.state, circuit.admit()) == ("half_open", True)


def test_failures_of_calls_begun_before_it_opened_do_not_keep_it_open(circuit: Circuit) -> None:
    opened(circuit)
    for _ in range(45):
        circuit.failed("late")
    assert (circuit.failures, circuit.retry_seconds) == (FAILURES_TO_OPEN, 0.5)


def test_one_failed_start_opens_it_and_the_next_start_is_the_trial(circuit: Circuit, clock: Clock) -> None:
    circuit.failed_to_start("no such file")
    assert circuit.why() == ("its circuit is open after a failure: no such file; it is tried again in 0.5 s")
    clock.now += 0.5
    assert [circuit.state, circuit.admit(), circuit.admit()] == ["half_open", True, True]
    circuit.started()
    assert circuit.state == "closed"


def test_a_start_says_nothing_of_calls_that_failed(circuit: Circuit, clock: Clock) -> None:
    opened(circuit)
    clock.now += 0.5
    circuit.started()
    assert circuit.state == "half_open"


@pytest.mark.parametrize(("roll", "seconds"), [(0.0, 0.5), (0.5, 0.375), (0.999, 0.25025)])
def test_the_dice_take_up_to_half_of_the_wait(clock: Clock, roll: float, seconds: float) -> None:
    circuit = Circuit(clock, lambda: roll)
    circuit.failed_to_start("")
    assert circuit.retry_seconds == pytest.approx(seconds)

"""Whether an upstream is tried: a circuit that opens after failures in a row and closes on success.

While it is open nothing is sent, so that a dead or stuck upstream costs its callers no waiting; then
one trial decides. Each opening in a row lasts longer, up to a bound, and each a random part shorter,
so that many clients do not come back at the same moment. Pure: clock and dice are arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

__all__ = ["FAILURES_TO_OPEN", "Circuit", "CircuitState", "Clock", "Dice"]

CircuitState = Literal["closed", "open", "half_open"]
Clock = Callable[[], float]
"""Seconds that only grow."""
Dice = Callable[[], float]
"""A number in [0, 1), another one each time."""

FAILURES_TO_OPEN: Final = 5
"""Calls in a row that came to nothing; of starts, one is enough."""
_FIRST_SECONDS: Final = 0.5
_MAX_SECONDS: Final = 30.0
_MAX_DOUBLINGS: Final = 10


class Circuit:
    """The circuit of one upstream.

    Attributes:
        failures: failures since the last success.
        last_failure: what the last one was, empty after a success.
    """

    def __init__(self, clock: Clock, dice: Dice) -> None:
        self.failures = 0
        self.last_failure = ""
        self._clock = clock
        self._dice = dice
        self._openings = 0
        self._retry_at: float | None = None
        self._opened_by_start = False
        self._on_trial = False

    @property
    def state(self) -> CircuitState:
        """Closed: everything passes; open: nothing does; half open: one trial."""
        if self._retry_at is None:
            return "closed"
        return "open" if self._clock() < self._retry_at else "half_open"

    @property
    def retry_seconds(self) -> float | None:
        """How long until it is tried again, None while the circuit is closed."""
        return None if self._retry_at is None else max(0.0, self._retry_at - self._clock())

    def why(self) -> str:
        """Return why nothing is sent now and until when."""
        times = f"{self.failures} failures in a row, the last" if self.failures > 1 else "a failure"
        last = f": {self.last_failure}" if self.last_failure else ""
        seconds = self.retry_seconds or 0.0
        when = f"it is tried again in {seconds:.1f} s" if seconds else "it is being tried again now"
        return f"its circuit is open after {times}{last}; {when}"

    def admit(self) -> bool:
        """Return whether a call may be sent; one that may must end as succeeded, failed or abandoned.

        After a failed start the next start is the trial, and every call may wait for it.
        """
        state = self.state
        if state == "closed" or (state == "half_open" and self._opened_by_start):
            return True
        if state == "open" or self._on_trial:
            return False
        self._on_trial = True
        return True

    def succeeded(self) -> None:
        """Close: the upstream answered."""
        self.failures, self.last_failure, self._openings = 0, "", 0
        self._retry_at, self._opened_by_start, self._on_trial = None, False, False

    def failed(self, reason: str) -> None:
        """Count a call that came to nothing; open after too many in a row, or after a trial."""
        was_trial, self._on_trial = self._on_trial, False
        if self.state == "open":
            return  # begun before it opened: nothing new
        self._count(reason)
        if was_trial or self.failures >= FAILURES_TO_OPEN:
            self._open()

    def failed_to_start(self, reason: str) -> None:
        """Open: the upstream cannot be had."""
        self._on_trial = False
        self._count(reason)
        self._opened_by_start = True
        self._open()

    def started(self) -> None:
        """Close if failed starts had opened it; failed calls need a call that succeeds."""
        if self._opened_by_start:
            self.succeeded()

    def abandoned(self) -> None:
        """End a call that nobody waited for: it says nothing of the upstream."""
        self._on_trial = False

    def _count(self, reason: str) -> None:
        self.failures += 1
        self.last_failure = reason

    def _open(self) -> None:
        seconds = min(_FIRST_SECONDS * 2 ** min(self._openings, _MAX_DOUBLINGS), _MAX_SECONDS)
        self._openings += 1
        self._retry_at = self._clock() + seconds * (1 - self._dice() / 2)

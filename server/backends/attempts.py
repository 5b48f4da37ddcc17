"""How often and for how long a model is asked: retries, pauses, deadline, concurrency.

Only what can succeed later is tried again: a `Setback` says whether. The SDKs' own retries are off.
"""

from __future__ import annotations

import email.utils
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import anyio

from server.backends.errors import BackendError, BackendTimeout

__all__ = ["Attempts", "Pacing", "Setback", "Spent", "parse_retry_after"]

_T = TypeVar("_T")


class Setback(Exception):  # noqa: N818  (caught here, never seen by a caller)
    """One attempt came to nothing.

    Attributes:
        error: what the caller is told when it was the last.
        may_pass: whether trying again can help.
        after_seconds: how long the provider asked to wait, None where it did not say.
        status: of HTTP, None where no answer came.
        parameter: the field of the request that was refused, where the provider named one.
    """

    def __init__(
        self,
        error: BackendError,
        *,
        may_pass: bool = False,
        after_seconds: float | None = None,
        status: int | None = None,
        parameter: str | None = None,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.may_pass = may_pass
        self.after_seconds = after_seconds
        self.status = status
        self.parameter = parameter


@dataclass(frozen=True)
class Pacing:
    """How a backend paces itself."""

    concurrency: int = 4
    """Requests in flight at a time."""
    retries: int = 4
    first_pause_seconds: float = 0.5
    """Doubles with each retry; a random part of it is waited, so that callers spread."""
    longest_pause_seconds: float = 20.0
    dice: random.Random = field(default_factory=random.Random)
    pause: Callable[[float], Awaitable[None]] = anyio.sleep


@dataclass
class Spent:
    """What asking took."""

    retries: int = 0


class Attempts:
    """Runs attempts for one backend, at most so many at a time."""

    def __init__(self, name: str, pacing: Pacing) -> None:
        self._name = name
        self._pacing = pacing
        self._slots = anyio.Semaphore(pacing.concurrency)

    async def within(self, seconds: float, work: Callable[[], Awaitable[_T]]) -> _T:
        """Return what the work returns, all its attempts within a deadline.

        Raises:
            BackendError: the last attempt's, or that the deadline passed.
        """
        try:
            with anyio.fail_after(seconds):
                return await work()
        except TimeoutError:
            raise BackendTimeout(
                f"{self._name}: no answer within {seconds:g} s; give it more time, or a smaller request"
            ) from None
        except Setback as setback:
            raise setback.error from None

    async def run(self, attempt: Callable[[], Awaitable[_T]], spent: Spent) -> _T:
        """Return what an attempt returns, trying again while that can help. Run it inside `within`.

        Raises:
            Setback: the last one.
        """
        for tries in range(self._pacing.retries + 1):
            try:
                async with self._slots:
                    return await attempt()
            except Setback as setback:
                pause = self._pause(setback, tries)
                if pause is None:
                    raise
            spent.retries += 1
            await self._pacing.pause(pause)
        raise AssertionError("the last attempt returns or raises")

    async def together(self, works: Sequence[Callable[[], Awaitable[_T]]]) -> list[_T]:
        """Return what each of some works returns, all at once; the first setback ends the others.

        Raises:
            Setback: the first.
        """
        results: dict[int, _T] = {}
        setbacks: list[Setback] = []

        async def one(place: int, work: Callable[[], Awaitable[_T]]) -> None:
            try:
                results[place] = await work()
            except Setback as setback:
                setbacks.append(setback)
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for place, work in enumerate(works):
                tasks.start_soon(one, place, work)
        if setbacks:
            raise setbacks[0]
        return [results[place] for place in range(len(works))]

    def _pause(self, setback: Setback, tries: int) -> float | None:
        """Return how long to wait before the next try, None when there is none."""
        if not setback.may_pass or tries >= self._pacing.retries:
            return None
        ceiling = min(self._pacing.longest_pause_seconds, self._pacing.first_pause_seconds * 2**tries)
        jittered = ceiling * (0.5 + self._pacing.dice.random() / 2)
        if setback.after_seconds is None:
            return jittered
        left = anyio.current_effective_deadline() - anyio.current_time()
        return None if setback.after_seconds >= left else setback.after_seconds + jittered * 0.1


def parse_retry_after(seconds: str | None, milliseconds: str | None, now: float) -> float | None:
    """Return how long a provider asks to wait, from its headers; None where it does not say.

    Args:
        seconds: `retry-after`, a number or an HTTP date.
        milliseconds: `retry-after-ms`, the finer one.
        now: unix seconds.
    """
    for text, unit in ((milliseconds, 1000.0), (seconds, 1.0)):
        try:
            wait = float(text or "") / unit
        except ValueError:
            continue
        if 0 <= wait < float("inf"):
            return wait
    date = email.utils.parsedate_tz(seconds or "")
    return None if date is None else max(0.0, email.utils.mktime_tz(date) - now)

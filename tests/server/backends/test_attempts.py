"""Pauses between tries, and how long a provider asks to wait."""

from __future__ import annotations

import random

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.backends.attempts import Attempts, Pacing, Setback, Spent, parse_retry_after
from server.backends.errors import BackendTimeout, BackendUnavailable

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("seconds", "milliseconds", "expected"),
    [
        ("3", None, 3.0),
        ("0.5", None, 0.5),
        ("3", "250", 0.25),
        ("3", "soon", 3.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", None, 90.0),
        ("Thu, 01 Jan 1970 00:00:01 GMT", None, 0.0),
        ("-1", None, None),
        ("inf", None, None),
        ("later", None, None),
        (None, None, None),
    ],
    ids=str,
)
def test_a_wait_is_read_from_seconds_milliseconds_or_a_date(
    seconds: str | None, milliseconds: str | None, expected: float | None
):
    assert parse_retry_after(seconds, milliseconds, now=10.0) == expected


@given(st.text(), st.text(), st.floats(0, 1e10))
def test_no_header_however_garbled_breaks_the_reading(seconds: str, milliseconds: str, now: float):
    wait = parse_retry_after(seconds, milliseconds, now)
    assert wait is None or wait >= 0


@settings(deadline=None, max_examples=20)  # an event loop each
@given(st.integers(0, 2**32))
def test_pauses_grow_by_chance_within_bounds_and_repeat_with_the_same_dice(seed: int):
    def pauses() -> list[float]:
        waited: list[float] = []

        async def pause(seconds: float) -> None:
            waited.append(seconds)

        async def fail() -> None:
            raise Setback(BackendUnavailable("down"), may_pass=True)

        async def run() -> None:
            pacing = Pacing(retries=8, dice=random.Random(seed), pause=pause)
            attempts = Attempts("x:y", pacing)
            spent = Spent()
            with pytest.raises(BackendUnavailable):
                await attempts.within(600.0, lambda: attempts.run(fail, spent))
            assert spent.retries == 8

        anyio.run(run)
        return waited

    first = pauses()
    ceilings = [0.5, 1, 2, 4, 8, 16, 20, 20]
    assert all(ceiling / 2 <= wait <= ceiling for wait, ceiling in zip(first, ceilings, strict=True))
    assert first == pauses()


async def test_what_a_deadline_ends_is_a_timeout_and_what_its_user_raises_is_not():
    attempts = Attempts("x:y", Pacing())
    with pytest.raises(BackendTimeout, match=r"x:y: no answer within 0\.01 s"):
        await attempts.within(0.01, anyio.sleep_forever)

    async def broken() -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError):
        await attempts.within(1.0, broken)


async def test_the_first_setback_of_several_requests_ends_the_others():
    ended = anyio.Event()

    async def hang() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def fail() -> None:
        raise Setback(BackendUnavailable("down"))

    with anyio.fail_after(5), pytest.raises(Setback, match="down"):
        await Attempts("x:y", Pacing()).together([hang, fail])
    assert ended.is_set()

"""What an answer does not wait for is done all the same: soon, in order, before anybody reads it."""

from __future__ import annotations

import anyio
import pytest

from catalog.tools import ToolId
from server.bank.afterwards import Afterwards

pytestmark = pytest.mark.anyio


async def test_work_is_done_soon_after_and_in_order():
    done: list[int] = []
    last = anyio.Event()
    afterwards = Afterwards()
    async with afterwards.attended():
        for number in range(3):
            afterwards.do(lambda number=number: done.append(number))
        afterwards.do(last.set)
        assert done == []
        with anyio.fail_after(10):
            await last.wait()

    assert done == [0, 1, 2]


async def test_nothing_is_lost_when_it_ends_with_an_error():
    done: list[int] = []
    afterwards = Afterwards()

    async def fail() -> None:
        async with afterwards.attended():
            afterwards.do(lambda: done.append(1))
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    assert done == [1]


async def test_nothing_is_lost_when_it_is_cancelled():
    done: list[int] = []
    afterwards = Afterwards()
    with anyio.CancelScope() as scope:
        async with afterwards.attended():
            afterwards.do(lambda: done.append(1))
            scope.cancel()
            await anyio.sleep_forever()

    assert done == [1]


async def test_what_waits_is_bounded():
    done: list[int] = []
    afterwards = Afterwards()
    async with afterwards.attended():
        for number in range(1000):
            afterwards.do(lambda number=number: done.append(number))
        assert len(done) > 700


async def test_one_failing_work_is_logged_and_keeps_no_other_back(caplog: pytest.LogCaptureFixture):
    done: list[int] = []

    def fail() -> None:
        raise OSError("disk full")

    afterwards = Afterwards()
    async with afterwards.attended():
        afterwards.do(fail)
        afterwards.do(lambda: done.append(1))
        afterwards.finish()

    assert done == [1]
    assert "disk full" in caplog.text


def test_without_being_attended_work_is_done_at_once():
    done: list[int] = []
    Afterwards().do(lambda: done.append(1))
    assert done == [1]


async def test_an_outcome_can_be_reported_right_after_the_answer(open_desk):
    async with open_desk() as desk, desk.context.afterwards.attended():
        arguments = {"value": 1, "from_unit": "miles", "to_unit": "meters"}
        outcome = await desk.bank.call_tool(ToolId("units", "convert_length"), arguments)
        trace = outcome.meta["io.skillbank/trace"]
        assert desk.context.store.trace(trace) is None
        await desk.bank.report_outcome(trace, True, "right")
        kept = desk.context.store.trace(trace)

    assert [said.passed for said in kept.verifications] == [True]
    assert kept.steps[0].arguments == arguments


async def test_what_was_begun_beside_can_be_waited_for():
    done: list[str] = []
    go_on = anyio.Event()
    afterwards = Afterwards()

    async def longer() -> None:
        await go_on.wait()
        done.append("longer")
        afterwards.start(next_one)  # what is begun meanwhile counts too

    async def next_one() -> None:
        done.append("next")

    async with afterwards.attended():
        with anyio.fail_after(10):
            await afterwards.settled()
            afterwards.start(longer)
            go_on.set()
            await afterwards.settled()
            assert done == ["longer", "next"]

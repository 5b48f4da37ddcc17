"""One upstream: start, call, loss, recovery."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from catalog.config import ServerSpec
from catalog.connection import Connection, EraMemory, Options
from catalog.era import Era
from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind, RanUpstream
from catalog.testing.defects import defect_command, read_log
from catalog.transport import open_transport

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def connection_to(
    defect: str,
    log: Path | None = None,
    *,
    options: Options | None = None,
    eras: EraMemory | None = None,
    limit: int = 2**20,
) -> AsyncGenerator[Connection]:
    command, args = defect_command(defect, log)
    spec = ServerSpec("odd", command=command, args=args)
    known: EraMemory = {"odd": "legacy"} if eras is None else eras
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            connection = Connection(
                "odd",
                lambda words: open_transport(spec, words, max_message_bytes=limit),
                group,
                known,
                options or Options(),
                lambda: 0.0,
            )
            try:
                yield connection
            finally:
                connection.close()


async def call(connection: Connection, seconds: float = 10, **arguments: int) -> CallOutcome:
    return await connection.call("good", dict(arguments), timeout_seconds=seconds)


async def failed(connection: Connection, seconds: float = 10, **arguments: int) -> CallFailure:
    outcome = await call(connection, seconds, **arguments)
    assert isinstance(outcome, CallFailure), outcome
    return outcome


def nothing(tool: str) -> bool:  # noqa: ARG001  (no tool leaves anything)
    return False


def starts(log: Path) -> list[int]:
    return [entry["started"] for entry in read_log(log) if "started" in entry]


def calls(log: Path) -> int:
    return sum("called" in entry for entry in read_log(log))


async def test_nothing_is_started_before_the_first_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connection_to("none", log) as connection:
        assert (connection.status, connection.tools, starts(log)) == ("idle", (), [])
        assert isinstance(await call(connection), CallSuccess)
        assert (connection.status, connection.era, connection.generation) == ("ready", "legacy", 1)
        assert [str(tool.id) for tool in connection.tools] == ["odd/good"]
    assert connection.status == "closed"


async def test_fifty_first_calls_at_once_start_one_child(tmp_path: Path) -> None:
    log = tmp_path / "log"
    outcomes: list[CallOutcome] = []
    async with connection_to("none", log) as connection:

        async def first_call() -> None:
            outcomes.append(await call(connection))

        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(first_call)
    assert (len(starts(log)), calls(log)) == (1, 50)
    assert all(isinstance(outcome, CallSuccess) for outcome in outcomes)


async def test_a_child_that_dies_during_a_call_is_a_fault_and_then_recovered(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connection_to("dies_at_call", log) as connection:
        lost = await failed(connection)
        assert (lost.kind, lost.ran) == (FailureKind.SERVER_UNAVAILABLE, RanUpstream.UNSURE)
        assert "exited with code 7" in lost.message
        assert isinstance(await call(connection), CallSuccess)
        assert connection.generation == 2
    assert len(starts(log)) == 2


async def test_a_child_that_is_killed_between_calls_is_replaced_unnoticed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connection_to("none", log) as connection:
        await call(connection)
        os.kill(starts(log)[0], signal.SIGKILL)
        outcome = await call(connection)
        assert isinstance(outcome, CallSuccess) or outcome.ran is RanUpstream.UNSURE
        assert isinstance(await call(connection), CallSuccess)
    assert len(starts(log)) == 2


async def test_a_throw_away_child_is_not_replaced_since_its_state_is_lost(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connection_to("dies_at_call", log, options=Options(reconnects=False)) as connection:
        assert (await failed(connection)).ran is RanUpstream.UNSURE
        gone = await failed(connection)
        assert (gone.kind, gone.ran) == (FailureKind.SERVER_UNAVAILABLE, RanUpstream.NO)
        assert "its process has ended" in gone.message
    assert len(starts(log)) == 1


async def test_a_call_without_an_answer_times_out_and_may_have_run(tmp_path: Path) -> None:
    async with connection_to("never_answers_calls", tmp_path / "log") as connection:
        late = await failed(connection, 0.3)
        assert (late.kind, late.ran) == (FailureKind.TIMEOUT, RanUpstream.UNSURE)
        assert connection.status == "ready"


async def test_an_upstream_that_hangs_is_ended_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catalog.link._PROBE_SECONDS", 0.2)
    log = tmp_path / "log"
    async with connection_to("hangs", log) as connection:
        await failed(connection, 0.3)
        hung = starts(log)[0]
        await connection.lost()
        assert "stopped answering" in connection.problems[0]
        with pytest.raises(ProcessLookupError):
            os.kill(hung, 0)


async def test_a_call_that_cannot_start_in_time_did_not_run() -> None:
    async with connection_to("silent") as connection:
        late = await failed(connection, 0.3)
        assert (late.kind, late.ran) == (FailureKind.TIMEOUT, RanUpstream.NO)


@pytest.mark.parametrize(
    ("defect", "reason"),
    [
        ("dies_at_start", "its last words: no database at /nowhere"),
        ("silent", "not ready within 0.5 s"),
        ("refuses_listing", "fetch failed"),
    ],
)
async def test_an_upstream_that_cannot_be_had_says_why(defect: str, reason: str) -> None:
    async with connection_to(defect, options=Options(start_seconds=0.5)) as connection:
        outcome = await failed(connection)
        assert (outcome.kind, outcome.ran) == (FailureKind.SERVER_UNAVAILABLE, RanUpstream.NO)
        assert reason in outcome.message
        assert connection.status == "failed"
        assert reason in connection.problems[0]


async def test_a_failed_start_is_not_repeated_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connection_to("dies_at_start", log) as connection:
        for _ in range(5):
            await failed(connection)
    assert len(starts(log)) == 1


@pytest.mark.parametrize(
    ("defect", "kind"),
    [
        ("bad_output", FailureKind.OUTPUT_SCHEMA_MISMATCH),
        ("nan", FailureKind.DISGUISED_ERROR),
        ("unreadable_answer", FailureKind.TOOL_ERROR),
        ("wrong_shape", FailureKind.TOOL_ERROR),
    ],
)
async def test_a_bad_answer_is_a_failure_and_the_connection_lives(defect: str, kind: FailureKind) -> None:
    async with connection_to(defect) as connection:
        outcome = await failed(connection)
        assert (outcome.kind, outcome.ran) == (kind, RanUpstream.YES)
        assert connection.status == "ready"


async def test_a_content_block_of_unknown_type_is_kept_as_text() -> None:
    async with connection_to("malformed_result") as connection:
        outcome = await call(connection)
        assert outcome.content == [{"type": "text", "text": '{"type": "hologram", "x": 1}'}]


@pytest.mark.parametrize("defect", ["huge_answer", "endless_line"])
async def test_an_answer_over_the_size_bound_is_over_the_limit(defect: str) -> None:
    async with connection_to(defect, limit=100_000) as connection:
        outcome = await failed(connection, bytes=200_000)
        assert (outcome.kind, outcome.ran) == (FailureKind.OVER_LIMIT, RanUpstream.YES)
        await connection.lost()
        again = await call(connection, bytes=10)
        assert isinstance(again, CallSuccess) or defect == "endless_line"


async def test_noise_is_told_beside_a_working_connection() -> None:
    async with connection_to("noise") as connection:
        assert isinstance(await call(connection), CallSuccess)
        assert any("lines on its standard output" in problem for problem in connection.problems)


@pytest.mark.parametrize(
    ("defect", "children"), [("none", 1), ("dies_at_unknown", 2), ("ignores_unknown", 1)]
)
async def test_the_era_is_found_once_and_remembered(
    defect: str, children: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.3)
    log = tmp_path / "log"
    eras: dict[str, Era] = {}
    async with connection_to(defect, log, eras=eras) as connection:
        assert isinstance(await call(connection), CallSuccess)
    assert (eras, len(starts(log))) == ({"odd": "legacy"}, children)
    async with connection_to(defect, log, eras=eras) as connection:
        assert isinstance(await call(connection), CallSuccess)
    assert len(starts(log)) == children + 1


async def test_calls_over_the_limit_wait_their_turn_within_their_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    outcomes: list[CallFailure] = []
    async with connection_to("never_answers_calls", log, options=Options(parallel_calls=2)) as connection:

        async def one() -> None:
            outcomes.append(await failed(connection, 1))

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(one)
    assert calls(log) == 2
    assert sorted((outcome.message, outcome.ran.value) for outcome in outcomes) == [
        ("no answer within 1 s", "unsure"),
        ("no answer within 1 s", "unsure"),
        ("not sent within 1 s: 2 calls are under way", "no"),
        ("not sent within 1 s: 2 calls are under way", "no"),
    ]


async def test_after_too_many_calls_without_an_answer_the_next_fails_at_once_and_says_why(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    why = "its circuit is open after 5 failures in a row, the last: no answer within 0.1 s; it is tried again"
    async with connection_to("never_answers_calls", log) as connection:
        await connection.ready()
        for _ in range(5):
            assert (await failed(connection, 0.1)).kind is FailureKind.TIMEOUT
        refused = await failed(connection, math.inf)
        assert (refused.kind, refused.ran) == (FailureKind.SERVER_UNAVAILABLE, RanUpstream.NO)
        assert refused.message.startswith(why)
        assert connection.problems[0].startswith(why)
        assert (connection.circuit, connection.status) == ("open", "ready")
        while connection.circuit == "open":
            await anyio.lowlevel.checkpoint()
        assert (await failed(connection, 0.1)).kind is FailureKind.TIMEOUT
        assert connection.circuit == "open"
    assert calls(log) == 6


async def test_a_server_that_is_back_closes_its_circuit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connection_to("dies_at_start_once", log) as connection:
        await failed(connection)
        assert connection.circuit == "open"
        while connection.circuit == "open":
            await anyio.lowlevel.checkpoint()
        assert isinstance(await call(connection), CallSuccess)
        assert (connection.circuit, connection.retry_seconds) == ("closed", None)
    assert len(starts(log)) == 2


async def test_an_idle_upstream_that_holds_nothing_is_ended_and_started_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = Options(idle_seconds=0.2, leaves_state=nothing)
    async with connection_to("none", log, options=options) as connection:
        assert isinstance(await call(connection), CallSuccess)
        await connection.lost()
        assert (connection.status, connection.problems, len(connection.tools)) == ("idle", [], 1)
        with pytest.raises(ProcessLookupError):
            os.kill(starts(log)[0], 0)
        assert isinstance(await call(connection), CallSuccess)
        assert connection.generation == 2
    assert len(starts(log)) == 2


async def test_an_idle_upstream_that_may_hold_something_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    free, costly = Options(idle_seconds=0.2, leaves_state=nothing), Options(idle_seconds=0.2)
    async with connection_to("none", log, options=costly) as kept:
        await call(kept)
        async with connection_to("none", options=free) as ended:
            await call(ended)
            await ended.lost()
        assert isinstance(await call(kept), CallSuccess)
    assert len(starts(log)) == 1


async def test_a_call_under_way_keeps_an_upstream_from_being_idle(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = Options(idle_seconds=0.05, leaves_state=nothing)
    async with connection_to("never_answers_calls", log, options=options) as connection:
        late = await failed(connection, 1)
        assert (late.message, len(starts(log))) == ("no answer within 1 s", 1)


async def test_answers_in_another_order_find_their_calls(tmp_path: Path) -> None:
    said: dict[int, CallOutcome] = {}
    async with connection_to("out_of_order", tmp_path / "log") as connection:

        async def ask(number: int) -> None:
            said[number] = await call(connection, n=number)

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(ask, number)
    texts = {number: outcome.content[0] for number, outcome in said.items()}
    assert texts == {n: {"type": "text", "text": f'{{"n": {n}}}'} for n in range(4)}


async def test_an_upstream_that_is_slow_to_start_is_waited_for(tmp_path: Path) -> None:
    async with connection_to("slow_start", tmp_path / "log") as connection:
        assert isinstance(await call(connection), CallSuccess)
        assert connection.seconds_to_start is not None
        assert connection.seconds_to_start >= 1


async def test_a_server_with_little_time_that_ignores_the_probe_is_tried_in_the_other_era(
    tmp_path: Path,
) -> None:
    eras: EraMemory = {}
    options = Options(start_seconds=1.5)
    async with connection_to("ignores_unknown", tmp_path / "log", options=options, eras=eras) as connection:
        assert isinstance(await call(connection), CallSuccess)
    assert eras == {"odd": "legacy"}


async def test_a_quarantined_tool_is_not_called() -> None:
    async with connection_to("hostile_schemas") as connection:
        outcome = await connection.call("exponential", {}, timeout_seconds=10)
        assert isinstance(outcome, CallFailure)
        assert (outcome.kind, outcome.ran) == (FailureKind.UNKNOWN_TOOL, RanUpstream.NO)
        assert outcome.message.startswith("quarantined: output schema: ")


async def test_a_closed_connection_answers_that_it_is_closed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connection_to("none", log) as connection:
        await call(connection)
        connection.close()
        await connection.lost()
        outcome = await failed(connection, math.inf)
        assert (outcome.ran, outcome.message) == (RanUpstream.NO, "the connection is closed")
    assert len(starts(log)) == 1

"""The child process behind a transport: its messages, its noise, its end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from catalog import child_process
from catalog.config import ServerSpec
from catalog.errors import ServerUnavailable
from catalog.testing.defects import defect_command, read_log
from catalog.transport import LastWords, open_transport
from catalog.wire import Streams

pytestmark = pytest.mark.anyio


def defective(defect: str, log: Path | None = None) -> ServerSpec:
    command, args = defect_command(defect, log)
    return ServerSpec("odd", command=command, args=args)


@asynccontextmanager
async def opened(
    spec: ServerSpec, words: LastWords | None = None, limit: int = 2**20
) -> AsyncGenerator[Streams]:
    with anyio.fail_after(20):
        async with open_transport(spec, words or LastWords(), max_message_bytes=limit) as streams:
            yield streams


def request(method: str = "tools/call", **arguments: object) -> SessionMessage:
    params = {"name": "good", "arguments": arguments}
    return SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=1, method=method, params=params))


async def answer(streams: Streams, sent: SessionMessage) -> types.JSONRPCResponse | types.JSONRPCError:
    read, write = streams
    await write.send(sent)
    received = await read.receive()
    assert isinstance(received, SessionMessage)
    assert isinstance(received.message, types.JSONRPCResponse | types.JSONRPCError)
    return received.message


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def test_lines_that_are_no_messages_are_dropped_and_counted() -> None:
    words = LastWords()
    async with opened(defective("noise"), words) as streams:
        assert isinstance(await answer(streams, request()), types.JSONRPCResponse)
    told = "6 lines on its standard output were no messages, the first: 'Starting up...'"
    assert words.problems() == [told]


@pytest.mark.parametrize("size", [10, 300_000, 3_000_000])
async def test_a_message_within_the_bound_arrives_whole(size: int) -> None:
    async with opened(defective("huge_answer"), limit=4 * 2**20) as streams:
        got = await answer(streams, request(bytes=size))
        assert isinstance(got, types.JSONRPCResponse)
        assert len(got.result["content"][0]["text"]) == size


@pytest.mark.parametrize("defect", ["huge_answer", "endless_line"])
async def test_a_message_over_the_bound_fails_its_request_and_ends_the_process(defect: str) -> None:
    words = LastWords()
    async with opened(defective(defect), words, limit=100_000) as streams:
        got = await answer(streams, request(bytes=200_000))
        assert isinstance(got, types.JSONRPCError)
        assert "over the limit" in got.error.message
        with pytest.raises(anyio.EndOfStream):
            await streams[0].receive()
    assert words.too_large
    assert words.exit_code == -9


async def test_an_answer_that_cannot_be_read_fails_its_request_at_once() -> None:
    async with opened(defective("unreadable_answer")) as streams:
        got = await answer(streams, request())
        assert isinstance(got, types.JSONRPCError)
        assert got.error.code == types.PARSE_ERROR


async def test_the_last_words_of_a_process_are_kept_clean() -> None:
    words = LastWords()
    async with opened(defective("dies_at_start"), words) as (read, _):
        with pytest.raises(anyio.EndOfStream):
            await read.receive()
    assert words.describe() == "the process exited with code 3; its last words: no database at /nowhere"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (ServerSpec("odd", command="/nowhere/server"), "cannot start '/nowhere/server': No such file"),
        (ServerSpec("odd", command=sys.executable, cwd="/nowhere"), "cannot start"),
        (ServerSpec("odd"), "no command is configured"),
        (ServerSpec("odd", transport="http"), "http needs a url"),
    ],
    ids=["no-program", "no-folder", "no-command", "no-url"],
)
async def test_a_server_that_cannot_start_is_named(spec: ServerSpec, reason: str) -> None:
    with pytest.raises(ServerUnavailable, match=reason) as raised:
        async with opened(spec):
            raise AssertionError("it started")
    assert raised.value.server == "odd"


async def test_the_child_gets_the_declared_variables_and_no_secrets_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OUR_SECRET", "s3cret")
    script = "import json, os; open('seen', 'w').write(json.dumps(dict(os.environ)))"
    spec = ServerSpec(
        "odd", command=sys.executable, args=("-c", script), env={"GIVEN": "1"}, cwd=str(tmp_path)
    )
    async with opened(spec) as (read, _):
        with pytest.raises(anyio.EndOfStream):
            await read.receive()
    seen = (tmp_path / "seen").read_text()
    assert '"GIVEN": "1"' in seen
    assert "OUR_SECRET" not in seen


async def test_a_stubborn_process_is_killed(tmp_path: Path) -> None:
    words = LastWords()
    log = tmp_path / "log"
    async with opened(defective("stubborn", log), words) as streams:
        await answer(streams, request())
    assert words.exit_code == -9
    assert not is_running(read_log(log)[0]["started"])


async def test_a_process_that_has_not_said_a_message_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(child_process, "_EXIT_GRACE_SECONDS", 3600.0)
    words = LastWords()
    script = "import time; print('a banner', flush=True); time.sleep(3600)"
    async with opened(ServerSpec("odd", command=sys.executable, args=("-c", script)), words):
        while not words.noise:
            await anyio.sleep(0.01)
    assert words.exit_code == -signal.SIGTERM


async def test_a_tree_of_processes_behind_a_shell_is_reaped(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command, args = defect_command("breeds", log)
    quoted = " ".join(f"'{word}'" for word in (command, *args))
    spec = ServerSpec("odd", command="sh", args=("-c", f"sleep 600 & {quoted}; true"))
    async with opened(spec) as streams:
        await answer(streams, request())
        started, bred = read_log(log)[:2]
        group = os.getpgid(started["started"])
        assert is_running(bred["bred"])
    assert not is_running(started["started"])
    assert not is_running(bred["bred"])
    assert not _living_members(group)


def _living_members(group: int) -> list[int]:
    members: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and is_running(int(entry.name)):
            try:
                if os.getpgid(int(entry.name)) == group:
                    members.append(int(entry.name))
            except ProcessLookupError:
                continue
    return members


async def test_cancelling_the_user_still_ends_the_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with anyio.CancelScope() as scope:
        async with opened(defective("none", log)) as streams:
            await answer(streams, request())
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert not is_running(read_log(log)[0]["started"])

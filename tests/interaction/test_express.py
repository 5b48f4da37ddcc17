"""Plain relayed calls over stdio: which of them the library never sees, and that nobody can tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp.types as types
import pytest

from catalog.testing.defects import read_log
from server.surface.express import open_express
from server.surface.stdio import MessagesIn, MessagesOut
from skills_store.sqlite import open_sqlite_store

pytestmark = pytest.mark.anyio

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
UNUSUAL = {"example.org/anything": 1}
"""In the `_meta` of a request it makes the request the library's."""


def request(number: int, method: str, meta: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    said = {**ENVELOPE, **(meta or {})}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": said}}


def relayed(number: int, tool: Any, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    asked = {"server": "shop", "tool": tool, "arguments": arguments}
    return request(number, "tools/call", meta, name="call_tool", arguments=asked)


class FakeRelays:
    """Answers every call with its tool's name."""

    def __init__(self) -> None:
        self.server_info_stamp = {"name": "fake", "version": "1"}
        self.asked: list[Any] = []

    async def relay(self, arguments: Any, report: Any) -> types.CallToolResult:
        del report
        self.asked.append(arguments["tool"])
        return types.CallToolResult(content=[types.TextContent(type="text", text=arguments["tool"])])


async def left_over(messages: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Return the ids that the library gets to see, and the tools whose calls it does not."""

    async def lines() -> AsyncIterator[str]:
        for message in messages:
            yield json.dumps(message)
            await anyio.wait_all_tasks_blocked()

    server = FakeRelays()
    with open(os.devnull, "wb") as nowhere:
        outgoing = MessagesOut(Sink(nowhere.fileno()))
        async with open_express(server, MessagesIn(aiter(lines())), outgoing) as others:
            seen = [item.message async for item in others if not isinstance(item, Exception)]
    return [message.id for message in seen if isinstance(message, types.JSONRPCRequest)], server.asked


class Sink:
    """Takes everything."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write_now(self, left: memoryview) -> memoryview:
        return left[os.write(self._descriptor, left) :]

    async def wait(self) -> None:
        raise AssertionError("nothing is waited for")


FIRST = request(1, "server/discover")
ASKABLE = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
OLD = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"_meta": ENVELOPE}}


@pytest.mark.parametrize(
    ("messages", "seen", "taken"),
    [
        ([FIRST, relayed(2, "a"), relayed(3, "b")], [1], ["a", "b"]),
        ([relayed(1, "a"), relayed(2, "b")], [1], ["b"]),
        ([FIRST, relayed(2, "a", {"progressToken": 7})], [1], ["a"]),
        ([FIRST, relayed(2, "a", UNUSUAL)], [1, 2], []),
        ([FIRST, relayed(2, "a", {"traceparent": "00-1-1-01"})], [1, 2], []),
        ([FIRST, relayed(2, "a", {"io.modelcontextprotocol/logLevel": "info"})], [1, 2], []),
        ([FIRST, relayed(2, "a", ASKABLE)], [1, 2], []),
        ([request(1, "server/discover", ASKABLE), relayed(2, "a")], [1, 2], []),
        ([FIRST, relayed(2, "a", {"io.modelcontextprotocol/protocolVersion": "2099-01-01"})], [1, 2], []),
        ([FIRST, relayed(2, "a", {"io.modelcontextprotocol/clientCapabilities": 3})], [1, 2], []),
        ([FIRST, request(2, "tools/call", name="find_tools", arguments={})], [1, 2], []),
        ([FIRST, request(2, "tools/call", name="call_tool", arguments=[])], [1, 2], []),
        ([FIRST, request(2, "tools/call", name="call_tool", arguments={}, requestState="x")], [1, 2], []),
        ([OLD, relayed(2, "a")], [1, 2], []),
    ],
    ids=[
        "plain",
        "the first request decides",
        "progress",
        "unusual meta",
        "a trace",
        "log",
        "a client that can be asked",
        "a client that could be asked first",
        "another revision",
        "no capabilities",
        "another tool",
        "no arguments",
        "a call that goes on",
        "handshake era",
    ],
)
async def test_only_plain_calls_of_the_newer_era_are_taken(
    messages: list[dict[str, Any]], seen: list[int], taken: list[str]
):
    assert await left_over(messages) == (seen, taken)


SCENARIO = {
    "tools": [
        {"name": "text", "answers": ["fine"]},
        {"name": "data", "answers": [{"n": 1, "none": None, "deep": [{"a": 1.5}]}]},
        {
            "name": "mixed",
            "answers": [
                {
                    "$reply": {
                        "content": [
                            {"type": "text", "text": "ü", "annotations": {"priority": 0.5}},
                            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                        ],
                        "structured": {"n": 1},
                        "meta": {"example.org/kept": [1]},
                    }
                }
            ],
        },
        {
            "name": "fails",
            "answers": [{"$reply": {"content": [{"type": "text", "text": "no"}], "is_error": True}}],
        },
        {"name": "refuses", "answers": [{"$refuse": {"code": -32602, "message": "not so"}}]},
        {"name": "apology", "answers": ["Error: the database is gone"]},
        {"name": "steps", "answers": ["done"], "progress": [[1, 2, "one"], [2, 2, None]]},
        {"name": "sleep", "behaviour": "sleep"},
    ]
}


class Served:
    """`skillbank serve` as a child process, spoken to line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the answer without what differs from call to call."""
        self.say(message)
        answer = self.hear()
        assert answer.pop("id") == message["id"]
        if "result" in answer:
            assert len(answer["result"]["_meta"].pop("io.skillbank/trace", "0" * 32)) == 32
        return answer


@contextmanager
def serving(folder: Path) -> Generator[Served]:
    scenario, config = folder / "scenario.json", folder / "config.json"
    scenario.write_text(json.dumps({**SCENARIO, "log": str(folder / "log")}))
    shop = {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)]}
    config.write_text(json.dumps({"mcpServers": {"shop": shop}}))
    command = [sys.executable, "-m", "server.cli", "serve", "--config", str(config)]
    command += ["--store", str(folder / "store.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        served = Served(process)
        try:
            served.say(FIRST)
            assert served.hear()["result"]["resultType"] == "complete"
            yield served
        finally:
            process.kill()


def test_both_ways_answer_the_same_and_the_calls_are_kept(tmp_path: Path):
    names = [tool["name"] for tool in SCENARIO["tools"] if tool["name"] not in ("steps", "sleep")]
    wrong = [{"tool": "text"}, {"server": "shop", "tool": []}, {"server": "shop", "tool": "text", "more": 1}]
    asked = [{"server": "shop", "tool": name, "arguments": {}} for name in (*names, "unknown")]
    asked += [{"server": "nobody", "tool": "text"}, {"server": "shop", "tool": "text", "trace": "t"}, *wrong]
    with serving(tmp_path) as served:
        for number, arguments in enumerate(asked, 10):
            both = [
                served.ask(request(number, "tools/call", meta, name="call_tool", arguments=arguments))
                for meta in ({}, UNUSUAL)
            ]
            assert both[0] == both[1], arguments
        assert served.process.stdin is not None
        served.process.stdin.close()
        assert served.process.wait(20) == 0
    store = open_sqlite_store(tmp_path / "store.db")
    try:
        assert len(store.traces(1_000)) == 2 * (len(asked) - len(wrong))
    finally:
        store.close()


def test_progress_arrives_in_order_before_the_answer(tmp_path: Path):
    with serving(tmp_path) as served:
        heard = []
        served.say(relayed(5, "steps", {"progressToken": "p"}))
        while "id" not in (message := served.hear()):
            heard.append(message["params"])
    assert heard == [
        {"progressToken": "p", "progress": 1.0, "total": 2.0, "message": "one"},
        {"progressToken": "p", "progress": 2.0, "total": 2.0},
    ]
    assert message["result"]["content"] == [{"type": "text", "text": "done"}]


def test_a_call_that_is_given_up_is_cancelled_upstream_and_never_answered(tmp_path: Path):
    log = tmp_path / "log"
    with serving(tmp_path) as served:
        served.ask(relayed(4, "text"))
        served.say(relayed(5, "sleep", seconds=600))
        while not any(entry.get("tool") == "sleep" for entry in read_log(log)):
            served.ask(relayed(6, "text"))
        served.say(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": 5, "reason": "no"},
            }
        )
        while {"cancelled": {"seconds": 600}, "tool": "sleep"} not in read_log(log):
            assert "result" in served.ask(relayed(7, "text"))
        assert "result" in served.ask(relayed(8, "text", UNUSUAL))


def test_leaving_ends_a_call_under_way(tmp_path: Path):
    with serving(tmp_path) as served:
        served.ask(relayed(4, "text"))
        served.say(relayed(5, "sleep", seconds=600))
        while not any(entry.get("tool") == "sleep" for entry in read_log(tmp_path / "log")):
            served.ask(relayed(6, "text"))
        out, _ = served.process.communicate(timeout=20)
        answers = [json.loads(line) for line in out.splitlines()]
        assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [(5, -32000)]
        assert served.process.returncode == 0

"""How serving starts, what it lets in, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
import mcp.types as types
import pytest
from fake_bank import FakeBank, served_over_http
from mcp import Client

from server.surface import BUILTIN_NAMES, AddressUnusable, BankServer, serve_http

pytestmark = pytest.mark.anyio
PROGRAM = str(Path(__file__).parent / "fake_bank.py")
DISCOVER = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "server/discover",
}


@contextmanager
def serving_process(*arguments: str) -> Generator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    command = [sys.executable, PROGRAM, *arguments]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def discovered(process: subprocess.Popen[bytes]) -> dict[str, object]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(DISCOVER).encode() + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def test_stdio_speaks_only_the_protocol_and_ends_with_its_input():
    with serving_process() as process:
        answer = discovered(process)
        out, err = process.communicate(timeout=10)
    assert answer["id"] == 1
    assert (out, err, process.returncode) == (b"", b"closed\n", 0)


@pytest.mark.parametrize("kind", ["nothing", "file"])
def test_stdio_ends_in_good_order_with_input_that_cannot_be_waited_for(kind: str, tmp_path: Path):
    asked = tmp_path / "asked"
    asked.write_bytes(json.dumps(DISCOVER).encode() + b"\n")
    with open(os.devnull if kind == "nothing" else asked, "rb") as given:
        ended = subprocess.run([sys.executable, PROGRAM], stdin=given, capture_output=True, timeout=10)
    assert (ended.stderr, ended.returncode) == (b"closed\n", 0)


@pytest.mark.parametrize("asked_by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_signal_ends_serving_in_good_order_although_the_client_stays(
    asked_by: signal.Signals, transport: str
):
    with serving_process(transport) as process:
        if transport == "stdio":
            discovered(process)
        else:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"http://127.0.0.1:")
        process.send_signal(asked_by)
        process.wait(timeout=5)
        assert process.stderr is not None
        assert b"closed\n" in process.stderr.read()
    assert (process.returncode == 0) == (asked_by is signal.SIGTERM)


async def test_http_ends_soon_although_a_client_listens():
    with anyio.fail_after(10):
        async with anyio.create_task_group() as clients:
            listening = anyio.Event()

            async def listen(url: str) -> None:
                async with Client(url, mode="auto") as client, client.listen(tools_list_changed=True):
                    listening.set()
                    await anyio.sleep_forever()

            async with served_over_http(FakeBank()) as url:
                clients.start_soon(listen, url)
                await listening.wait()
            clients.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        pytest.param("Host", "evil.example", 421, id="foreign-host"),
        pytest.param("Origin", "http://evil.example", 403, id="foreign-origin"),
        pytest.param("Origin", "http://localhost:1234", 200, id="own-origin"),
    ],
)
async def test_http_answers_only_this_machine(header: str, value: str, status: int):
    async with served_over_http(FakeBank()) as url, httpx2.AsyncClient() as client:
        answer = await client.post(url, json=DISCOVER, headers={**HEADERS, header: value})
    assert answer.status_code == status


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
async def test_http_is_not_served_to_other_machines(host: str):
    with pytest.raises(AddressUnusable, match="reachable from other machines"):
        await serve_http(FakeBank(), host, 0)


async def test_a_taken_port_is_named():
    async with served_over_http(FakeBank()) as url:
        with pytest.raises(AddressUnusable, match=r"cannot serve at 127\.0\.0\.1 port .* in use"):
            await serve_http(FakeBank(), "127.0.0.1", int(url.split(":")[2].split("/")[0]))


@pytest.mark.legacy_era
async def test_one_server_object_serves_both_eras_at_a_time():
    async with (
        served_over_http(FakeBank()) as url,
        Client(url, mode="auto") as modern,
        Client(url, mode="legacy") as old,
    ):
        lists = [await client.list_tools() for client in (modern, old)]
        versions = (modern.protocol_version, old.protocol_version)
    assert versions == ("2026-07-28", "2025-11-25")
    assert [tool.name for tool in lists[0].tools] == [tool.name for tool in lists[1].tools]


async def test_a_change_by_another_process_is_announced(bank: FakeBank):
    with anyio.fail_after(10):
        async with Client(BankServer(bank)) as client, client.listen(tools_list_changed=True) as changes:
            await client.list_tools()
            bank.publish("appeared")
            await anext(aiter(changes))
            listed = await client.list_tools(cache_mode="bypass")
    assert "appeared" in [tool.name for tool in listed.tools]


async def test_a_revision_without_a_change_of_the_list_is_not_announced(bank: FakeBank):
    events: list[object] = []
    with anyio.fail_after(10):
        async with Client(BankServer(bank)) as client, client.listen(tools_list_changed=True) as changes:
            await client.list_tools()
            bank.changes += 1
            await client.call_tool("find_tools", {"query": "x"})
            bank.publish("appeared")
            events.append(await anext(aiter(changes)))
            with anyio.move_on_after(0.05):
                events.append(await anext(aiter(changes)))
    assert len(events) == 1


@pytest.mark.legacy_era
async def test_closed_handshake_connections_are_forgotten(bank: FakeBank):
    server = BankServer(bank)
    for _ in range(3):
        async with Client(server, mode="legacy") as client:
            await client.call_tool("double", {"value": 1})
            assert server.changes.sessions == 1
    assert server.changes.sessions == 0


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_handshake_revision_lists_and_calls(version: str):
    initialize = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"},
    }
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "double", "arguments": {"value": 4}},
        },
    ]
    with serving_process() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = {}
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            if "id" in message:
                answer = json.loads(process.stdout.readline())
                answers[answer["id"]] = answer["result"]
    assert answers[1]["protocolVersion"] == version
    assert answers[1]["capabilities"]["tools"] == {"listChanged": True}
    assert len(answers[2]["tools"]) == len(BUILTIN_NAMES) + len(FakeBank().skills)
    assert types.CallToolResult.model_validate(answers[3]).content

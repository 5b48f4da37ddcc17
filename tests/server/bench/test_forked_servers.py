"""Forked tool servers: fresh each time, as killable as started ones, and refused where there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from server.bench.forks import Forks, open_forks

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
]


@pytest.fixture
def anyio_backend():
    return "asyncio"


def script(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def parameters(command: list[str]) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=command[1:])


async def sessions_of(client: Client) -> str:
    answer = await client.session.call_tool("list_session_variables", {"session_id": "mine"})
    return str(answer.content)


async def test_a_forked_server_answers_as_its_console_script_does_and_knows_nothing_of_another_one():
    async with open_forks() as forks:
        command = parameters(forks.command([script("mcp-mathematics")]))
        async with Client(command) as one, Client(command) as other:
            tools = await one.session.list_tools()
            assert "calculate_expression" in {tool.name for tool in tools.tools}
            made = {"session_id": "mine", "variables": {"x": 4}}
            await one.session.call_tool("create_session", made)
            assert "'x'" in await sessions_of(one) or '"x"' in await sessions_of(one)
            assert '"x"' not in await sessions_of(other)


async def test_a_forked_server_is_gone_when_its_stand_in_is_killed():
    async with open_forks() as forks:
        command = forks.command([script("mcp-hashlib")])
        read, write = os.pipe()
        try:
            async with await anyio.open_process(command, stdout=write) as stand_in:
                os.close(write)
                with anyio.fail_after(60):
                    assert stand_in.stdin is not None
                    await stand_in.stdin.send(_HELLO)
                    assert b"result" in await anyio.to_thread.run_sync(os.read, read, 1 << 16)
                    stand_in.kill()
                    assert await anyio.to_thread.run_sync(os.read, read, 1) == b""
        finally:
            os.close(read)


async def test_a_script_that_is_none_is_refused():
    async with open_forks() as forks:
        process = await anyio.run_process(forks.command(["/no/such-script"]), check=False)
    assert process.returncode == 70


async def test_where_nothing_can_be_forked_processes_are_started_as_configured():
    assert Forks(None).command(["/bin/server", "--flag"]) == ["/bin/server", "--flag"]


_HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n'
)

"""The transport of old clients: the same server over `/sse`, guarded as at `/mcp`."""

from __future__ import annotations

import httpx2
import pytest
from fake_bank import FakeBank, served_over_http
from mcp import Client
from mcp.client.sse import sse_client

pytestmark = pytest.mark.anyio


async def test_a_client_lists_and_calls_over_sse(era: str):
    async with (
        served_over_http(FakeBank()) as url,
        Client(sse_client(f"{url.removesuffix('/mcp')}/sse"), mode=era, read_timeout_seconds=20) as client,
    ):
        names = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("double", {"value": 21})
    assert "double" in names
    assert result.structured_content == {"doubled": 42.0}


async def test_another_host_is_refused():
    async with served_over_http(FakeBank()) as url, httpx2.AsyncClient() as client:
        place = url.removesuffix("/mcp")
        headers = {"Host": "evil.example.com"}
        listening = await client.get(f"{place}/sse", headers=headers)
        sending = await client.post(f"{place}/messages/", headers=headers, json={})
    assert (listening.status_code, sending.status_code) == (421, 421)

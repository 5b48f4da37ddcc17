"""What a trusted upstream asks reaches the client behind the call, with its origin, in both eras."""

from __future__ import annotations

from typing import Any

import mcp.types as types
import pytest
from fake_bank import FakeBank
from mcp import Client, MCPError

from server.surface import BankServer

pytestmark = pytest.mark.anyio

ASK = {"server": "weather", "tool": "ask"}


async def test_a_question_is_shown_with_the_server_that_asks(bank: FakeBank, era: str):
    asked: list[types.ElicitRequestFormParams] = []

    async def person(context: Any, params: Any) -> types.ElicitResult:
        del context
        asked.append(params)
        return types.ElicitResult(action="accept", content={"name": "Oslo"})

    async with Client(BankServer(bank), mode=era, elicitation_callback=person) as client:
        result = await client.call_tool("call_tool", ASK)
    assert result.structured_content == {"city": {"name": "Oslo"}}
    assert [one.message for one in asked] == ["Tool server weather asks: Which city?"]
    assert asked[0].requested_schema["properties"] == {"name": {"type": "string"}}


async def test_a_client_that_shows_no_forms_is_told_what_it_lacks(bank: FakeBank, era: str):
    async with Client(BankServer(bank), mode=era) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("call_tool", ASK)
    assert refused.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert refused.value.data == {"requiredCapabilities": {"elicitation": {}}}
    assert "weather" in str(refused.value)


async def test_a_no_of_the_person_reaches_the_upstream(bank: FakeBank, era: str):
    async def person(context: Any, params: Any) -> types.ElicitResult:
        del context, params
        return types.ElicitResult(action="decline")

    async with Client(BankServer(bank), mode=era, elicitation_callback=person) as client:
        result = await client.call_tool("call_tool", ASK)
    assert result.structured_content == {"city": None}

"""Calls of one conversation are kept together, and saved as a skill at the client's word."""

from __future__ import annotations

import pytest
from fake_bank import FakeBank, served_over_http
from mcp import Client

from server.requests import SaveRequest

pytestmark = pytest.mark.anyio

CALL = {"server": "math", "tool": "echo", "arguments": {}}


async def test_calls_of_one_connection_belong_together_and_a_name_of_its_own_wins(in_process, bank):
    async with in_process() as client:
        await client.call_tool("call_tool", CALL)
        await client.call_tool("call_tool", CALL)
        await client.call_tool("call_tool", {**CALL, "trace": "mine"})
        await client.call_tool("call_tool", CALL, meta={"io.skillbank/recording": "theirs"})
    first, second, mine, theirs = bank.said_recordings
    assert first == second
    assert first is not None
    assert (mine, theirs) == ("mine", "theirs")


async def test_two_connections_are_two_conversations(in_process, bank):
    for _ in range(2):
        async with in_process() as client:
            await client.call_tool("call_tool", CALL)
    assert len(set(bank.said_recordings)) == 2


@pytest.mark.legacy_era
async def test_over_http_each_session_of_an_old_client_is_a_conversation(bank):
    async with served_over_http(bank) as url:
        for _ in range(2):
            async with Client(url, mode="legacy", read_timeout_seconds=10) as client:
                await client.call_tool("call_tool", CALL)
                await client.call_tool("call_tool", CALL)
                await client.call_tool("save_skill", {"name": "far"})
    first, again, second, _ = bank.said_recordings
    assert first == again != second
    assert [request.recording for request in bank.saved] == [first, second]


async def test_over_http_a_new_client_is_in_no_conversation_that_it_does_not_name():
    """Its requests share nothing, so that no call is taken for another client's."""
    bank = FakeBank()
    async with served_over_http(bank) as url, Client(url, mode="auto", read_timeout_seconds=10) as client:
        await client.call_tool("call_tool", CALL)
        await client.call_tool("call_tool", CALL, meta={"io.skillbank/recording": "mine"})
    assert bank.said_recordings == [None, "mine"]


@pytest.mark.parametrize(
    ("given", "request_made"),
    [
        pytest.param({"trace": "t3"}, SaveRequest("far", trace="t3"), id="a-run"),
        pytest.param({"trace": "talk"}, SaveRequest("far", recording="talk"), id="a-conversation"),
        pytest.param(
            {
                "trace": "talk",
                "calls": [1, 2],
                "task": "How far?",
                "inputs": {"x": 1},
                "examples": [{"x": 2}],
            },
            SaveRequest(
                "far", recording="talk", calls=(1, 2), task="How far?", inputs={"x": 1}, examples=({"x": 2},)
            ),
            id="everything",
        ),
    ],
)
async def test_saving_asks_for_what_the_client_said(in_process, bank, given, request_made):
    async with in_process() as client:
        answer = await client.call_tool("save_skill", {"name": "far", **given})
    assert bank.saved == [request_made]
    assert answer.structured_content["reason"] == "far was not kept"


async def test_saving_takes_the_calls_of_this_connection_where_nothing_is_named(in_process, bank):
    async with in_process() as client:
        await client.call_tool("call_tool", CALL)
        await client.call_tool("save_skill", {"name": "far"})
    assert bank.saved[0].recording == bank.said_recordings[0]


async def test_saving_takes_the_conversation_that_the_request_itself_belongs_to(in_process, bank):
    """What a client without a connection of its own says in `_meta`; a name of its own wins."""
    theirs = {"io.skillbank/recording": "theirs"}
    async with in_process() as client:
        await client.call_tool("call_tool", CALL, meta=theirs)
        await client.call_tool("call_tool", CALL)
    async with in_process() as client:
        await client.call_tool("save_skill", {"name": "far"}, meta=theirs)
        await client.call_tool("save_skill", {"name": "far", "trace": "mine"}, meta=theirs)
    assert bank.said_recordings[0] == "theirs"
    assert [request.recording for request in bank.saved] == ["theirs", "mine"]


async def test_an_impossible_name_is_refused_before_the_bank_is_asked(in_process, bank):
    async with in_process() as client:
        answer = await client.call_tool("save_skill", {"name": "No Name"})
    assert answer.is_error
    assert bank.saved == []

"""The model that a client lends: asked in both eras, in one round where the era has rounds."""

from __future__ import annotations

from typing import Any

import mcp.types as types
import pytest
from fake_bank import FakeBank
from mcp import Client, MCPError

from server.surface import BankServer

pytestmark = pytest.mark.anyio

PROPOSE: dict[str, Any] = {"task": "propose a plan", "budget_calls": 3}


class Lender:
    """A client's model: says what it was asked, numbered; declines from some answer on."""

    def __init__(self, declines_from: int = 99) -> None:
        self.asked: list[types.CreateMessageRequestParams] = []
        self._declines_from = declines_from

    async def __call__(self, context: Any, params: types.CreateMessageRequestParams) -> Any:
        del context
        self.asked.append(params)
        if len(self.asked) >= self._declines_from:
            return types.ErrorData(code=-1, message="User rejected sampling request")
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(type="text", text=f"plan {len(self.asked)}"),
            model="client-model",
            stop_reason="endTurn",
        )


def client_of(bank: FakeBank, era: str, lender: Lender) -> Client:
    return Client(BankServer(bank), mode=era, read_timeout_seconds=10, sampling_callback=lender)


async def test_a_generation_of_proposals_comes_from_the_client_s_model(bank: FakeBank, era: str):
    lender = Lender()
    async with client_of(bank, era, lender) as client:
        result = await client.call_tool("solve", PROPOSE)
    assert sorted(result.structured_content["outputs"]["said"]) == ["plan 1", "plan 2", "plan 3"]
    assert [params.system_prompt for params in lender.asked] == ["Be brief."] * 3
    assert [params.temperature for params in lender.asked] == [0.0] * 3


async def test_over_every_transport_the_client_s_model_is_reached(connect: Any):
    lender = Lender()
    async with connect(sampling_callback=lender) as client:
        result = await client.call_tool("solve", PROPOSE)
    assert len(result.structured_content["outputs"]["said"]) == 3


async def test_a_client_without_sampling_is_told_what_to_do(bank: FakeBank, era: str):
    async with Client(BankServer(bank), mode=era, read_timeout_seconds=10) as client:
        result = await client.call_tool("solve", PROPOSE)
    assert result.is_error
    text = result.content[0].text
    assert "no MCP client that lends its model is behind this call" in text
    assert "set a model of your own under 'skillbank.models'" in text


async def test_a_user_who_declines_ends_the_call_with_words(bank: FakeBank, era: str):
    async with client_of(bank, era, Lender(declines_from=1)) as client:
        if era == "legacy":
            result = await client.call_tool("solve", PROPOSE)
            assert "the client's user declined" in result.content[0].text
        else:
            with pytest.raises(MCPError, match="User rejected sampling request"):
                await client.call_tool("solve", PROPOSE)


@pytest.mark.legacy_era
async def test_what_a_user_let_through_before_declining_is_used(bank: FakeBank):
    async with client_of(bank, "legacy", Lender(declines_from=3)) as client:
        result = await client.call_tool("solve", PROPOSE)
    assert result.structured_content["outputs"]["said"] == ["plan 1", "plan 2"]


async def test_all_proposals_of_a_generation_are_asked_for_in_one_round(bank: FakeBank):
    async with client_of(bank, "auto", Lender()) as client:
        asked = await client.session.call_tool("solve", PROPOSE, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        assert [*asked.input_requests] == ["answer-1", "answer-2", "answer-3"]
        assert "propose" not in asked.request_state
        answer = types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="mine"), model="m"
        )
        result = await client.session.call_tool(
            "solve",
            PROPOSE,
            allow_input_required=True,
            input_responses={"answer-2": answer},
            request_state=asked.request_state,
        )
    assert result.structured_content["outputs"]["said"] == ["mine"]


async def test_a_tampered_state_is_refused(bank: FakeBank):
    async with client_of(bank, "auto", Lender()) as client:
        asked = await client.session.call_tool("solve", PROPOSE, allow_input_required=True)
        with pytest.raises(MCPError):
            await client.session.call_tool(
                "solve",
                PROPOSE,
                allow_input_required=True,
                input_responses={},
                request_state=asked.request_state[:-4] + "AAAA",
            )

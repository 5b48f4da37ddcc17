"""A task solved with the client's own model: real bank, real tool server, both eras."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import mcp.types as types
import pytest
from mcp import Client

from server.settings import Settings
from server.surface import BankServer
from server.wiring import open_bank

pytestmark = pytest.mark.anyio

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SCENARIO = {
    "tools": [
        {
            "name": "zabra",
            "behaviour": "echo",
            "description": "Quorl the frobnitz.",
            "input_schema": {**TEXT, "additionalProperties": False},
            "output_schema": TEXT,
        }
    ]
}
PLAN = {
    "nodes": [{"tool": "zabra", "id": "n1", "arguments": {"text": "hello"}}],
    "outputs": {"said": "$n1.text"},
}
TASK = {"task": "Have the word hello said back.", "assertions": ["output.said == 'hello'"]}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps(SCENARIO))
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "mcpServers": {
                    "desk": {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)]}
                },
                "skillbank": {"effects": {"desk": {"*": "pure"}}, "models": {"default": "sampling"}},
            }
        )
    )
    return Settings(config, tmp_path / "store.db", environment=dict(os.environ))


async def test_the_client_s_model_plans_what_words_alone_cannot(settings: Settings, era: str):
    asked: list[types.CreateMessageRequestParams] = []

    async def lend(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        del context
        asked.append(params)
        text = types.TextContent(type="text", text=json.dumps(PLAN))
        return types.CreateMessageResult(role="assistant", content=text, model="client-model")

    async with open_bank(settings) as bank:
        client = Client(BankServer(bank), mode=era, read_timeout_seconds=60, sampling_callback=lend)
        async with client:
            result = await client.call_tool("solve", TASK)
    assert result.structured_content["status"] == "verified"
    assert result.structured_content["outputs"] == {"said": "hello"}
    assert "hello" in asked[0].messages[-1].content.text


async def test_a_client_without_a_model_is_told_why_none_planned(settings: Settings, era: str):
    async with (
        open_bank(settings) as bank,
        Client(BankServer(bank), mode=era, read_timeout_seconds=60) as client,
    ):
        result = await client.call_tool("solve", TASK | {"budget_seconds": 5})
    told = f"{result.structured_content} {result.content}"
    assert "no MCP client that lends its model is behind this call" in told
    assert "set a model of your own under 'skillbank.models'" in told


STEPS = (
    {"tool": "zabra", "arguments": {"text": "hello"}},
    {"tool": "finish", "arguments": {"said": "$r1#/text"}},
)


@pytest.mark.parametrize("detail", [False, True], ids=["brief", "detail"])
async def test_the_client_s_model_is_driven_call_by_call(settings: Settings, era: str, detail: bool):
    asked: list[str] = []

    async def lend(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        del context
        said = params.messages[-1].content.text
        asked.append(said)
        text = types.TextContent(type="text", text=json.dumps(STEPS["r1: " in said]))
        return types.CreateMessageResult(role="assistant", content=text, model="client-model")

    options = {"driver": "react", "context": "causal", "steps": 5}
    async with open_bank(settings) as bank:
        client = Client(BankServer(bank), mode=era, read_timeout_seconds=60, sampling_callback=lend)
        async with client:
            result = await client.call_tool("solve", TASK | {"options": options, "detail": detail})
    answer = result.structured_content
    assert (answer["status"], answer["outputs"]) == ("verified", {"said": "hello"})
    assert (answer["drive"]["ended"], answer["drive"]["steps"], answer["drive"]["template"]) == (
        "finished",
        2,
        "causal",
    )
    assert [node["tool"]["tool"] for node in answer["workflow"]["nodes"]] == ["zabra"]
    assert len(answer["drive"]["snapshots"]) == (2 if detail else 0)
    assert "hello" in asked[0]

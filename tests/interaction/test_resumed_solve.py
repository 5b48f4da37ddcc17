"""A job that plans with a model, gone on with after a restart: the model is not asked again."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from catalog.testing.defects import read_log
from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.settings import Settings
from server.surface import BankServer
from server.wiring import open_bank

pytestmark = pytest.mark.anyio

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ZABRA = {
    "name": "zabra",
    "behaviour": "echo",
    "description": "Quorl the frobnitz.",
    "input_schema": {**TEXT, "additionalProperties": False},
    "output_schema": TEXT,
}
PLAN = {
    "nodes": [{"tool": "zabra", "id": "n1", "arguments": {"text": "hello"}}],
    "outputs": {"said": "$n1.text"},
}
TASK = {"task": "Have the word hello said back.", "assertions": ["output.said == 'hello'"]}
SOLVE = {"action": "start", "tool": "solve", "arguments": TASK}


def scenario(settings: Settings, latency_seconds: float) -> None:
    """Say how long the one tool takes from the next start of its server on."""
    told = {
        "tools": [{**ZABRA, "latency_seconds": latency_seconds}],
        "log": str(settings.config_path.with_name("calls.jsonl")),
    }
    settings.config_path.with_name("scenario.json").write_text(json.dumps(told))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    args = ["-m", "catalog.testing", str(tmp_path / "scenario.json")]
    config = {
        "mcpServers": {"desk": {"command": sys.executable, "args": args}},
        "skillbank": {"effects": {"desk": {"*": "pure"}}},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    return Settings(tmp_path / "config.json", tmp_path / "store.db", environment=dict(os.environ))


@asynccontextmanager
async def planned_by(settings: Settings, model: ScriptedBackend) -> AsyncGenerator[Client]:
    """Connect to a skillbank of its own, whose every role this model plays; leaving it is a restart."""
    async with open_bank(settings) as bank:
        bank.context = replace(bank.context, models=with_backend(model))
        async with Client(BankServer(bank), read_timeout_seconds=60) as client:
            yield client


async def structured(client: Client, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool("job", arguments)
    assert result.structured_content is not None, result.content
    return result.structured_content


async def test_a_resumed_solve_takes_the_answers_of_its_model_from_the_record(settings: Settings):
    first = ScriptedBackend([json.dumps(PLAN)] * 9)
    after = ScriptedBackend([])
    log = settings.config_path.with_name("calls.jsonl")
    scenario(settings, latency_seconds=600)
    async with planned_by(settings, first) as client:
        job = (await structured(client, SOLVE))["job"]
        with anyio.fail_after(40):
            while not (log.exists() and any("called" in entry for entry in read_log(log))):
                await anyio.sleep(0.01)
    scenario(settings, latency_seconds=0)
    async with planned_by(settings, after) as client:
        with anyio.fail_after(40):
            while True:
                done = await structured(client, {"action": "poll", "job": job, "wait_seconds": 5})
                if done["status"] not in ("working", "input_required"):
                    break
    assert (done["status"], done["resumed"]) == ("completed", 1), done
    assert done["result"]["outputs"] == {"said": "hello"}
    assert first.requests
    assert after.requests == []

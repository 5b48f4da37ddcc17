"""The bank as it is put together: what it must not store, and which classes it doubts."""

from __future__ import annotations

import json
import os
import sys

import pytest

from catalog.config import load_config
from server.settings import Settings
from server.wiring import open_bank

pytestmark = pytest.mark.anyio


@pytest.fixture
def bank_of(tmp_path):
    def make(servers, own=None, inputs=()):
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"mcpServers": servers, "skillbank": own or {}, "inputs": list(inputs)}))
        return Settings(path, tmp_path / "store.db", environment=dict(os.environ))

    return make


@pytest.fixture
def items(tmp_path):
    scenario = tmp_path / "scenario.json"
    scenario.write_text(
        json.dumps({"tools": [{"name": "get_x"}, {"name": "get_y"}], "log": str(tmp_path / "log")})
    )
    return {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)]}


async def test_trials_of_reset_modes_are_told(bank_of, items):
    check = {"mode": "process", "verdict": "holds", "on": "2026-11-30", "why": "seen"}
    async with open_bank(bank_of({"s": items}, {"reset_checks": {"s": check}})) as bank:
        report = await bank.list_effects()
    assert report.reset_checks == {"s": "process holds, tried on 2026-11-30: seen"}


async def test_hidden_answers_and_tokens_are_never_shown(bank_of, items):
    key = {"type": "promptString", "id": "key", "password": True}
    zone = {"type": "promptString", "id": "zone"}
    servers = {
        "s": {**items, "env": {"K": "${input:key}"}, "args": [*items["args"], "${input:zone}"]},
        "far": {"url": "http://127.0.0.1:1/mcp"},
    }
    settings = bank_of(servers, inputs=[key, zone])
    inputs = load_config(settings.config_path).inputs
    secrets = settings.open_secrets()
    secrets.put(inputs["key"].key, "hidden-answer")
    secrets.put(inputs["zone"].key, "plain-answer")
    login = {"tokens": {"access_token": "access-token", "refresh_token": "refresh-token"}}
    secrets.put("login to http://127.0.0.1:1/mcp", json.dumps(login))
    async with open_bank(settings) as bank:
        await bank.context.snapshot()
        shown = bank.context.redact("hidden-answer plain-answer access-token refresh-token")
    assert shown == "[redacted] plain-answer [redacted] [redacted]"


async def test_an_input_that_is_not_answered_stops_its_server_alone(bank_of, items):
    asked = {"type": "promptString", "id": "key", "description": "API key"}
    servers = {"s": items, "t": {**items, "env": {"K": "${input:key}"}}}
    async with open_bank(bank_of(servers, inputs=[asked])) as bank:
        report = await bank.doctor()
    found = {server.name: server for server in report.servers}
    assert found["s"].status == "ok"
    assert found["t"].status == "unreachable"
    assert "input 'key' (API key) is not answered: skillbank inputs set key" in found["t"].problems[0]

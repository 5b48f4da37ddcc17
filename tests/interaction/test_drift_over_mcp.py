"""Tool servers in processes of their own that change under a serving bank, and what its clients learn."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp.types as types
import pytest
from mcp import Client

from catalog.testing.defects import defect_command
from catalog.tools import ToolId
from server.bank import Bank
from server.requests import RepairRequest
from server.settings import Settings
from server.surface import BankServer
from server.verification import Checks
from server.wiring import open_bank

pytestmark = pytest.mark.anyio

SAY = ToolId("desk", "say")
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
LOUD = {**TEXT, "properties": {**TEXT["properties"], "loud": {"type": "boolean"}}}


def say(schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": "say", "behaviour": "echo", "input_schema": schema, "output_schema": TEXT}


SCENARIO: dict[str, Any] = {
    "tools": [
        say(TEXT),
        {"name": "swap", "behaviour": "changes"},
        {"name": "leave", "answers": [{"$vanish": True}]},
    ],
    "then": [say(LOUD), {"name": "swap", "behaviour": "changes"}],
}
DOCUMENT = {
    "name": "said",
    "inputs": TEXT,
    "nodes": [
        {"id": "say", "tool": {"server": "desk", "tool": "say"}, "arguments": {"text": "$inputs.text"}}
    ],
    "outputs": {"said": "$nodes.say.output#/text"},
}
Open = Callable[..., AbstractAsyncContextManager[Bank]]


@pytest.fixture
def open_serving_bank(tmp_path: Path, era: str) -> Open:
    """Open a bank over a scripted server that speaks the era of the test, with the skill `say_it`."""

    @asynccontextmanager
    async def opened(**more: Any) -> AsyncGenerator[Bank]:
        scenario = tmp_path / "scenario.json"
        scenario.write_text(json.dumps({**SCENARIO, **more}))
        desk = {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)]}
        config = tmp_path / "config.json"
        own = {"effects": {"desk": {"*": "pure"}}}
        config.write_text(json.dumps({"mcpServers": {"desk": desk}, "skillbank": own}))
        settings = Settings(config, tmp_path / "store.db", environment=dict(os.environ))
        with anyio.fail_after(60):
            async with open_bank(settings) as bank:
                if era == "legacy":
                    bank.context.connections.remember_era("desk", "legacy")
                request = RepairRequest(
                    task="say hi",
                    inputs={"text": "hi"},
                    checks=Checks(("output.said == 'hi'",)),
                    save="say_it",
                )
                learned = await bank.repair(DOCUMENT, request)
                assert learned.skill_state == "active", learned.skill_reason
                yield bank

    return opened


async def until_stale(bank: Bank) -> None:
    """Wait until the skill is stale, which nothing but the bank itself brings about."""
    while (await bank.describe_skill("say_it")).state != "stale":
        await anyio.sleep(0.01)


async def test_a_client_sees_a_skill_go_when_the_server_announces_another_contract(open_serving_bank, era):
    changed = anyio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    async with (
        open_serving_bank() as bank,
        Client(BankServer(bank), mode=era, message_handler=hear) as client,
    ):
        before = {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
        async with anyio.create_task_group() as tasks:
            if era != "legacy":
                tasks.start_soon(_listen, client, changed)
            await bank.call_tool(ToolId("desk", "swap"), {})
            await changed.wait()
            tasks.cancel_scope.cancel()
        after = {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
        (desk,) = json.loads(await read(client, "catalog://servers"))["servers"]
    assert before - after == {"say_it"}
    assert desk["changes"] == ["gone: leave; changed: say"]


async def _listen(client: Client, changed: anyio.Event) -> None:
    async with client.listen(tools_list_changed=True) as events:
        async for _ in events:
            changed.set()


async def test_a_server_that_comes_back_otherwise_makes_skills_stale_when_it_is_back(
    open_serving_bank, tmp_path
):
    async with open_serving_bank() as bank:
        scenario = {**SCENARIO, "tools": [{"name": "other"}]}
        (tmp_path / "scenario.json").write_text(json.dumps(scenario))
        await bank.call_tool(ToolId("desk", "leave"), {})
        await bank.call_tool(ToolId("desk", "other"), {})
        await until_stale(bank)
        assert (await bank.describe_skill("say_it")).reason == "desk/say is gone"


@pytest.mark.parametrize("era", ["auto"])  # a list of the handshake era does not say how long it lasts
@pytest.mark.usefixtures("era")
async def test_a_list_that_says_how_long_it_lasts_is_read_again_then(open_serving_bank):
    async with open_serving_bank(ttl_ms=100, announces=False) as bank:
        await bank.call_tool(ToolId("desk", "swap"), {})
        await until_stale(bank)


async def read(client: Client, uri: str) -> str:
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, types.TextResourceContents)
    return contents.text


async def test_the_resource_of_a_sick_server_names_what_doctor_names(tmp_path: Path, era: str):
    command, args = defect_command("hostile_schemas")
    dead, dead_args = defect_command("dies_at_start")
    servers = {
        "bomb": {"command": command, "args": list(args)},
        "dead": {"command": dead, "args": list(dead_args)},
    }
    (tmp_path / "config.json").write_text(json.dumps({"mcpServers": servers}))
    settings = Settings(tmp_path / "config.json", tmp_path / "store.db", environment=dict(os.environ))
    async with open_bank(settings) as bank, Client(BankServer(bank), mode=era) as client:
        idle = json.loads(await read(client, "catalog://servers"))["servers"]
        await bank.doctor()
        listed = json.loads(await read(client, "catalog://servers"))["servers"]
        one = json.loads(await read(client, "catalog://servers/bomb"))
    assert [server["status"] for server in idle] == ["idle", "idle"]
    assert [(server["name"], server["status"]) for server in listed] == [
        ("bomb", "problems"),
        ("dead", "unreachable"),
    ]
    assert "no database at /nowhere" in listed[1]["problems"][0]
    assert one["quarantined"]["bottomless"] == "output schema: schema is nested deeper than 64"
    assert [(tool["name"], tool["effect"]) for tool in one["usable_tools"]] == [("good", "unknown")]

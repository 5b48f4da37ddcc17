"""Admin tools: only listed where asked for, asked about first, and in effect at once."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp.types as types
import pytest
from mcp import Client, MCPError

from server.settings import Settings
from server.surface import BankServer
from server.surface.names import ADMIN_NAMES
from server.surface_options import SurfaceOptions
from server.wiring import open_bank

pytestmark = pytest.mark.anyio
ADMIN = SurfaceOptions(admin=True)
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {}, "other": {"kept": True}}))
    return Settings(config, tmp_path / "store.db", environment=dict(os.environ))


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    scenario = tmp_path / "scenario.json"
    tools = [{"name": "say", "behaviour": "echo", "input_schema": TEXT, "output_schema": TEXT}]
    scenario.write_text(json.dumps({"tools": tools}))
    return [sys.executable, "-m", "catalog.testing", str(scenario)]


def answering(decision: str, asked: list[str]) -> Any:
    async def answer(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        del context
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": decision})

    return answer


async def test_they_are_listed_only_with_admin(settings: Settings):
    async with open_bank(settings) as bank:
        for admin in (False, True):
            async with Client(BankServer(bank, SurfaceOptions(admin=admin))) as client:
                names = {tool.name for tool in (await client.list_tools()).tools}
                assert (set(ADMIN_NAMES) <= names) == admin
                if not admin:
                    with pytest.raises(MCPError, match="Unknown tool"):
                        await client.call_tool("remove_server", {"name": "x"})


async def test_a_server_is_added_after_a_yes_used_at_once_classified_and_removed(
    settings: Settings, command: list[str]
):
    asked: list[str] = []
    say = {"server": "desk", "tool": "say", "arguments": {"text": "hi"}}
    async with open_bank(settings) as bank:
        options: dict[str, Any] = {"elicitation_callback": answering("allow this call", asked)}
        async with Client(BankServer(bank, ADMIN), read_timeout_seconds=60, **options) as client:
            added = await client.call_tool("add_server", {"name": "desk", "command": command})
            assert added.structured_content is not None, added.content
            assert (added.structured_content["status"], added.structured_content["tools"]) == ("ok", 1)
            assert (await client.call_tool("call_tool", say)).structured_content == {"text": "hi"}
            await client.call_tool("set_effect", {"server": "desk", "tool": "*", "effect": "read"})
            (tool,) = (await client.call_tool("find_tools", {"query": "say"})).structured_content["tools"]
            assert tool["effect"] == "read"
            twice = await client.call_tool("add_server", {"name": "desk", "command": command})
            assert twice.is_error
            await client.call_tool("remove_server", {"name": "desk"})
            assert (await client.call_tool("call_tool", say)).is_error
    assert len(asked) == 2
    assert all(json.dumps(word) in asked[0] for word in command)
    document = json.loads(settings.config_path.read_text())
    assert document["mcpServers"] == {}
    assert document["other"] == {"kept": True}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({}, "Nobody could be asked", id="a-client-that-cannot-ask"),
        pytest.param({"elicitation_callback": answering("refuse", [])}, "said no", id="a-no"),
    ],
)
async def test_nothing_is_started_without_a_yes(
    settings: Settings, command: list[str], options: dict[str, Any], said: str
):
    async with (
        open_bank(settings) as bank,
        Client(BankServer(bank, ADMIN), **options) as client,
    ):
        result = await client.call_tool("add_server", {"name": "desk", "command": command})
        assert result.is_error
        assert said in result.content[0].text
    assert json.loads(settings.config_path.read_text())["mcpServers"] == {}


async def test_what_waits_is_listed_and_a_wrong_name_is_told(settings: Settings):
    async with open_bank(settings) as bank, Client(BankServer(bank, ADMIN)) as client:
        assert (await client.call_tool("review_skill", {})).structured_content == {"waiting": []}
        for tool, arguments in (
            ("review_skill", {"name": "x", "decision": "approve"}),
            ("roll_back_skill", {"name": "x", "version": 1}),
            ("remove_server", {"name": "x"}),
            ("explore_server", {"name": "x"}),
            ("set_effect", {"server": "x", "tool": "*", "effect": "read"}),
        ):
            assert (await client.call_tool(tool, arguments)).is_error, tool


async def test_a_server_is_explored_after_a_yes_with_progress_and_within_its_budget(
    settings: Settings, command: list[str]
):
    asked: list[str] = []
    seen: list[tuple[float, float | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        del message
        seen.append((done, total))

    _explorable(settings, command)
    options: dict[str, Any] = {"elicitation_callback": answering("allow this call", asked)}
    async with (
        open_bank(settings) as bank,
        Client(BankServer(bank, ADMIN), read_timeout_seconds=60, **options) as client,
    ):
        wanted = {"name": "desk", "budget_calls": 20, "tasks": 1}
        explored = await client.call_tool("explore_server", wanted, progress_callback=note)
    report = explored.structured_content
    assert report is not None, explored.content
    assert (report["server"], report["coverage"]["called"], report["coverage"]["tools"]) == ("desk", 1, 1)
    assert 0 < report["calls"] <= 20
    assert len(asked) == 1
    assert all(said in asked[0] for said in ("explore_server", "say (read)", '"budget_calls": 20'))
    assert seen
    assert {total for _, total in seen} == {20.0}


async def test_nothing_of_a_server_is_called_without_a_yes(settings: Settings, command: list[str]):
    log = _explorable(settings, command)
    async with open_bank(settings) as bank, Client(BankServer(bank, ADMIN)) as client:
        refused = await client.call_tool("explore_server", {"name": "desk"})
    assert refused.is_error
    assert refused.meta["io.skillbank/error"] == "not_approved"
    assert "skillbank explore desk" in refused.content[0].text
    assert not log.exists() or "called" not in log.read_text()


async def test_an_exploration_is_a_job_that_waits_for_the_person(settings: Settings, command: list[str]):
    asked: list[str] = []
    _explorable(settings, command)
    options: dict[str, Any] = {"elicitation_callback": answering("allow this call", asked)}
    async with (
        open_bank(settings) as bank,
        Client(BankServer(bank, ADMIN), read_timeout_seconds=60, **options) as client,
    ):
        start = {
            "action": "start",
            "tool": "explore_server",
            "arguments": {"name": "desk", "budget_calls": 20},
        }
        job = (await client.call_tool("job", start)).structured_content["job"]
        with anyio.fail_after(60):
            while True:
                polled = await client.call_tool("job", {"action": "poll", "job": job, "wait_seconds": 5})
                now = polled.structured_content
                if now["status"] not in ("working", "input_required"):
                    break
        at_once = await client.call_tool(
            "job", {"action": "start", "tool": "remove_server", "arguments": {"name": "desk"}}
        )
    assert now["status"] == "completed", now
    assert now["result"]["coverage"]["called"] == 1
    assert now["total"] == 20
    assert len(asked) == 1
    assert at_once.is_error


def _explorable(settings: Settings, command: list[str]) -> Path:
    """Configure the server with a tool that only reads; return the log of its calls."""
    scenario = Path(command[-1])
    log = scenario.with_name("calls.jsonl")
    scenario.write_text(json.dumps({**json.loads(scenario.read_text()), "log": str(log)}))
    server = {"command": command[0], "args": command[1:]}
    own = {"effects": {"desk": {"*": "read"}}}
    settings.config_path.write_text(json.dumps({"mcpServers": {"desk": server}, "skillbank": own}))
    return log

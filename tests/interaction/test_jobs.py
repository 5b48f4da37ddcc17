"""Jobs: long calls that outlive their client and a restart, and repeat nothing that is finished."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp.types as types
import pytest
from mcp import Client
from pydantic import ConfigDict, Field

from catalog.testing.defects import read_log
from server.settings import Settings
from server.surface import BankServer
from server.wiring import open_bank

pytestmark = pytest.mark.anyio
TASKS = "io.modelcontextprotocol/tasks"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": name, "behaviour": "echo", "input_schema": TEXT, "output_schema": TEXT, "latency_seconds": late}
    for name, late in (("say", 0), ("post", 0), ("late", 1.5), ("post_late", 1.5), ("never", 600))
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


@pytest.fixture
def settings(tmp_path: Path, log: Path) -> Settings:
    scenario, config = tmp_path / "scenario.json", tmp_path / "config.json"
    scenario.write_text(json.dumps({"tools": TOOLS, "log": str(log)}))
    server = {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)]}
    own = {"effects": {"desk": {"post*": "write", "*": "read"}}, "allow": {"desk": ["post_late"]}}
    config.write_text(json.dumps({"mcpServers": {"desk": server}, "skillbank": own}))
    return Settings(config, tmp_path / "store.db", environment=dict(os.environ))


@asynccontextmanager
async def connected(settings: Settings, **options: Any) -> AsyncGenerator[Client]:
    """Connect to a skillbank of its own: leaving it is a restart."""
    options = {"mode": "auto", "read_timeout_seconds": 60, **options}
    async with open_bank(settings) as bank, Client(BankServer(bank), **options) as client:
        yield client


def steps(*tools: str) -> dict[str, Any]:
    """Return a workflow that calls these tools one after the other."""
    names = [f"s{n}" for n in range(len(tools))]
    nodes = [
        {
            "id": name,
            "tool": {"server": "desk", "tool": tool},
            "arguments": {"text": "$inputs.text"},
            **({"after": [names[n - 1]]} if n else {}),
        }
        for n, (name, tool) in enumerate(zip(names, tools, strict=True))
    ]
    return {
        "name": "steps",
        "inputs": TEXT,
        "nodes": nodes,
        "outputs": {"said": f"$nodes.{names[-1]}.output#/text"},
    }


def running(*tools: str) -> dict[str, Any]:
    return {"tool": "run_workflow", "arguments": {"workflow": steps(*tools), "inputs": {"text": "a"}}}


async def called(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert result.structured_content is not None, result.content
    return result.structured_content


async def ended(client: Client, job: str) -> dict[str, Any]:
    with anyio.fail_after(40):
        while True:
            now = await called(client, "job", {"action": "poll", "job": job, "wait_seconds": 5})
            if now["status"] not in ("working", "input_required"):
                return now


async def arrived(log: Path, tool: str, count: int = 1, event: str = "called") -> None:
    with anyio.fail_after(30):
        while calls(log, tool, event) < count:
            await anyio.sleep(0.01)


def calls(log: Path, tool: str, event: str = "called") -> int:
    return sum(event in entry and entry["tool"] == tool for entry in read_log(log)) if log.exists() else 0


async def test_a_job_goes_on_after_its_client_and_its_process_ended(settings: Settings, log: Path):
    async with connected(settings) as client:
        job = (
            await called(client, "job", {"action": "start", **running("say", "post_late", "never", "say")})
        )["job"]
        await arrived(log, "never")
    settings_after = shortened(settings)
    async with connected(settings_after) as client:
        done = await ended(client, job)
    assert done["status"] == "completed", done
    assert done["result"]["outputs"] == {"said": "a"}
    assert done["resumed"] == 1
    counted = {tool: calls(log, tool) for tool in ("say", "post_late", "never")}
    # The read that was under way is made again; what was finished is not; the last step is made first now.
    assert counted == {"say": 2, "post_late": 1, "never": 2}


def shortened(settings: Settings) -> Settings:
    """Let the tool that never answered answer from now on."""
    scenario = settings.config_path.parent / "scenario.json"
    told = json.loads(scenario.read_text())
    told["tools"] = [{**tool, "latency_seconds": 0} for tool in told["tools"]]
    scenario.write_text(json.dumps(told))
    return settings


async def test_a_write_that_was_under_way_is_never_sent_again(settings: Settings, log: Path):
    async with connected(settings) as client:
        job = (await called(client, "job", {"action": "start", **running("say", "post_late", "say")}))["job"]
        await arrived(log, "post_late")
    async with connected(settings) as client:
        done = await ended(client, job)
    assert done["status"] == "failed"
    assert "may have run" in json.dumps(done["result"])
    assert calls(log, "post_late") == 1


async def test_a_relayed_write_is_not_repeated_either(settings: Settings, log: Path):
    relay = {"server": "desk", "tool": "post_late", "arguments": {"text": "a"}}
    async with connected(settings) as client:
        job = (await called(client, "job", {"action": "start", "tool": "call_tool", "arguments": relay}))[
            "job"
        ]
        await arrived(log, "post_late")
    async with connected(settings) as client:
        assert (await ended(client, job))["status"] == "failed"
    assert calls(log, "post_late") == 1


async def test_cancelling_a_job_reaches_the_upstream_within_a_second(settings: Settings, log: Path):
    async with connected(settings) as client:
        job = (await called(client, "job", {"action": "start", **running("never")}))["job"]
        await arrived(log, "never")
        with anyio.fail_after(1):
            await called(client, "job", {"action": "cancel", "job": job})
            while calls(log, "never", "cancelled") == 0:
                await anyio.sleep(0.01)
        assert (await ended(client, job))["status"] == "cancelled"
    async with connected(settings) as client:
        assert (await called(client, "job", {"action": "poll", "job": job}))["status"] == "cancelled"


async def test_another_process_sees_a_job_and_cancels_it_within_a_second(settings: Settings, log: Path):
    async with connected(settings) as client, connected(settings) as other:
        job = (await called(client, "job", {"action": "start", **running("never")}))["job"]
        await arrived(log, "never")
        assert [kept["job"] for kept in (await called(other, "job", {"action": "poll"}))["jobs"]] == [job]
        with anyio.fail_after(1):
            await called(other, "job", {"action": "cancel", "job": job})
            while calls(log, "never", "cancelled") == 0:
                await anyio.sleep(0.01)


async def test_progress_has_a_total_and_grows(settings: Settings):
    async with connected(settings) as client:
        job = (await called(client, "job", {"action": "start", **running("late", "late")}))["job"]
        seen = []
        with anyio.fail_after(30):
            while not seen or seen[-1]["status"] == "working":
                seen.append(await called(client, "job", {"action": "poll", "job": job, "wait_seconds": 5}))
    assert {moment["total"] for moment in seen} == {2}
    done = [moment["done"] for moment in seen]
    assert done == sorted(done)
    assert done[-1] >= 2


async def test_whoever_looks_at_a_job_is_asked_and_the_job_waits(settings: Settings, log: Path):
    asked: list[str] = []

    async def answer(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        del context
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "allow this call"})

    async with connected(settings, elicitation_callback=answer) as client:
        job = (await called(client, "job", {"action": "start", **running("post")}))["job"]
        with anyio.fail_after(20):
            while (await called(client, "job", {"action": "poll", "job": job, "wait_seconds": 1}))[
                "status"
            ] == "working":
                pass
        assert (await ended(client, job))["status"] == "completed"
    assert len(asked) == 1
    assert all(said in asked[0] for said in ("desk/post", "write", '"text": "a"'))
    assert calls(log, "post") == 1


async def test_a_client_that_cannot_ask_is_told_what_needs_approval(settings: Settings, log: Path):
    async with connected(settings) as client:
        job = (await called(client, "job", {"action": "start", **running("post")}))["job"]
        done = await ended(client, job)
    assert (done["status"], done["result"]["status"]) == ("failed", "needs_approval")
    assert calls(log, "post") == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param({"tool": "run_workflow", "arguments": {}}, "workflow", id="wrong-arguments"),
        pytest.param({"tool": "job", "arguments": {"action": "poll"}}, "at once", id="a-job-of-a-job"),
        pytest.param({"tool": "solve", "arguments": {"task": "x"}, "keep_seconds": 1}, "60", id="too-short"),
    ],
)
async def test_what_cannot_be_a_job_is_refused_with_what_would_be_right(
    settings: Settings, arguments: dict[str, Any], said: str
):
    async with connected(settings) as client:
        result = await client.call_tool("job", {"action": "start", **arguments})
        missing = await client.call_tool("job", {"action": "poll", "job": "none"})
        unknown = await client.call_tool("job", {"action": "start", "tool": "paint"})
    assert result.is_error
    assert said in result.content[0].text
    assert missing.is_error
    assert unknown.content[0].text.startswith("Unknown tool: paint")


class _TaskParams(types.RequestParams):
    model_config = ConfigDict(populate_by_name=True)
    task_id: str = Field(alias="taskId")


async def test_a_client_that_declares_tasks_gets_one_and_follows_it(settings: Settings, log: Path):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
    }
    async with open_bank(settings) as bank:
        raw = _Raw(BankServer(bank), meta)
        async with raw.open():
            call = {"name": "run_workflow", "arguments": running("late", "say")["arguments"]}
            task = await raw.ask("tools/call", call)
            assert (task["resultType"], task["status"]) == ("task", "working")
            assert task["ttlMs"] == 86_400_000
            with anyio.fail_after(20):
                while (now := await raw.ask("tasks/get", {"taskId": task["taskId"]}))["status"] == "working":
                    await anyio.sleep(0.05)
            assert now["status"] == "completed"
            assert now["result"]["structuredContent"]["outputs"] == {"said": "a"}
            never = await raw.ask("tools/call", {**call, "arguments": running("never")["arguments"]})
            await arrived(log, "never")
            await raw.ask("tasks/cancel", {"taskId": never["taskId"]})
            await arrived(log, "never", event="cancelled")
            error = await raw.ask("tasks/get", {"taskId": "other"})
            assert error["code"] == types.INVALID_PARAMS
            raw.meta = {**meta, "io.modelcontextprotocol/clientCapabilities": {}}
            refused = await raw.ask("tasks/get", {"taskId": task["taskId"]})
            assert refused["code"] == types.MISSING_REQUIRED_CLIENT_CAPABILITY


class _Raw:
    """Speaks JSON-RPC with a server object over memory streams, as a client without the SDK would."""

    def __init__(self, server: BankServer, meta: dict[str, Any]) -> None:
        self.server, self.meta = server, meta
        self._number = 0

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        from mcp.shared.memory import create_client_server_memory_streams

        async with (
            create_client_server_memory_streams() as ((self._read, self._write), (theirs, ours)),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self.server.run, theirs, ours, self.server.create_initialization_options())
            yield
            tasks.cancel_scope.cancel()

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        from mcp.shared.message import SessionMessage
        from mcp.types import JSONRPCRequest

        self._number += 1
        request = JSONRPCRequest(
            jsonrpc="2.0", id=self._number, method=method, params={**params, "_meta": self.meta}
        )
        await self._write.send(SessionMessage(request))
        with anyio.fail_after(20):
            while True:
                told = (await self._read.receive()).message.model_dump(by_alias=True, exclude_none=True)
                if told.get("id") == self._number:
                    return told.get("result") or told["error"]

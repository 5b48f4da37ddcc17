"""The real bank behind the surface, over a real tool server in a process of its own."""

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
from fake_bank import served_over_http
from mcp import Client, StdioServerParameters

from catalog.testing.defects import read_log
from server.settings import Settings
from server.surface import BankServer
from server.wiring import open_bank

pytestmark = pytest.mark.anyio

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
RICH = {
    "structured": {"n": [1, None, "x"]},
    "content": [
        {"type": "text", "text": "one", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
    ],
    "meta": {"upstream.example/key": {"n": 1}},
}
SCENARIO: dict[str, Any] = {
    "tools": [
        {
            "name": "say",
            "behaviour": "echo",
            "description": "Say a text.",
            "input_schema": {**TEXT, "additionalProperties": False},
            "output_schema": TEXT,
        },
        {"name": "rich", "answers": [{"$reply": RICH}]},
        {"name": "fails", "answers": [{"$reply": {"content": RICH["content"], "is_error": True}}]},
        {"name": "slow", "behaviour": "echo", "latency_seconds": 60, "progress": [[1, 2, "on it"]]},
        {"name": "post", "behaviour": "echo", "input_schema": TEXT, "output_schema": TEXT},
    ]
}
Connect = Callable[..., AbstractAsyncContextManager[Client]]


def node(tool: str, argument: str = "text") -> dict[str, Any]:
    return {
        "id": tool,
        "tool": {"server": "desk", "tool": tool},
        "arguments": {argument: "$inputs.text"},
    }


def workflow(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "said",
        "inputs": TEXT,
        "nodes": [*nodes],
        "outputs": {"said": f"$nodes.{nodes[-1]['id']}.output#/text"},
    }


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


@pytest.fixture
def upstream(tmp_path: Path, log: Path) -> list[str]:
    """Arguments that start the tool server."""
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({**SCENARIO, "log": str(log)}))
    return ["-m", "catalog.testing", str(scenario)]


@pytest.fixture
def settings(tmp_path: Path, upstream: list[str]) -> Settings:
    config = tmp_path / "config.json"
    effects = {"desk": {"post": "write", "*": "pure"}}
    config.write_text(
        json.dumps(
            {
                "mcpServers": {"desk": {"command": sys.executable, "args": upstream}},
                "skillbank": {"effects": effects},
            }
        )
    )
    return Settings(config, tmp_path / "store.db", environment=dict(os.environ))


@pytest.fixture
def open_client(settings: Settings, era: str) -> Connect:
    """Connect in process, or over HTTP where cancellation and progress have further to go."""

    @asynccontextmanager
    async def connected(*, http: bool = False, **options: Any) -> AsyncGenerator[Client]:
        options = {"mode": era, "read_timeout_seconds": 30, **options}
        async with open_bank(settings) as bank:
            if not http:
                async with Client(BankServer(bank), **options) as client:
                    yield client
            else:
                async with served_over_http(bank) as url, Client(url, **options) as client:
                    yield client

    return connected


def calls_of(log: Path, tool: str, event: str = "called") -> int:
    return sum(event in entry and entry["tool"] == tool for entry in read_log(log))


@pytest.mark.parametrize("tool", ["rich", "fails", "say"])
async def test_a_relayed_answer_equals_the_direct_one(
    open_client: Connect, upstream: list[str], era: str, tool: str
):
    arguments = {"text": "hi"}
    program = StdioServerParameters(command=sys.executable, args=upstream, env=dict(os.environ))
    async with Client(program, mode=era) as client:
        direct = await client.call_tool(tool, arguments)
    async with open_client() as client:
        relayed = await client.call_tool(
            "call_tool", {"server": "desk", "tool": tool, "arguments": arguments}
        )
    assert relayed.meta is not None
    ours = {key: value for key, value in relayed.meta.items() if not key.startswith("io.skillbank/")}
    stamp = "io.modelcontextprotocol/serverInfo"
    assert len(relayed.meta["io.skillbank/trace"]) == 32
    assert {**ours, stamp: None} == {**(direct.meta or {}), stamp: None}
    assert relayed.model_copy(update={"meta": None}) == direct.model_copy(update={"meta": None})


async def test_a_modern_answer_is_stamped_with_the_server_that_gave_it(open_client: Connect, era: str):
    async with open_client() as client:
        relayed = await client.call_tool("call_tool", {"server": "desk", "tool": "rich"})
    assert relayed.meta is not None
    stamp = relayed.meta.get("io.modelcontextprotocol/serverInfo")
    assert stamp is None if era == "legacy" else stamp["name"] == "skillbank"


async def test_progress_and_cancellation_pass_between_client_and_upstream(open_client: Connect, log: Path):
    seen: list[tuple[float, float | None, str | None]] = []
    async with open_client(http=True) as client, anyio.create_task_group() as tasks:
        started = anyio.Event()

        async def note(done: float, total: float | None, message: str | None) -> None:
            seen.append((done, total, message))
            started.set()

        async def call() -> None:
            with stop:
                await client.call_tool(
                    "call_tool", {"server": "desk", "tool": "slow"}, progress_callback=note
                )

        stop = anyio.CancelScope()
        tasks.start_soon(call)
        with anyio.fail_after(20):
            await started.wait()
        stop.cancel()
        with anyio.fail_after(1):
            while calls_of(log, "slow", "cancelled") == 0:
                await anyio.sleep(0.01)
    assert seen == [(1.0, 2.0, "on it")]


async def test_cancelling_a_workflow_reaches_the_upstream(open_client: Connect, log: Path):
    document = workflow({**node("slow"), "id": "slow"})
    async with open_client(http=True) as client, anyio.create_task_group() as tasks:
        stop = anyio.CancelScope()

        async def call() -> None:
            with stop:
                await client.call_tool("run_workflow", {"workflow": document, "inputs": {"text": "a"}})

        tasks.start_soon(call)
        with anyio.fail_after(20):
            while calls_of(log, "slow") == 0:
                await anyio.sleep(0.01)
        stop.cancel()
        with anyio.fail_after(1):
            while calls_of(log, "slow", "cancelled") == 0:
                await anyio.sleep(0.01)


async def test_a_repaired_workflow_becomes_a_listed_tool(open_client: Connect):
    request = {
        "workflow": workflow(node("say", "txet")),
        "inputs": {"text": "hi"},
        "task": "say the text",
        "assertions": ["output.said == 'hi'"],
        "save_as": "say_it",
    }
    async with open_client() as client:
        repaired = await client.call_tool("repair_workflow", request)
        listed = await client.list_tools(cache_mode="bypass")
        result = await client.call_tool("say_it", {"text": "other"})
    report = repaired.structured_content
    assert (report["status"], report["skill"], report["skill_state"]) == ("verified", "say_it", "active"), (
        report
    )
    assert "say_it" in [tool.name for tool in listed.tools]
    assert result.structured_content == {"said": "other"}


@pytest.mark.parametrize(
    ("decision", "posts"),
    [
        pytest.param("allow this call", 1, id="allowed"),
        pytest.param("refuse", 0, id="refused"),
        pytest.param(None, 0, id="nobody-to-ask"),
    ],
)
async def test_a_write_needs_the_persons_word_and_runs_once(
    open_client: Connect, log: Path, decision: str | None, posts: int
):
    asked: list[str] = []

    async def person(context: Any, params: Any) -> types.ElicitResult:
        del context
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": decision})

    options = {} if decision is None else {"elicitation_callback": person}
    document = workflow(node("say"), node("post"))
    async with open_client(http=True, **options) as client:
        result = await client.call_tool("run_workflow", {"workflow": document, "inputs": {"text": "hi"}})
    assert result.is_error is (posts == 0), result.structured_content
    assert calls_of(log, "post") == posts
    assert len(asked) == (decision is not None)


async def test_a_malformed_document_is_answered_with_its_faults(open_client: Connect):
    document = {**workflow(node("say")), "retries": 3}
    async with open_client() as client:
        result = await client.call_tool("run_workflow", {"workflow": document, "inputs": {"text": "hi"}})
    assert result.is_error is True
    assert "unknown field 'retries'" in result.content[0].text
    assert "/retries" in result.content[0].text


async def test_an_outcome_is_kept_with_the_trace_of_a_relayed_call(open_client: Connect):
    async with open_client() as client:
        relayed = await client.call_tool(
            "call_tool", {"server": "desk", "tool": "say", "arguments": {"text": "a"}}
        )
        assert relayed.meta is not None
        outcome = {"trace_id": relayed.meta["io.skillbank/trace"], "passed": True}
        result = await client.call_tool("report_outcome", outcome)
    assert result.is_error is False
    assert result.structured_content["passed"] is True


async def test_what_was_called_by_hand_becomes_a_tool(open_client: Connect):
    said = {"server": "desk", "tool": "say", "arguments": {"text": "hi there"}}
    async with open_client() as client:
        await client.call_tool("call_tool", said)
        saved = await client.call_tool("save_skill", {"name": "greeting", "inputs": {"words": "hi there"}})
        given = {"name": "greeting", "arguments": {"words": "good day"}}
        again = await client.call_tool("call_skill", given)
    assert saved.structured_content["skill"]["state"] == "active", saved.structured_content
    assert again.structured_content["outputs"] == {"text": "good day"}

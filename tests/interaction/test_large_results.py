"""Answers of megabytes through the whole bank: from a tool server's process to a client and back."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp.types as types
import pytest
from mcp import Client

from catalog.result import CallFailure, FailureKind
from catalog.testing.defects import defect_command
from catalog.tools import ToolId
from server.bank import Bank
from server.requests import RepairRequest
from server.settings import Settings
from server.surface import BankServer
from server.verification import Checks
from server.wiring import open_bank

pytestmark = pytest.mark.anyio

MEGABYTE = 1_000_000
Connect = Callable[..., AbstractAsyncContextManager[tuple[Client, Bank]]]


def entry(defect: str) -> dict[str, Any]:
    command, args = defect_command(defect)
    return {"command": command, "args": list(args)}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    servers = {"text": entry("huge_answer"), "rows": entry("many_rows"), "small": entry("none")}
    config = tmp_path / "config.json"
    effects = {"text": {"*": "pure"}, "rows": {"*": "pure"}, "small": {"*": "pure"}}
    config.write_text(json.dumps({"mcpServers": servers, "skillbank": {"effects": effects}}))
    return Settings(config, tmp_path / "store.db", environment=dict(os.environ))


@pytest.fixture
def opened(settings: Settings, era: str) -> Connect:
    @asynccontextmanager
    async def connected() -> AsyncGenerator[tuple[Client, Bank]]:
        with anyio.fail_after(300):
            async with (
                open_bank(settings) as bank,
                Client(BankServer(bank), mode=era, read_timeout_seconds=200) as client,
            ):
                yield client, bank

    return connected


async def call(client: Client, server: str, **arguments: Any) -> types.CallToolResult:
    asked = {"server": server, "tool": "good", "arguments": arguments}
    return await client.call_tool("call_tool", asked)


def link_of(result: types.CallToolResult) -> types.ResourceLink:
    (link,) = [block for block in result.content if isinstance(block, types.ResourceLink)]
    return link


async def read(client: Client, uri: str) -> str:
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, types.TextResourceContents)
    return contents.text


async def test_a_client_gets_a_preview_and_a_link_and_others_go_on_meanwhile(opened: Connect):
    async with opened() as (client, bank):
        await call(client, "small")
        answered: list[types.CallToolResult] = []
        meanwhile = 0

        async def call_the_large() -> None:
            answered.append(await call(client, "text", bytes=50 * MEGABYTE))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call_the_large)
            while not answered:
                assert not (await call(client, "small")).is_error
                meanwhile += not answered
        (result,) = answered
        link = link_of(result)
        part = await read(client, f"{link.uri}/1")
        whole = json.loads(await read(client, link.uri))
        assert result.meta is not None
        trace = bank.context.store.trace(result.meta["io.skillbank/trace"])
    assert meanwhile > 0
    assert not result.is_error
    assert isinstance(result.content[0], types.TextContent)
    assert len(result.content[0].text) < 2_000
    assert whole == {"text": "x" * 50 * MEGABYTE}
    assert link.size == 50 * MEGABYTE + len('{"text":""}')
    assert part.startswith('{"text":"xxx')
    assert trace is not None
    (step,) = trace.steps
    assert step.output_digest == f"sha256:{link.uri.rpartition('/')[2]}"
    assert len(json.dumps(step.model_dump(mode="json"))) < 5_000


def counting(**outputs: Any) -> dict[str, Any]:
    return {
        "name": "counted",
        "inputs": {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]},
        "nodes": [
            {
                "id": "fetch",
                "tool": {"server": "rows", "tool": "good"},
                "arguments": {"rows": "$inputs.rows"},
            },
            {
                "id": "use",
                "tool": {"server": "small", "tool": "good"},
                "arguments": {"last": "$nodes.fetch.output#/rows/49999/name"},
            },
        ],
        "outputs": {"last": "$nodes.fetch.output#/rows/49999/name", "said": "$nodes.use.output", **outputs},
    }


@pytest.mark.parametrize("as_text", [False, True], ids=["structured", "text"])
async def test_a_later_node_has_the_full_value_and_the_trace_its_digest(opened: Connect, as_text: bool):
    async with opened() as (client, bank):
        document = counting()
        document["nodes"][0]["arguments"]["as_text"] = as_text
        arguments = {"workflow": document, "inputs": {"rows": 50_000}, "detail": True}
        result = await client.call_tool("run_workflow", arguments)
        report = result.structured_content
        assert isinstance(report, dict)
        fetched = report["trace"][0]
        kept = json.loads(bank.kept_value(fetched["output_digest"]))
    assert report["outputs"] == {"last": "row 49999", "said": {"text": "done"}}
    assert report["trace"][1]["arguments"] == {"last": "row 49999"}
    assert fetched["output"]["$digest"] == fetched["output_digest"]
    assert fetched["output"]["preview"].startswith('{"rows":[{"id":0,"name":"row 0"}')
    assert len(kept["rows"]) == 50_000


async def test_outputs_too_large_for_a_result_are_previewed_and_linked(opened: Connect):
    async with opened() as (client, _):
        document = counting(rows="$nodes.fetch.output#/rows")
        result = await client.call_tool("run_workflow", {"workflow": document, "inputs": {"rows": 50_000}})
        report = result.structured_content
        assert isinstance(report, dict)
        rows = json.loads(await read(client, link_of(result).uri))
    assert not result.is_error
    assert set(report["outputs"]["rows"]) == {"$digest", "size", "preview"}
    assert report["outputs"]["last"] == rows[49_999]["name"]


async def test_a_skill_whose_answer_is_too_large_says_where_it_is(opened: Connect):
    async with opened() as (client, bank):
        request = RepairRequest(
            task="Fetch 50000 rows",
            inputs={"rows": 50_000},
            checks=Checks(("output.last == 'row 49999'",)),
            save="fetch_rows",
        )
        learned = await bank.repair(counting(rows="$nodes.fetch.output#/rows"), request)
        assert learned.skill_state == "active", learned.skill_reason
        result = await client.call_tool("fetch_rows", {"rows": 50_001})
        rows = json.loads(await read(client, link_of(result).uri))
    assert isinstance(result.content[0], types.TextContent)
    assert "succeeded; its answer is too large for a result" in result.content[0].text
    assert len(rows) == 50_001


async def test_an_answer_over_64_megabytes_is_a_fault_of_that_server_alone(opened: Connect):
    async with opened() as (client, bank):
        outcome = await bank.call_tool(ToolId("text", "good"), {"bytes": 70 * MEGABYTE})
        assert isinstance(outcome, CallFailure)
        assert outcome.kind is FailureKind.OVER_LIMIT
        assert "64 MiB" in outcome.message
        assert not (await call(client, "small")).is_error
        again = await bank.call_tool(ToolId("text", "good"), {"bytes": 5})
        (text,) = [server for server in bank.servers() if server.name == "text"]
    assert again.content == [{"type": "text", "text": "xxxxx"}]
    assert [error.kind for error in text.last_errors] == ["over_limit"]


def resident_megabytes() -> float:
    gc.collect()
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1_000


async def test_memory_is_given_back_after_large_answers(opened: Connect):
    async with opened() as (client, _):
        for _ in range(3):
            await call(client, "text", bytes=20 * MEGABYTE)
        before = resident_megabytes()
        for _ in range(10):
            await call(client, "text", bytes=20 * MEGABYTE)
        grown = resident_megabytes() - before
    assert grown < 60, "ten answers of 20 MB left more than three behind"

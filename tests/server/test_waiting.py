"""Nobody waits for a server that he does not need: over real child processes, some stuck, some dead."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from catalog.testing.defects import defect_command, read_log
from catalog.testing.endurance import living
from catalog.tools import Snapshot, Tool, ToolId
from server.bank import Bank
from server.requests import Budget, RepairRequest, SolveRequest
from server.settings import Settings
from server.verification import Checks
from server.wiring import open_bank
from skills_store.sqlite import open_sqlite_store

pytestmark = pytest.mark.anyio

GOOD = {"id": "now", "tool": {"server": "good0", "tool": "good"}, "arguments": {}}
WORKFLOW = {"name": "w", "inputs": {"type": "object"}, "nodes": [GOOD], "outputs": {"a": "$nodes.now.output"}}


def entry(defect: str, log: Path | None = None) -> dict[str, Any]:
    command, args = defect_command(defect, log)
    return {"command": command, "args": [*args]}


def stored(*servers: str) -> Snapshot:
    schema: Any = {"type": "object"}
    return Snapshot.of(*(Tool(ToolId(server, "good"), schema, description="Good.") for server in servers))


@asynccontextmanager
async def bank_of(folder: Path, servers: dict[str, Any], *known: str) -> AsyncGenerator[Bank]:
    """Open a bank of these servers, of which some were listed in an earlier run."""
    config = folder / "config.json"
    own = {"effects": {server: {"*": "read"} for server in servers}}
    config.write_text(json.dumps({"mcpServers": servers, "skillbank": own}))
    store = open_sqlite_store(folder / "store.db")
    store.save_snapshot(stored(*known), 1.0)
    store.close()
    with anyio.fail_after(60):
        async with open_bank(Settings(config, folder / "store.db")) as bank:
            yield bank


def status(bank: Bank, server: str) -> str:
    connection = bank.context.connections.connection(server)
    assert connection is not None
    return connection.status


async def test_tools_are_found_in_the_store_while_upstreams_are_stuck_and_dead(tmp_path: Path) -> None:
    good = [f"good{n}" for n in range(18)]
    servers = {name: entry("none") for name in good} | {
        "stuck": entry("silent"),
        "dead": entry("dies_at_start"),
    }
    async with bank_of(tmp_path, servers, *good, "stuck") as bank:
        assert bank.published() == []
        assert set(bank.context.connections.eras) == set()
        hits = await bank.find_tools("good", limit=50)
        assert {hit.server for hit in hits.tools} == {*good, "stuck"}
        assert status(bank, "stuck") in ("idle", "starting")


async def test_a_server_that_was_just_added_is_found_without_waiting_for_a_stuck_one(tmp_path: Path) -> None:
    servers = {"good0": entry("none"), "stuck": entry("silent")}
    async with bank_of(tmp_path, servers, "stuck") as bank:
        while "good0" not in {hit.server for hit in (await bank.find_tools("good", limit=50)).tools}:
            assert status(bank, "stuck") in ("idle", "starting")


async def test_a_repair_does_not_wait_for_a_stuck_server_that_it_does_not_need(tmp_path: Path) -> None:
    servers = {"good0": entry("none"), "stuck": entry("silent")}
    async with bank_of(tmp_path, servers, "stuck") as bank:
        report = await bank.repair(WORKFLOW, RepairRequest(checks=Checks(("output.a.text == 'done'",))))
        assert (report.status, report.outputs) == ("verified", {"a": {"text": "done"}})
        assert status(bank, "stuck") == "starting"


async def test_connecting_is_part_of_the_budget_of_a_repair(tmp_path: Path) -> None:
    servers = {"good0": entry("silent")}
    async with bank_of(tmp_path, servers) as bank:
        report = await bank.repair(WORKFLOW, RepairRequest(budget=Budget(seconds=0.5)))
        assert [fault.kind for fault in report.faults] == ["server_unavailable"]
        assert status(bank, "good0") == "starting"


async def test_connecting_is_part_of_the_budget_of_solving(tmp_path: Path) -> None:
    servers = {"stuck": entry("silent")}
    async with bank_of(tmp_path, servers, "stuck") as bank:
        report = await bank.solve("do something good", SolveRequest(budget=Budget(seconds=0.5)))
        assert (report.status, report.budget_spent) == ("unverified", "seconds")
        assert status(bank, "stuck") == "starting"


ERA_OF_ONE = {"odd": entry("ignores_unknown")}


async def test_the_era_of_a_server_is_known_in_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.3)
    async with bank_of(tmp_path, ERA_OF_ONE) as bank:
        assert bank.context.connections.eras == {}
        await bank.call_tool(ToolId("odd", "good"), {})
    async with bank_of(tmp_path, ERA_OF_ONE) as bank:
        assert bank.context.connections.eras == {"odd": "legacy"}
    async with bank_of(tmp_path, {"odd": entry("none")}) as bank:
        assert bank.context.connections.eras == {}


async def test_a_dead_process_of_ours_is_tidied_up_when_a_bank_is_opened(tmp_path: Path) -> None:
    log = tmp_path / "log"
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {"odd": entry("escapes", log)}}))
    script = (
        "import anyio, os, signal, sys\n"
        "from pathlib import Path\n"
        "from catalog.tools import ToolId\n"
        "from server.settings import Settings\n"
        "from server.wiring import open_bank\n"
        "async def main():\n"
        "    async with open_bank(Settings(Path(sys.argv[1]), Path(sys.argv[2]))) as bank:\n"
        "        await bank.call_tool(ToolId('odd', 'good'), {})\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "anyio.run(main)\n"
    )
    store = tmp_path / "store.db"
    await anyio.run_process([sys.executable, "-c", script, str(config), str(store)], check=False)
    (escaped,) = [record["bred"] for record in read_log(log) if "bred" in record]
    assert living([escaped]) == [escaped]
    async with open_bank(Settings(config, store)):
        pass
    assert living([escaped]) == []

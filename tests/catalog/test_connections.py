"""The set of upstreams, over real child processes and in-process servers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import JsonValue

from catalog.config import Config, ServerSpec
from catalog.connections import Connections, open_connections
from catalog.effects import EffectTable, Reset
from catalog.link import Era
from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind, RanUpstream
from catalog.testing import ScriptedServer, ScriptedTool, Vanish, open_test_connections
from catalog.testing.defects import defect_command, read_log
from catalog.tools import ToolId

pytestmark = pytest.mark.anyio

ERAS: list[Era] = ["modern", "legacy"]
Scenario = dict[str, Any]


def defective(name: str, defect: str, log: Path | None = None, **fields: Any) -> ServerSpec:
    command, args = defect_command(defect, log)
    return ServerSpec(name, command=command, args=args, **fields)


def scenario_server(name: str, folder: Path, scenario: Scenario, **fields: Any) -> ServerSpec:
    file = folder / f"{name}.json"
    file.write_text(json.dumps(scenario))
    return ServerSpec(name, command=sys.executable, args=("-m", "catalog.testing", str(file)), **fields)


def config(*specs: ServerSpec, reset: Reset = Reset.NONE) -> Config:
    effects = EffectTable(reset={spec.name: reset for spec in specs})
    return Config({spec.name: spec for spec in specs}, effects)


@asynccontextmanager
async def opened(
    *specs: ServerSpec, reset: Reset = Reset.NONE, **options: Any
) -> AsyncGenerator[Connections]:
    with anyio.fail_after(60):
        async with open_connections(config(*specs, reset=reset), **options) as connections:
            yield connections


def started(log: Path) -> list[int]:
    return [entry["started"] for entry in read_log(log) if "started" in entry]


def living(pids: list[int]) -> list[int]:
    def lives(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    return [pid for pid in pids if lives(pid)]


async def test_a_snapshot_holds_what_can_be_had_and_reports_name_the_rest() -> None:
    specs = [
        defective("good", "none"),
        defective("dead", "dies_at_start"),
        defective("stuck", "silent", timeout_seconds=1.0),
        defective("odd", "malformed_tools"),
        defective("off", "none", disabled=True),
        ServerSpec("absent", command="/nowhere/server"),
        ServerSpec("unset", command=sys.executable, args=("${NOT_SET}",)),
    ]
    async with opened(*specs, environment={}) as connections:
        snapshot = await connections.snapshot()
        assert snapshot.servers == {"good", "odd"}
        reports = {report.name: report for report in connections.reports()}
    assert {name: report.status for name, report in reports.items()} == {
        "absent": "failed",
        "dead": "failed",
        "good": "ready",
        "odd": "ready",
        "off": "disabled",
        "stuck": "failed",
        "unset": "failed",
    }
    assert "no database at /nowhere" in reports["dead"].problems[0]
    assert reports["stuck"].problems[0] == "not ready within 1 s"
    assert "NOT_SET" in reports["unset"].problems[0]
    assert reports["good"].problems == ()
    assert reports["good"].seconds is not None


async def test_a_stuck_server_delays_no_other() -> None:
    stuck = [defective(f"stuck{n}", "silent") for n in range(4)]
    async with opened(*stuck, defective("good", "none")) as connections, anyio.create_task_group() as group:
        group.start_soon(connections.snapshot)
        with anyio.fail_after(10):
            assert isinstance(await connections.call(ToolId("good", "good"), {}), CallSuccess)
        group.cancel_scope.cancel()


async def test_connecting_in_the_background_comes_to_each_past_one_that_cannot(tmp_path: Path) -> None:
    scenario = {"tools": [{"name": "echo"}]}
    specs = [scenario_server(name, tmp_path, scenario) for name in ("first", "last")]
    missing = ServerSpec("missing", command="/no/such/program")
    async with opened(specs[0], missing, specs[1]) as connections:
        connections.begin(["first", "missing", "unknown", "last"])
        connections.begin(["first"])
        last = connections.connection("last")
        assert last is not None
        while last.status != "ready":
            await anyio.lowlevel.checkpoint()
        assert connections.known.servers == {"first", "last"}
        first = connections.connection("first")
        assert first is not None
        assert first.generation == 1


async def test_a_hanging_call_leaves_other_servers_alone() -> None:
    async with (
        opened(defective("hung", "hangs"), defective("good", "none")) as connections,
        anyio.create_task_group() as group,
    ):
        outcomes: list[CallOutcome] = []

        async def hang() -> None:
            outcomes.append(await connections.call(ToolId("hung", "good"), {}, timeout_seconds=15))

        group.start_soon(hang)
        for _ in range(20):
            assert isinstance(await connections.call(ToolId("good", "good"), {}), CallSuccess)
        assert not outcomes
        group.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("server", "kind"),
    [("nobody", FailureKind.UNKNOWN_TOOL), ("off", FailureKind.SERVER_UNAVAILABLE)],
)
async def test_a_server_that_is_not_offered_is_a_failed_call(server: str, kind: FailureKind) -> None:
    async with opened(defective("off", "none", disabled=True)) as connections:
        outcome = await connections.call(ToolId(server, "good"), {})
        assert isinstance(outcome, CallFailure)
        assert (outcome.kind, outcome.ran) == (kind, RanUpstream.NO)


async def test_only_the_wanted_servers_are_opened() -> None:
    async with opened(defective("a", "none"), defective("b", "none"), only=["b"]) as connections:
        assert [report.name for report in connections.reports()] == ["b"]


async def test_leaving_by_an_exception_leaves_no_process(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def fail_while_connected() -> None:
        async with opened(defective("a", "breeds", log), defective("b", "stubborn", log)) as connections:
            await connections.snapshot()
            raise LookupError("on purpose")

    with pytest.raises(LookupError, match="on purpose"):
        await fail_while_connected()
    entries = read_log(log)
    pids = [*started(log), *(entry["bred"] for entry in entries if "bred" in entry)]
    assert (len(pids), living(pids)) == (3, [])


async def test_leaving_by_cancellation_while_starting_leaves_no_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with anyio.move_on_after(0.5) as scope:
        async with opened(defective("a", "silent", log), defective("b", "none", log)) as connections:
            await connections.snapshot()
    assert scope.cancelled_caught
    assert living(started(log)) == []


INTERRUPTED = """
import sys, anyio
from catalog.config import Config, ServerSpec
from catalog.connections import open_connections

async def main():
    spec = ServerSpec("a", command=sys.argv[1], args=tuple(sys.argv[2:]))
    async with open_connections(Config({"a": spec})) as connections:
        await connections.snapshot()
        print("connected", flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


async def test_an_interrupt_from_the_keyboard_leaves_no_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command, args = defect_command("breeds", log)
    arguments = [sys.executable, "-c", INTERRUPTED, command, *args]
    with anyio.fail_after(30):
        async with await anyio.open_process(arguments, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            lines = BufferedByteReceiveStream(process.stdout)
            assert await lines.receive_until(b"\n", 100) == b"connected"
            process.send_signal(signal.SIGINT)
            await process.wait()
    (bred,) = (entry["bred"] for entry in read_log(log) if "bred" in entry)
    assert living([*started(log), bred]) == []


async def test_processes_that_are_given_up_while_starting_do_not_pile_up(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with opened(defective("slow", "silent", log), reset=Reset.PROCESS, spares=False) as connections:
        for _ in range(3):
            async with connections.isolated("slow") as connection:
                while not started(log):
                    await anyio.lowlevel.checkpoint()
            await connection.lost()
            assert living(started(log)) == []
            log.unlink()


STORE: Scenario = {
    "tools": [{"name": "store", "behaviour": "store"}, {"name": "count", "behaviour": "counter"}]
}


@pytest.mark.parametrize("spares", [False, True], ids=["no-spare", "spare"])
async def test_isolated_processes_share_no_state_and_leave_none_behind(tmp_path: Path, spares: bool) -> None:
    log = tmp_path / "log"
    spec = scenario_server("state", tmp_path, {**STORE, "log": str(log)})
    async with opened(spec, reset=Reset.PROCESS, spares=spares) as connections:
        for key in ("a", "b"):
            async with connections.isolated("state") as connection:
                outcome = await connection.call("store", {key: 1}, timeout_seconds=20)
                assert isinstance(outcome, CallSuccess)
                assert outcome.structured == {key: 1}
        assert connections.reports()[0].status == "idle"
    assert len(started(log)) >= 2
    assert living(started(log)) == []


async def test_a_spare_is_started_after_first_use_and_taken_by_the_next(tmp_path: Path) -> None:
    log = tmp_path / "log"
    spec = scenario_server("state", tmp_path, {**STORE, "log": str(log)})
    async with opened(spec, reset=Reset.PROCESS) as connections:
        async with connections.isolated("state") as first:
            (spare,) = connections.isolated_connections - {first}
        assert await spare.ready()
        async with connections.isolated("state") as second:
            assert second is spare


FOLDERS: Scenario = {"tools": [{"name": "folders", "behaviour": "folders"}]}


async def test_private_folders_hold_a_copy_and_vanish(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "orders.csv").write_text("1")
    spec = scenario_server(
        "files", tmp_path, FOLDERS, cwd=str(work), env={"PYTHONPATH": str(Path.cwd()), "DATA": f"{work}/x"}
    )
    async with (
        opened(spec, reset=Reset.PROCESS_DIRS, spares=False) as connections,
        connections.isolated("files") as connection,
    ):
        outcome = await connection.call("folders", {"name": "new.txt"}, timeout_seconds=20)
    assert isinstance(outcome, CallSuccess)
    seen = outcome.structured
    assert isinstance(seen, dict)
    assert seen["files"] == ["new.txt", "orders.csv"]
    private = [Path(str(seen[key])) for key in ("home", "tmp", "folder")]
    assert len({path.parent for path in private}) == 1
    assert not any(path.exists() for path in private)
    assert [path.name for path in work.iterdir()] == ["orders.csv"]


async def test_a_server_reached_by_address_has_no_process_of_its_own() -> None:
    spec = ServerSpec("far", url="http://127.0.0.1:9/mcp", transport="http")
    async with opened(spec, reset=Reset.PROCESS) as connections, connections.isolated("far") as connection:
        outcome = await connection.call("any", {}, timeout_seconds=10)
        assert isinstance(outcome, CallFailure)
        assert (outcome.kind, outcome.ran) == (FailureKind.SERVER_UNAVAILABLE, RanUpstream.NO)
        assert "no process to start afresh" in outcome.message


@pytest.mark.parametrize("server", ["good", "nobody"])
async def test_only_resettable_servers_can_be_isolated(server: str) -> None:
    async with opened(defective("good", "none")) as connections:
        with pytest.raises(ValueError, match=server):
            async with connections.isolated(server):
                raise AssertionError("it was opened")


WORK: Scenario = {
    "tools": [
        {"name": "echo", "behaviour": "echo"},
        {"name": "slow", "latency_seconds": 60},
        {"name": "calls", "behaviour": "calls"},
        {"name": "steps", "answers": [{"n": 1}], "progress": [[1, 2, "half"], [2, 2, None]]},
        {"name": "refuse", "answers": [{"$refuse": {"code": -32602, "message": "Unknown tool: refuse"}}]},
        {"name": "vanish", "answers": [{"$vanish": True}]},
    ]
}


async def cancelled_calls(connections: Connections, server: str) -> list[JsonValue]:
    """Ask until the upstream says that a call of it was cancelled."""
    while True:
        told = await connections.call(ToolId(server, "calls"), {})
        assert isinstance(told, CallSuccess)
        assert isinstance(told.structured, dict)
        calls = told.structured["result"]
        assert isinstance(calls, list)
        found = [call["tool"] for call in calls if isinstance(call, dict) and call["cancelled"]]
        if found:
            return found


async def check_the_work_of_a_server(connections: Connections, server: str) -> None:
    echoed = await connections.call(ToolId(server, "echo"), {"a": [1, None, "ü"]})
    assert isinstance(echoed, CallSuccess)
    assert echoed.structured == {"a": [1, None, "ü"]}

    reports: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        reports.append((done, total, message))

    assert isinstance(await connections.call(ToolId(server, "steps"), {}, progress=progress), CallSuccess)
    assert reports == [(1, 2, "half"), (2, 2, None)]

    refused = await connections.call(ToolId(server, "refuse"), {})
    assert isinstance(refused, CallFailure)
    assert refused.kind is FailureKind.UNKNOWN_TOOL

    with anyio.move_on_after(0.3):
        await connections.call(ToolId(server, "slow"), {})
    assert await cancelled_calls(connections, server) == ["slow"]
    late = await connections.call(ToolId(server, "slow"), {}, timeout_seconds=0.3)
    assert isinstance(late, CallFailure)
    assert late.kind is FailureKind.TIMEOUT


async def test_a_child_process_is_called_with_progress_and_cancelled(tmp_path: Path) -> None:
    async with opened(scenario_server("work", tmp_path, WORK)) as connections:
        await check_the_work_of_a_server(connections, "work")


@asynccontextmanager
async def serving(folder: Path, scenario: Scenario) -> AsyncGenerator[str]:
    """Yield the address of a scenario served by a process over http or sse."""
    spec = scenario_server("remote", folder, scenario)
    async with await anyio.open_process([spec.command or "", *spec.args], stderr=None) as process:
        assert process.stdout is not None
        try:
            with anyio.fail_after(30):
                yield (await process.stdout.receive()).decode().strip()
        finally:
            process.kill()


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_over_http_is_called_in_both_eras(tmp_path: Path, era: Era) -> None:
    async with (
        serving(tmp_path, {**WORK, "serve": "http"}) as url,
        opened(ServerSpec("far", url=url, transport="http")) as connections,
    ):
        connections.remember_era("far", era)
        await check_the_work_of_a_server(connections, "far")
        (report,) = connections.reports()
        assert (report.status, report.transport, report.era) == ("ready", "http", era)


async def test_a_server_over_sse_is_called(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, {**WORK, "serve": "sse"}) as url,
        opened(ServerSpec("far", url=url, transport="sse")) as connections,
    ):
        await check_the_work_of_a_server(connections, "far")


async def test_an_address_nobody_answers_is_a_named_failure() -> None:
    async with opened(ServerSpec("far", url="http://127.0.0.1:9/mcp", transport="http")) as connections:
        assert len(await connections.snapshot()) == 0
        (report,) = connections.reports()
        assert report.status == "failed"
        assert "connect" in report.problems[0].lower()


@pytest.mark.parametrize("era", ERAS)
async def test_a_changed_tool_list_is_read_again_and_announced(era: Era) -> None:
    server = ScriptedServer([ScriptedTool("one", ["x"])])
    announced: list[str] = []
    heard = anyio.Event()

    async def changed(name: str) -> None:
        announced.append(name)
        heard.set()

    with anyio.fail_after(10):
        async with open_test_connections({"a": server}, era=era) as connections:
            connections.on_change(changed)
            assert {tool.id.tool for tool in await connections.snapshot()} == {"one"}
            await server.listened()
            await server.change_tools([ScriptedTool("two", ["x"])])
            await heard.wait()
            assert {tool.id.tool for tool in connections.known} == {"two"}
    assert announced == ["a"]


@pytest.mark.parametrize("era", ERAS)
async def test_cancelling_a_caller_cancels_the_call_upstream(era: Era) -> None:
    server = ScriptedServer([ScriptedTool("slow", ["x"], latency_seconds=60)])
    with anyio.fail_after(10):
        async with open_test_connections({"a": server}, era=era) as connections:
            async with anyio.create_task_group() as group:
                group.start_soon(connections.call, ToolId("a", "slow"), {})
                await server.log.wait_for("slow")
                group.cancel_scope.cancel()
            await server.log.wait_for_cancelled("slow")


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_vanishes_is_a_fault_and_then_back(era: Era) -> None:
    server = ScriptedServer([ScriptedTool("act", [Vanish(), {"n": 1}])])
    async with open_test_connections({"a": server}, era=era) as connections:
        lost = await connections.call(ToolId("a", "act"), {})
        assert isinstance(lost, CallFailure)
        assert (lost.kind, lost.ran) == (FailureKind.SERVER_UNAVAILABLE, RanUpstream.UNSURE)
        assert isinstance(await connections.call(ToolId("a", "act"), {}), CallSuccess)
    assert (server.starts, server.log.count("act")) == (2, 2)


@pytest.mark.parametrize("era", ERAS)
async def test_pages_are_read_to_the_end(era: Era) -> None:
    server = ScriptedServer([ScriptedTool(f"t{n}", ["x"]) for n in range(25)], page_size=10)
    async with open_test_connections({"a": server}, era=era) as connections:
        assert len(await connections.snapshot()) == 25


def counting() -> Callable[[], list[ScriptedTool]]:
    def tools() -> list[ScriptedTool]:
        seen: list[int] = []

        def count(_: dict[str, JsonValue]) -> JsonValue:
            seen.append(1)
            return {"count": len(seen)}

        return [ScriptedTool("count", count)]

    return tools


async def test_scripted_servers_start_afresh_when_isolated() -> None:
    effects = EffectTable(reset={"a": Reset.PROCESS})
    async with open_test_connections({"a": ScriptedServer(counting())}, effects=effects) as connections:
        for _ in range(2):
            async with connections.isolated("a") as connection:
                outcome = await connection.call("count", {}, timeout_seconds=5)
                assert isinstance(outcome, CallSuccess)
                assert outcome.structured == {"count": 1}


async def test_scripted_servers_refuse_arguments_before_they_run() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "required": ["n"]}
    server = ScriptedServer([ScriptedTool("act", ["x"], input_schema=schema)])
    async with open_test_connections({"a": server}) as connections:
        outcome = await connections.call(ToolId("a", "act"), {})
        assert isinstance(outcome, CallFailure)
        assert (outcome.kind, outcome.ran) == (FailureKind.INVALID_ARGUMENT, RanUpstream.NO)
    assert server.log.count() == 0

"""A server that is restarted between or during the nodes of a running workflow, as a real process."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from catalog.config import ServerSpec
from catalog.connections import open_upstreams
from catalog.effects import Activity, Effect, EffectTable
from catalog.testing import ScriptedServer, ScriptedTool, in_process
from catalog.testing.defects import defect_command, read_log
from catalog.testing.endurance import living
from catalog.upstream import configured_upstream
from server.execution.consent import NoConsent
from server.execution.episode import Episode
from server.execution.run import Run, RunOptions, execute_workflow
from skills_store.workflow.model import parse_workflow

pytestmark = pytest.mark.anyio


def node(name: str, server: str, tool: str, *after: str) -> dict[str, Any]:
    return {
        "id": name,
        "tool": {"server": server, "tool": tool},
        "arguments": {"node": name} if server == "odd" else {},
        "after": [*after],
    }


async def run_through(defect: str, log: Path, effect: Effect, *nodes: dict[str, Any]) -> Run:
    """Run nodes over a child process `odd` and a server here that kills it."""
    command, args = defect_command(defect, log)
    odd = configured_upstream(ServerSpec("odd", command=command, args=args), {})

    def kill(_: Any) -> str:
        pid = [entry["started"] for entry in read_log(log) if "started" in entry][-1]
        os.kill(pid, signal.SIGKILL)
        while living([pid]):
            pass
        return "killed"

    killer = in_process("killer", ScriptedServer([ScriptedTool("kill", kill)]))
    effects = EffectTable({"odd": {"*": effect}, "killer": {"*": Effect.WRITE}})
    document = {"name": "w", "inputs": {"type": "object"}, "nodes": [*nodes], "outputs": {}}
    with anyio.fail_after(60):
        async with open_upstreams([odd, killer], effects) as connections:
            connections.remember_era("odd", "legacy")
            snapshot = await connections.snapshot()
            episode = Episode(connections, effects, snapshot, NoConsent())
            async with episode.candidate(Activity.CLIENT_CALL) as caller:
                return await execute_workflow(
                    parse_workflow(document), {}, caller, snapshot=snapshot, options=RunOptions()
                )


def lives(log: Path) -> list[list[str]]:
    """Return for each life of the child the nodes whose call arrived in it."""
    found: list[list[str]] = []
    for entry in read_log(log):
        if "started" in entry:
            found.append([])
        else:
            found[-1].append(entry["called"]["node"])
    return found


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
async def test_a_restart_between_two_nodes_is_not_noticed(tmp_path: Path, effect: Effect) -> None:
    log = tmp_path / "log"
    run = await run_through(
        "none",
        log,
        effect,
        node("first", "odd", "good"),
        node("between", "killer", "kill", "first"),
        node("second", "odd", "good", "between"),
    )
    assert [step.outcome for step in run.trace.steps] == ["succeeded"] * 3
    assert lives(log) == [["first"], ["second"]]


async def test_a_write_that_was_under_way_is_not_issued_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run = await run_through("dies_at_call", log, Effect.WRITE, node("first", "odd", "good"))
    assert [fault.kind for fault in run.faults] == ["server_unavailable"]
    assert lives(log) == [["first"]]


async def test_a_read_that_was_under_way_is_issued_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run = await run_through("dies_at_call", log, Effect.READ, node("first", "odd", "good"))
    assert run.faults == ()
    assert lives(log) == [["first"], ["first"]]


async def test_no_write_is_lost_or_doubled_however_often_its_server_dies_after_answering(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    names = [f"n{number}" for number in range(6)]
    nodes = [node(name, "odd", "good", *names[max(0, i - 1) : i]) for i, name in enumerate(names)]
    run = await run_through("dies_after_call", log, Effect.WRITE, *nodes)
    arrived = [name for life in lives(log) for name in life]
    assert len(arrived) == len(set(arrived))
    assert {s.node for s in run.trace.steps if s.outcome == "succeeded"} <= set(arrived)

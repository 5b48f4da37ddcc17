"""Runs all real servers at once through one set of connections, and keeps what came of it.

First every server is called in peace. Then one of them hangs, some of them are made to misbehave
over and over, and all the others are called a second time. Judging the record is the tests'.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from real_servers import MARK, Call, Fleet, RealServer

from catalog.config import load_config
from catalog.connection_report import ConnectionReport
from catalog.connections import Connections, open_connections
from catalog.result import CallFailure, CallOutcome
from catalog.tools import Snapshot, ToolId

__all__ = ["Record", "came_of", "record"]

_CALL_SECONDS = 60.0
_HANG_SECONDS = 2.0
_STORM_CALLS = 5
_MOST_SECONDS = 600


@dataclass
class Record:
    """What came of one run."""

    snapshot: Snapshot
    reports: Mapping[str, ConnectionReport]
    """After the calls in peace."""
    calm: dict[str, list[CallOutcome]]
    """By server, in the order of its calls."""
    stormy: dict[str, list[CallOutcome]] = field(default_factory=dict[str, list[CallOutcome]])
    """The same calls while others hung and misbehaved."""
    storms: dict[str, list[CallOutcome]] = field(default_factory=dict[str, list[CallOutcome]])
    """What the misbehaving ones answered meanwhile."""
    hung: dict[str, CallOutcome] = field(default_factory=dict[str, CallOutcome])
    """A second call to each server that hung, made after all others were answered."""
    revived: dict[str, list[CallOutcome]] = field(default_factory=dict[str, list[CallOutcome]])
    """The calls of a server that had hung, once it was ended."""
    generations: dict[str, int] = field(default_factory=dict[str, int])
    """How often each was started, at the end."""
    left: list[str] = field(default_factory=list[str])
    """Command lines of the processes that are still there after closing."""


def came_of(outcome: CallOutcome) -> tuple[str, str]:
    """Return the kind of an outcome (`success` or that of the failure) and all its words."""
    words = json.dumps([outcome.structured, outcome.content], ensure_ascii=False)
    if isinstance(outcome, CallFailure):
        return outcome.kind.value, f"{outcome.message} {words}"
    return "success", words


async def record(fleet: Fleet, work: Path) -> Record:
    """Start the fleet, call it, close it, and return what happened."""
    config = work / "config.json"
    servers = {server.name: _entry(server) for server in fleet.servers}
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    with anyio.fail_after(_MOST_SECONDS):
        async with open_connections(load_config(config), timeout_seconds=_CALL_SECONDS) as connections:
            snapshot = await connections.snapshot()
            calm = await _call_each(fleet.servers, connections)
            reports = {report.name: report for report in connections.reports()}
            made = Record(snapshot, reports, calm)
            await _storm(fleet, connections, made)
            for server in fleet.servers:
                if (connection := connections.connection(server.name)) is not None:
                    made.generations[server.name] = connection.generation
    made.left = _processes(fleet.servers[0].env[MARK])
    return made


def _entry(server: RealServer) -> dict[str, object]:
    bears = {} if server.parallel_calls is None else {"parallel_calls": server.parallel_calls}
    return {"command": server.command[0], "args": [*server.command[1:]], "env": server.env, **bears}


async def _storm(fleet: Fleet, connections: Connections, made: Record) -> None:
    hanging = [server for server in fleet.servers if server.hangs is not None]
    others = [server for server in fleet.servers if server.hangs is None]
    async with anyio.create_task_group() as hung:
        for server in hanging:
            assert server.hangs is not None
            hung.start_soon(_call, server, server.hangs, connections)
            await _appears(Path(server.env["PATH"].split(os.pathsep)[0]) / "begun")
        async with anyio.create_task_group() as group:
            for server in others:
                group.start_soon(_misbehave, server, connections, made.storms)
            made.stormy.update(await _call_each(others, connections))
        for server in hanging:
            assert server.hangs is not None
            made.hung[server.name] = await _call(server, server.hangs, connections, _HANG_SECONDS)
        hung.cancel_scope.cancel()
    for server in hanging:
        await _call(server, server.calls[0], connections, _HANG_SECONDS)
        if (connection := connections.connection(server.name)) is not None:
            await connection.lost()
    made.revived.update(await _call_each(hanging, connections))


async def _misbehave(
    server: RealServer, connections: Connections, storms: dict[str, list[CallOutcome]]
) -> None:
    if server.storm is not None:
        storms[server.name] = [await _call(server, server.storm, connections) for _ in range(_STORM_CALLS)]


async def _call_each(
    servers: tuple[RealServer, ...] | list[RealServer], connections: Connections
) -> dict[str, list[CallOutcome]]:
    """Return the outcomes of every server's calls; the servers side by side, calls one by one."""
    outcomes: dict[str, list[CallOutcome]] = {}

    async def call_all(server: RealServer) -> None:
        outcomes[server.name] = [await _call(server, call, connections) for call in server.calls]

    async with anyio.create_task_group() as group:
        for server in servers:
            group.start_soon(call_all, server)
    return outcomes


async def _call(
    server: RealServer, call: Call, connections: Connections, seconds: float = _CALL_SECONDS
) -> CallOutcome:
    tool = ToolId(server.name, call.tool)
    return await connections.call(tool, dict(call.arguments), timeout_seconds=seconds)


async def _appears(path: Path) -> None:
    while not path.exists():
        await anyio.sleep(0.02)


def _processes(mark: str) -> list[str]:
    """Return the command lines of all processes on this machine that carry the mark."""
    wanted = f"{MARK}={mark}".encode()
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has just ended, or is another user's
    return found

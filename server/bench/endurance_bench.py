"""What is left behind after many times the same: memory after list and call, processes after connecting.

Both are read from the kernel, so they are measured on Linux only.
"""

from __future__ import annotations

import json
import statistics
import sys
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from mcp import Client
from pydantic import BaseModel, ConfigDict

from catalog.config import load_config
from catalog.connections import open_connections
from server.bench.bare_relay import ECHO_COMMAND
from server.bench.errors import BenchError
from server.bench.processes import descendants, named, resident_bytes
from server.bench.serving import client_of, serve_command

__all__ = ["ConnectMeasure", "MemoryMeasure", "measure_connects", "measure_memory"]

_SAMPLES = 80
_SETTLED = 0.25
"""Share of the cycles after which caches are taken as filled."""
_ABANDONED_EVERY = 3
_ABANDONED_AFTER_SECONDS = 0.03
_TINY = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        answer["result"] = {"protocolVersion": asked["params"]["protocolVersion"],
                            "capabilities": {"tools": {}}, "serverInfo": {"name": "tiny", "version": "1"}}
    elif asked["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "nothing", "inputSchema": {"type": "object"}}]}
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
"""
_WRAPPER = '"$1" -S -c "import time; time.sleep(3600)" "$0" & "$1" -S -c "$2" "$0"; :'
"""Starts a child that nobody waits for, then the server; both carry the mark in their command lines."""


class MemoryMeasure(BaseModel):
    """Memory of `skillbank serve` over cycles of one tools/list and one relayed call."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cycles: int
    settled_mb: float
    """After the first quarter of the cycles."""
    last_mb: float
    """Median of the last tenth of the samples."""
    slope_kb_per_1000: float
    """Of a straight line through the samples after the first quarter, per 1,000 cycles."""

    @property
    def growth(self) -> float:
        """Share by which memory grew after the first quarter."""
        return self.last_mb / self.settled_mb - 1


class ConnectMeasure(BaseModel):
    """What cycles of connecting leave behind."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cycles: int
    """Each through `sh -c`, with a background child beside the server."""
    abandoned: int
    """Of the cycles: left while connecting."""
    left: int
    """Processes of theirs that still exist, orphans included."""
    descendants: int
    """Descendants of this process more than before."""


async def measure_memory(cycles: int) -> MemoryMeasure:
    """Return how memory behaves over many cycles, measured now.

    Raises:
        BenchError: a call failed, or the process cannot be found.
    """
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        async with client_of(serve_command(Path(folder), {"echo": ECHO_COMMAND})) as client:
            await _cycle(client)
            (pid, *others) = [pid for pid, line in descendants().items() if folder in line] or [0]
            if not pid or others:
                raise BenchError("the process that serves cannot be told from others")
            samples: list[float] = []
            for number in range(cycles):
                await _cycle(client)
                if number % max(cycles // _SAMPLES, 1) == 0:
                    samples.append(resident_bytes(pid) / 2**20)
    settled = samples[int(len(samples) * _SETTLED) :]
    slope = statistics.linear_regression(range(len(settled)), settled).slope
    return MemoryMeasure(
        cycles=cycles,
        settled_mb=settled[0],
        last_mb=statistics.median(samples[-max(len(samples) // 10, 1) :]),
        slope_kb_per_1000=slope * 1024 * len(samples) / cycles * 1000,
    )


async def _cycle(client: Client) -> None:
    await client.list_tools(cache_mode="bypass")
    arguments = {"server": "echo", "tool": "echo", "arguments": {"text": "once more"}}
    if (answer := await client.call_tool("call_tool", arguments)).is_error:
        raise BenchError(f"a call failed: {answer.content}")


async def measure_connects(cycles: int) -> ConnectMeasure:
    """Return what connecting over and over leaves behind, measured now.

    Raises:
        BenchError: a server could not be listed.
    """
    before, mark = len(descendants()), f"skillbank-bench-{uuid.uuid4().hex}"
    abandoned = 0
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        config = Path(folder) / "config.json"
        servers = {"tiny": {"command": "sh", "args": ["-c", _WRAPPER, mark, sys.executable, _TINY]}}
        config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        for number in range(cycles):
            gives_up = number % _ABANDONED_EVERY == _ABANDONED_EVERY - 1
            abandoned += gives_up
            async with open_connections(load_config(config)) as connections:
                with anyio.move_on_after(_ABANDONED_AFTER_SECONDS if gives_up else None):
                    await connections.snapshot()
                if not gives_up and not len(connections.known):
                    raise BenchError(f"a server was not listed: {connections.reports()[0].problems}")
    return ConnectMeasure(
        cycles=cycles, abandoned=abandoned, left=len(named(mark)), descendants=len(descendants()) - before
    )

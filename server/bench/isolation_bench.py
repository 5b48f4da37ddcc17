"""Whether calls that are stuck on one server slow down another.

One client of `skillbank serve` calls server B alone, then while many of its calls wait on server A,
which never answers. The two take turns, so that what else the machine does falls on both.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from mcp import Client
from pydantic import BaseModel, ConfigDict

from server.bench.bare_relay import ECHO_COMMAND, STUCK_COMMAND
from server.bench.errors import BenchError
from server.bench.measures import Spread, spread_of
from server.bench.serving import client_of, serve_command

__all__ = ["IsolationMeasure", "measure_isolation"]

_CALLS_A_TURN = 50
_SETTLING_SECONDS = 0.5


class IsolationMeasure(BaseModel):
    """Milliseconds of a call on B."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stuck: int
    """Calls that wait on A."""
    alone_ms: Spread
    beside_ms: Spread
    """While calls are stuck on A."""

    @property
    def ratio_p95(self) -> float:
        """p95 beside stuck calls over p95 alone."""
        return self.beside_ms.p95 / self.alone_ms.p95


async def measure_isolation(turns: int, stuck: int = 50) -> IsolationMeasure:
    """Return what a call on B takes alone and beside stuck calls on A, measured now.

    Args:
        turns: how often the two take turns, each with 50 calls.
        stuck: calls that wait on A.

    Raises:
        BenchError: B answers anything but what it was given.
    """
    alone: list[float] = []
    beside: list[float] = []
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        serve = serve_command(Path(folder), {"a": STUCK_COMMAND, "b": ECHO_COMMAND})
        async with client_of(serve) as client:
            await _timed_calls(client)
            for _ in range(turns):
                alone += await _timed_calls(client)
                async with anyio.create_task_group() as waiting:
                    for _ in range(stuck):
                        waiting.start_soon(_call, client, "a")
                    await anyio.sleep(_SETTLING_SECONDS)
                    beside += await _timed_calls(client)
                    waiting.cancel_scope.cancel()
                await anyio.sleep(_SETTLING_SECONDS)
    return IsolationMeasure(stuck=stuck, alone_ms=spread_of(alone), beside_ms=spread_of(beside))


async def _timed_calls(client: Client) -> list[float]:
    taken: list[float] = []
    for _ in range(_CALLS_A_TURN):
        began = time.perf_counter()
        await _call(client, "b")
        taken.append((time.perf_counter() - began) * 1000)
    return taken


async def _call(client: Client, server: str) -> None:
    arguments = {"server": server, "tool": "echo", "arguments": {"text": "once more"}}
    answer = await client.call_tool("call_tool", arguments)
    if answer.is_error:
        raise BenchError(f"{server} failed: {answer.content}")

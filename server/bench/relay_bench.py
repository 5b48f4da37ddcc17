"""What relaying one call costs: skillbank's `call_tool`, the least relay the SDK allows, FastMCP's proxy.

All stand between a stdio client and the same echo server (`server.bench.bare_relay`). Calls take
turns in one run, so that what else the machine does falls on all.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import metadata
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from mcp.types import CallToolResult
from pydantic import BaseModel, ConfigDict

from server.bench.bare_relay import ECHO_COMMAND, FASTMCP_COMMAND, RELAY_COMMAND
from server.bench.errors import BenchError
from server.bench.measures import Spread, spread_of
from server.bench.serving import client_of, serve_command

__all__ = ["RelayMeasure", "measure_relay"]

_TEXT = "The quick brown fox jumps over the lazy dog."

Call = Callable[[], Awaitable[CallToolResult]]


class RelayMeasure(BaseModel):
    """Milliseconds per call, by way."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: int
    """Of each way."""
    direct_ms: Spread
    """Client → upstream, no relay."""
    bare_ms: Spread
    """Client → bare relay → upstream."""
    fastmcp_ms: Spread | None
    """Client → FastMCP's proxy → upstream; None where FastMCP is not installed."""
    skillbank_ms: Spread
    """Client → `skillbank serve` → upstream."""

    @property
    def ratio_median(self) -> float:
        """Latency over that of the bare relay, at the median."""
        return self.skillbank_ms.median / self.bare_ms.median

    @property
    def ratio_p95(self) -> float:
        """Latency over that of the bare relay, at p95."""
        return self.skillbank_ms.p95 / self.bare_ms.p95

    @property
    def added_over_fastmcp(self) -> float | None:
        """Time added to no relay over the time that FastMCP's proxy adds, at the median."""
        return self._added_over_fastmcp(self.skillbank_ms)

    @property
    def bare_added_over_fastmcp(self) -> float | None:
        """The same for the bare relay: less cannot be had from the SDK."""
        return self._added_over_fastmcp(self.bare_ms)

    def _added_over_fastmcp(self, way: Spread) -> float | None:
        if self.fastmcp_ms is None:
            return None
        added = self.fastmcp_ms.median - self.direct_ms.median
        return (way.median - self.direct_ms.median) / added if added > 0 else None


async def measure_relay(calls: int, warm_up: int = 50) -> RelayMeasure:
    """Return what a relayed call costs, measured now.

    Args:
        calls: measured calls through each of the ways.
        warm_up: calls through each before anything is measured.

    Raises:
        BenchError: a relay answers anything but what the echo server said.
    """
    async with _ways() as ways:
        for call in ways.values():
            for _ in range(warm_up):
                await _checked(call)
        taken: dict[str, list[float]] = {name: [] for name in ways}
        order, dice = list(ways), Random(0)
        for _ in range(calls):
            dice.shuffle(order)  # what a way still does after its answer falls on all alike, itself too
            for name in order:
                taken[name].append(await _milliseconds(ways[name]))
    return RelayMeasure(
        calls=calls,
        direct_ms=spread_of(taken["direct"]),
        bare_ms=spread_of(taken["bare"]),
        fastmcp_ms=spread_of(taken["fastmcp"]) if "fastmcp" in taken else None,
        skillbank_ms=spread_of(taken["skillbank"]),
    )


@asynccontextmanager
async def _ways() -> AsyncGenerator[dict[str, Call]]:
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        serve = serve_command(Path(folder), {"echo": ECHO_COMMAND})
        async with AsyncExitStack() as stack:
            direct = await stack.enter_async_context(client_of(ECHO_COMMAND))
            bare = await stack.enter_async_context(client_of(RELAY_COMMAND))
            skillbank = await stack.enter_async_context(client_of(serve))
            relayed = {"server": "echo", "tool": "echo", "arguments": {"text": _TEXT}}
            ways: dict[str, Call] = {
                "direct": lambda: direct.call_tool("echo", {"text": _TEXT}),
                "bare": lambda: bare.call_tool("echo", {"text": _TEXT}),
                "skillbank": lambda: skillbank.call_tool("call_tool", relayed),
            }
            if _has_fastmcp():
                fastmcp = await stack.enter_async_context(client_of(FASTMCP_COMMAND))
                ways["fastmcp"] = lambda: fastmcp.call_tool("echo", {"text": _TEXT})
            yield ways


def _has_fastmcp() -> bool:
    try:
        metadata.version("fastmcp")
    except metadata.PackageNotFoundError:
        return False
    return True


async def _milliseconds(call: Call) -> float:
    started = time.perf_counter()
    await _checked(call)
    return (time.perf_counter() - started) * 1000


async def _checked(call: Call) -> None:
    result = await call()
    said = [getattr(block, "text", None) for block in result.content]
    if result.is_error or said != [_TEXT]:
        raise BenchError(f"a relay answered {said!r} where the echo server says {_TEXT!r}")

"""What relaying one call costs: skillbank's `call_tool` against the least relay the SDK allows.

Both stand between a stdio client and the same echo server (`server.bench.bare_relay`). Calls are
interleaved in one run, so that what else the machine does falls on both.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult
from pydantic import BaseModel, ConfigDict

from server.bench.bare_relay import ECHO_COMMAND, RELAY_COMMAND
from server.bench.errors import BenchError
from server.bench.measures import Spread, spread_of

__all__ = ["RelayBenchReport", "RelayOptions", "run_relay_bench"]

_TEXT = "The quick brown fox jumps over the lazy dog."
_CLI = "from server.cli import main; main()"

Call = Callable[[], Awaitable[CallToolResult]]


@dataclass(frozen=True, slots=True)
class RelayOptions:
    """How much is measured."""

    calls: int = 1000
    """Measured calls through each of the ways."""
    warm_up: int = 50
    """Calls through each before anything is measured."""


class RelayBenchReport(BaseModel):
    """Milliseconds per call, by way; the ratio is of medians, skillbank over the bare relay."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bench: Literal["relay"] = "relay"
    calls: int
    upstream: str = "an echo server of this package, over stdio"
    direct_ms: Spread
    """Client → upstream, no relay."""
    bare_ms: Spread
    """Client → bare relay → upstream."""
    skillbank_ms: Spread
    """Client → `skillbank serve` → upstream."""
    ratio_median: float
    ratio_p95: float
    versions: dict[str, str]


async def run_relay_bench(options: RelayOptions) -> RelayBenchReport:
    """Return what a relayed call costs, measured now.

    Raises:
        BenchError: a relay answers anything but what the echo server said.
    """
    async with _ways() as ways:
        for call in ways.values():
            for _ in range(options.warm_up):
                await _checked(call)
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(options.calls):
            for name, call in ways.items():
                taken[name].append(await _milliseconds(call))
    direct, bare, skillbank = (spread_of(taken[name]) for name in ("direct", "bare", "skillbank"))
    return RelayBenchReport(
        calls=options.calls,
        direct_ms=direct,
        bare_ms=bare,
        skillbank_ms=skillbank,
        ratio_median=skillbank.median / bare.median,
        ratio_p95=skillbank.p95 / bare.p95,
        versions={name: metadata.version(name) for name in ("skillbank", "mcp")},
    )


@asynccontextmanager
async def _ways() -> AsyncGenerator[dict[str, Call]]:
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        serve = _serve_command(Path(folder))
        async with AsyncExitStack() as stack:
            direct = await stack.enter_async_context(_client(ECHO_COMMAND))
            bare = await stack.enter_async_context(_client(RELAY_COMMAND))
            skillbank = await stack.enter_async_context(_client(serve))
            relayed = {"server": "echo", "tool": "echo", "arguments": {"text": _TEXT}}
            yield {
                "direct": lambda: direct.call_tool("echo", {"text": _TEXT}),
                "bare": lambda: bare.call_tool("echo", {"text": _TEXT}),
                "skillbank": lambda: skillbank.call_tool("call_tool", relayed),
            }


def _serve_command(folder: Path) -> tuple[str, ...]:
    command, *arguments = ECHO_COMMAND
    config = folder / "config.json"
    document = {
        "mcpServers": {"echo": {"command": command, "args": arguments}},
        "skillbank": {"effects": {"echo": {"echo": "pure"}}},
    }
    config.write_text(json.dumps(document), encoding="utf-8")
    store = folder / "store.db"
    return (sys.executable, "-c", _CLI, "serve", "--config", str(config), "--store", str(store))


def _client(command: tuple[str, ...]) -> Client:
    program, *arguments = command
    return Client(StdioServerParameters(command=program, args=arguments), mode="auto")


async def _milliseconds(call: Call) -> float:
    started = time.perf_counter()
    await _checked(call)
    return (time.perf_counter() - started) * 1000


async def _checked(call: Call) -> None:
    result = await call()
    said = [getattr(block, "text", None) for block in result.content]
    if result.is_error or said != [_TEXT]:
        raise BenchError(f"a relay answered {said!r} where the echo server says {_TEXT!r}")

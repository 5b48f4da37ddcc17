"""How soon `skillbank serve` lists its tools when some of its servers never answer.

A first run, not timed, fills the store: all live servers are listed and one skill is published. The
timed runs start from that store, with dead servers configured beside the live ones.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from mcp import Client
from pydantic import BaseModel, ConfigDict, JsonValue

from server.bench.bare_relay import ECHO_COMMAND
from server.bench.errors import BenchError
from server.bench.measures import Spread, spread_of
from server.bench.serving import client_of, serve_command

__all__ = ["ReadinessMeasure", "measure_readiness"]

_DEAD = (sys.executable, "-c", "import time; time.sleep(3600)")
_SKILL = "say_again"
_WORKFLOW = {
    "name": _SKILL,
    "inputs": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "nodes": [
        {
            "id": "say",
            "tool": {"server": "live00", "tool": "echo"},
            "arguments": {"text": "$inputs.text"},
        }
    ],
    "outputs": {"said": "$nodes.say.output#/text"},
}
_TEXT = "The quick brown fox."


class ReadinessMeasure(BaseModel):
    """Seconds from starting the process to an answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    upstreams: int
    dead: int
    """Of the upstreams: they start and never say anything."""
    listed_seconds: Spread
    """To the answer of tools/list, which names a skill from the store."""
    found_seconds: Spread
    """To the answer of `find_tools`, asked right after, which names a tool of a live server."""


async def measure_readiness(runs: int, upstreams: int = 20, dead: int = 2) -> ReadinessMeasure:
    """Return how long starting takes, measured now.

    Raises:
        BenchError: the skill or the tools of the live servers are not listed.
    """
    live = {f"live{number:02}": ECHO_COMMAND for number in range(upstreams - dead)}
    listed: list[float] = []
    found: list[float] = []
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        async with client_of(serve_command(Path(folder), live)) as client:
            await _fill(client)
        both = live | {f"dead{number}": _DEAD for number in range(dead)}
        serve = serve_command(Path(folder), both)
        for _ in range(runs):
            began = time.perf_counter()
            async with client_of(serve) as client:
                await _check_listed(client)
                listed.append(time.perf_counter() - began)
                await _check_found(client)
                found.append(time.perf_counter() - began)
    return ReadinessMeasure(
        upstreams=upstreams, dead=dead, listed_seconds=spread_of(listed), found_seconds=spread_of(found)
    )


async def _fill(client: Client) -> None:
    saved = await client.call_tool(
        "repair_workflow",
        {
            "workflow": _WORKFLOW,
            "inputs": {"text": _TEXT},
            "assertions": [f"output.said == '{_TEXT}'"],
            "save_as": _SKILL,
        },
    )
    if saved.is_error:
        raise BenchError(f"the skill could not be saved: {saved.content}")
    await _check_found(client)


async def _check_listed(client: Client) -> None:
    names = {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
    if _SKILL not in names:
        raise BenchError(f"the skill is not listed, only {', '.join(sorted(names))}")


async def _check_found(client: Client) -> None:
    answer = await client.call_tool("find_tools", {"query": "return the text it is given"})
    found = cast("dict[str, JsonValue]", answer.structured_content or {})
    if answer.is_error or not found.get("tools"):
        raise BenchError(f"no tool of a live server is found: {answer.content}")

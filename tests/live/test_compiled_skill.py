"""A skill compiled from real servers, listed and called by stock clients over every way and era."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client, StdioServerParameters

pytestmark = [pytest.mark.anyio, pytest.mark.live, pytest.mark.legacy_era]

CLI = [sys.executable, "-m", "server.cli"]
ARGUMENTS = {"miles": 420, "gallons": 12}
INSPECTOR = ["npx", "-y", "@modelcontextprotocol/inspector@2.12.0", "--cli"]
needs_npx = pytest.mark.skipif(shutil.which("npx") is None, reason="npx is not installed")
eras = pytest.mark.parametrize("era", ["legacy", "auto"])


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Break, repair, compile and admit the fuel story; return the options that name its bank."""
    kept = tmp_path_factory.mktemp("bank") / "kept"
    command = [*CLI, "demo", "--story", "litres_per_100km", "--keep", str(kept), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return ["--config", str(kept / "config.json"), "--store", str(kept / "store.db")]


@asynccontextmanager
async def served_over_http(options: list[str]) -> AsyncGenerator[str]:
    command = [*CLI, "serve", "--http", "127.0.0.1:0", "--no-token", *options]
    async with await anyio.open_process(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            with anyio.fail_after(60):
                lines, said = BufferedByteReceiveStream(process.stderr), b""
                while not said.startswith(b"serving at "):
                    said = await lines.receive_until(b"\n", 10_000)
            yield said.decode().removeprefix("serving at ").strip()
        finally:
            process.terminate()


async def lists_and_calls(target: str | StdioServerParameters, era: str) -> None:
    with anyio.fail_after(90):
        async with Client(target, mode=era, read_timeout_seconds=60) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            result = await client.call_tool("litres_per_100km", ARGUMENTS)
    skill = tools["litres_per_100km"]
    assert set(skill.input_schema["properties"]) == set(ARGUMENTS)
    assert skill.output_schema is not None
    assert skill.annotations is not None
    assert skill.annotations.read_only_hint is True
    assert result.structured_content is not None
    assert result.structured_content["litres_per_100km"] == pytest.approx(6.7204, abs=0.001)


@eras
async def test_the_sdks_client_over_stdio(bank: list[str], era: str):
    command, *arguments = [*CLI, "serve", *bank]
    await lists_and_calls(StdioServerParameters(command=command, args=arguments), era)


@eras
async def test_the_sdks_client_over_http(bank: list[str], era: str):
    async with served_over_http(bank) as url:
        await lists_and_calls(url, era)


async def inspected(target: list[str], era: str, home: Path) -> None:
    npm = {
        "npm_config_cache": str(Path.home() / ".npm"),
        "npm_config_userconfig": str(Path.home() / ".npmrc"),
    }
    call = ["--method", "tools/call", "--tool-name", "litres_per_100km"]
    given = ["--tool-args-json", json.dumps(ARGUMENTS)]
    with anyio.fail_after(180):
        done = await anyio.run_process(
            [*INSPECTOR, "--protocol-era", era, *target, *call, *given],
            env={**npm, **os.environ, "HOME": str(home)},
            check=False,
        )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    answer = json.loads(done.stdout)["structuredContent"]
    assert answer["litres_per_100km"] == pytest.approx(6.7204, abs=0.001)


@needs_npx
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_over_stdio(bank: list[str], era: str, tmp_path: Path):
    _, config, _, store = bank
    variables = ["-e", f"SKILLBANK_CONFIG={config}", "-e", f"SKILLBANK_STORE={store}"]
    await inspected([*variables, *CLI, "serve"], era, tmp_path)


@needs_npx
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_over_http(bank: list[str], era: str, tmp_path: Path):
    async with served_over_http(bank) as url:
        await inspected([url], era, tmp_path)

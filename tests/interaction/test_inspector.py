"""The MCP Inspector's command line, a client that shares no code with the SDK, lists and calls a skill."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import anyio
import pytest
from fake_bank import FakeBank, served_over_http

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("npx") is None, reason="npx is not installed"),
]
INSPECTOR = ["npx", "-y", "@modelcontextprotocol/inspector@2.12.0", "--cli"]
PROGRAM = [sys.executable, str(Path(__file__).parent / "fake_bank.py")]


@pytest.fixture(params=["legacy", "modern"])
def inspector_era(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Let the Inspector keep its files in a folder of the test, and npm its own where they are."""
    npm = {
        "npm_config_cache": str(Path.home() / ".npm"),
        "npm_config_userconfig": str(Path.home() / ".npmrc"),
    }
    return {**npm, **os.environ, "HOME": str(tmp_path)}


async def inspected(target: list[str], options: list[str], environment: dict[str, str]) -> tuple[dict, str]:
    """Return what the Inspector printed: its answer, and its remarks."""
    with anyio.fail_after(120):
        done = await anyio.run_process([*INSPECTOR, *target, *options], env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout), done.stderr.decode()


async def lists_and_calls(target: list[str], era: str, environment: dict[str, str]) -> None:
    chosen = ["--protocol-era", era]
    listed, remarks = await inspected([*chosen, *target], ["--method", "tools/list", "--strict"], environment)
    call = ["--method", "tools/call", "--tool-name", "double", "--tool-arg", "value=21"]
    called, _ = await inspected([*chosen, *target], call, environment)
    assert "double" in [tool["name"] for tool in listed["tools"]]
    assert "warning" not in remarks.replace("0 warnings", "")
    assert called["structuredContent"] == {"doubled": 42}


async def test_over_stdio(inspector_era: str, environment: dict[str, str]):
    await lists_and_calls(PROGRAM, inspector_era, environment)


async def test_over_http(inspector_era: str, environment: dict[str, str]):
    async with served_over_http(FakeBank()) as url:
        await lists_and_calls([url], inspector_era, environment)


async def test_the_packages_of_skills_are_verified(environment: dict[str, str]):
    async with served_over_http(FakeBank()) as url:
        options = ["--protocol-era", "modern", url, "--method", "skills/list", "--verify"]
        with anyio.fail_after(120):
            done = await anyio.run_process([*INSPECTOR, *options], env=environment, check=False)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said[-2_000:]
    assert "Verified 4 skills and 28 files: no conformance errors." in said

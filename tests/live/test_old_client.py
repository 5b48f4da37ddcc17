"""A client of the SDK's first generation, in an environment of its own, uses the server over every way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import platformdirs
import pytest

pytestmark = [pytest.mark.anyio, pytest.mark.live]

HERE = Path(__file__).parent
FAKE_BANK = HERE.parent / "interaction" / "fake_bank.py"
OLD_SDK = "mcp>=1.20,<2"
INSTALL_SECONDS = 600
RUN_SECONDS = 120


@pytest.fixture(scope="module")
def old_python() -> str:
    """Return the interpreter of an environment with the old SDK, made once."""
    folder = (
        platformdirs.user_cache_path("skillbank") / "old-sdk" / f"{sys.version_info[0]}{sys.version_info[1]}"
    )
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", str(folder)], check=True, timeout=INSTALL_SECONDS
        )
        command = [str(python), "-m", "pip", "install", "-q", OLD_SDK]
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if done.returncode:
            pytest.skip(f"pip does not give {OLD_SDK}: {done.stderr.strip()[-300:]}")
        (folder / "complete").touch()
    return str(python)


async def used(python: str, *target: str) -> dict:
    command = [python, str(HERE / "old_client.py"), *target]
    with anyio.fail_after(RUN_SECONDS):
        done = await anyio.run_process(command, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    return json.loads(done.stdout)


EXPECTED = {
    "version": "1",
    "double": {"doubled": 42.0},
    "asked": ["Tool server weather asks: Which city?"],
    "progress": [[1.0, 1.0]],
    "unknown": "Unknown tool",
    "prompts": ["plan_with_skill", "write_verifier"],
    "completed": ["double"],
    "skill": "text/markdown",
    "changed": True,
}


async def test_over_stdio(old_python: str):
    assert await used(old_python, "stdio", sys.executable, str(FAKE_BANK)) == EXPECTED


@pytest.mark.parametrize("way", ["http", "sse"])
async def test_over_http(old_python: str, way: str):
    with subprocess.Popen(
        [sys.executable, str(FAKE_BANK), "http"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            target = url if way == "http" else f"{url.removesuffix('/mcp')}/sse"
            assert await used(old_python, way, target) == EXPECTED
        finally:
            process.terminate()

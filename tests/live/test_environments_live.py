"""Environments of other packages, served for real, played by OpenEnv's own client in its own environment."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from server.bench.errors import BenchError
from server.bench.fetched import fetch_environment
from server.environments.definitions import Definition, built_in
from server.environments.instances import Limits, open_instances
from server.environments.serving import serve_environments
from server.progress import ignore_progress
from server.settings import read_settings

pytestmark = [pytest.mark.live, pytest.mark.anyio]

PLAYING = Path(__file__).parent / "playing.py"


@pytest.fixture(scope="module")
def openenv() -> Path:
    """The folder of the programs of an environment that has OpenEnv from the package index."""
    try:
        return fetch_environment("openenv", ["openenv==0.10.0"], ignore_progress).parent
    except BenchError as error:
        pytest.skip(f"OpenEnv cannot be fetched: {error}")


def definition(name: str, folder: Path) -> Definition:
    config = folder / "config.json"
    config.write_text('{"mcpServers": {}}')
    try:
        return built_in(name, read_settings(config=config, store=folder / "store.db"), ignore_progress)
    except BenchError as error:
        pytest.skip(f"{name} cannot be fetched: {error}")


@asynccontextmanager
async def served(*definitions: Definition) -> AsyncGenerator[str]:
    """Serve them; yields the address."""
    ready = anyio.Event()
    urls: list[str] = []

    def tell(url: str) -> None:
        urls.append(url)
        ready.set()

    async with anyio.create_task_group() as group:
        chosen = {one.name: one for one in definitions}
        group.start_soon(serve_environments, chosen, Limits(), ("127.0.0.1", 0), tell)
        with anyio.fail_after(60):
            await ready.wait()
        try:
            yield urls[0]
        finally:
            group.cancel_scope.cancel()


async def said(*command: str) -> str:
    done = await anyio.run_process(command, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()[-2000:]
    return done.stdout.decode()


@pytest.mark.parametrize(
    ("name", "task", "seed"),
    [
        ("bfcl", "multi_turn_base_0", ()),
        ("bfcl", "multi_turn_miss_func_3", ()),
        ("tau-airline", "4", ()),
        ("textworld", "quest-3", ("3",)),
    ],
)
async def test_the_reference_is_worth_1_and_less_without_its_last_call(
    openenv: Path, tmp_path: Path, name: str, task: str, seed: tuple[str, ...]
) -> None:
    async with served(definition(name, tmp_path)) as url:
        played = await said(str(openenv / "python"), str(PLAYING), f"{url}/{name}", task, *seed)
    whole, damaged = json.loads(played.strip().splitlines()[-1])
    assert whole == 1.0
    assert damaged == 0.0


async def test_damaged_bfcl_episodes_stay_worth_0_in_a_worker_that_has_played_before(tmp_path: Path) -> None:
    async with open_instances({"bfcl": definition("bfcl", tmp_path)}) as pool:
        instance = await pool.create("bfcl")
        rewards: list[float | None] = []
        for number in range(8):
            await instance.reset("multi_turn_base_0")
            turns: Any = cast("dict[str, Any]", instance.state()["reference"])["turns"]
            kept = [*turns[:-1], turns[-1][:-1]] if number % 4 else turns
            for turn in kept:
                for call in turn:
                    await instance.step({"type": "call_tool", **call})
                played = await instance.step({"type": "submit", "answer": None})
            rewards.append(played.reward)
    assert rewards == [1.0, 0.0, 0.0, 0.0] * 2


async def test_openenvs_own_validator_passes(openenv: Path, tmp_path: Path) -> None:
    async with served(definition("textworld", tmp_path)) as url:
        report = json.loads(await said(str(openenv / "openenv"), "validate", "--url", url))
    assert report["passed"] is True
    assert [one["id"] for one in report["criteria"] if not one["passed"]] == []

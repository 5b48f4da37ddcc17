"""BFCL's checker in a worker that lives on: what an episode is worth does not depend on those before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from server.environments.definitions import Definition, built_in
from server.environments.instances import open_instances
from server.progress import ignore_progress
from server.provisioning.errors import ProvisioningError
from server.settings import read_settings

pytestmark = [pytest.mark.live, pytest.mark.anyio]


@pytest.fixture
def bfcl(tmp_path: Path) -> Definition:
    """BFCL from the package index."""
    config = tmp_path / "servers.json"
    config.write_text('{"mcpServers": {}}')
    settings = read_settings(config=config, store=tmp_path / "store.db")
    try:
        return built_in("bfcl", settings, ignore_progress)
    except ProvisioningError as error:
        pytest.skip(f"BFCL cannot be installed: {error}")


async def test_damaged_runs_stay_worth_0_in_a_worker_that_has_played_before(bfcl: Definition) -> None:
    async with open_instances({"bfcl": bfcl}) as pool:
        instance = await pool.create("bfcl")
        rewards: list[float | None] = []
        for number in range(12):
            await instance.reset("multi_turn_base_0")
            turns: Any = cast("dict[str, Any]", instance.state()["reference"])["turns"]
            played = None
            for turn in [*turns[:-1], turns[-1][:-1]] if number % 4 else turns:
                for call in turn:
                    await instance.step({"type": "call_tool", **call})
                played = await instance.step({"type": "submit", "answer": None})
            assert played is not None
            rewards.append(played.reward)
    assert rewards == [1.0, 0.0, 0.0, 0.0] * 3

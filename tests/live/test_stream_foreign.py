"""The worlds of others as tool servers and as families of the stream, their packages really installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from catalog.config import Config, ServerSpec
from catalog.connections import open_connections
from catalog.result import CallFailure, CallSuccess
from catalog.tools import ToolId
from server.bench.kept import Kept
from server.bench.stream_foreign import ForeignSize, measure_foreign
from server.bench.stream_foreign_tasks import WORLDS, WorldName
from server.environments.definitions import built_in
from server.environments.tool_server import TASK_VARIABLE, WorldTask, begin_world_task, calls_of
from server.progress import ignore_progress
from server.provisioning.errors import ProvisioningError
from server.settings import read_settings

pytestmark = [pytest.mark.live, pytest.mark.anyio]


def needs(name: str, folder: Path) -> None:
    """Skip where the packages of a world cannot be installed."""
    config = folder / "servers.json"
    config.write_text('{"mcpServers": {}}')
    try:
        built_in(name, read_settings(config=config, store=folder / "store.db"), ignore_progress)
    except ProvisioningError as error:
        pytest.skip(f"{name} cannot be installed: {error}")


async def test_a_served_world_begins_anew_with_its_file_and_lists_the_same_tools(tmp_path: Path) -> None:
    needs("bfcl", tmp_path)
    file = tmp_path / "task.json"
    begin_world_task(file, WorldTask(id="multi_turn_base_1"))
    arguments = ("-m", "server.environments.tool_server", "bfcl")
    spec = ServerSpec(name="bfcl", command=sys.executable, args=arguments, env={TASK_VARIABLE: str(file)})
    async with open_connections(Config(servers={"bfcl": spec})) as connections:
        listed = (await connections.snapshot(["bfcl"])).tools
        first = await connections.call(ToolId("bfcl", "pwd"), {})
        made = await connections.call(ToolId("bfcl", "mkdir"), {"dir_name": "new"})
        assert [call["tool_name"] for call in calls_of(file)] == ["pwd", "mkdir"]
        there = await connections.call(ToolId("bfcl", "ls"), {})
        begin_world_task(file, WorldTask(id="multi_turn_base_1", attempt=1))
        gone = await connections.call(ToolId("bfcl", "ls"), {})
        begin_world_task(file, WorldTask(id="multi_turn_base_60"))
        withheld = await connections.call(ToolId("bfcl", "pwd"), {})
        started = await connections.call(ToolId("bfcl", "lockDoors"), {"unlock": False, "door": ["driver"]})
        begin_world_task(file, WorldTask(id="no_such_task"))
        unknown = await connections.call(ToolId("bfcl", "pwd"), {})
    assert len(listed) > 100
    assert isinstance(first, CallSuccess)
    assert isinstance(made, CallSuccess)
    assert isinstance(there, CallSuccess)
    assert "new" in str(there.output)
    assert isinstance(gone, CallSuccess)
    assert "new" not in str(gone.output)
    assert isinstance(withheld, CallFailure)
    assert "no tool 'pwd'" in withheld.message
    assert isinstance(started, CallSuccess)
    assert isinstance(unknown, CallFailure)
    assert "no_such_task" in unknown.message


@pytest.mark.parametrize("world", WORLDS)
async def test_a_family_is_recorded_compiled_and_judged_by_its_world(
    world: WorldName, tmp_path: Path
) -> None:
    needs(world, tmp_path)
    size = ForeignSize(worlds=(world,), families=2, each=2)
    report = await measure_foreign(size, Kept(None), ignore_progress)
    assert report.missing == ()
    (played,) = report.worlds
    first = [line for line in played.lines if line.number == 1]
    assert len(first) == 2
    assert all(line.recorded and line.called is None for line in first)
    assert all(line.compiled and line.state for line in first)
    again = [line.again.right for line in first if line.again is not None]
    assert again == [True, True]
    second = [line for line in played.lines if line.number == 2]
    assert second
    assert all(line.called is not None for line in second)

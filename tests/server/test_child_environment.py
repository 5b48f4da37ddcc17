"""What a server process gets to see of our environment, and what of it is never written down."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from catalog.testing.defects import defect_command, read_log
from catalog.tools import ToolId
from server.settings import Settings
from server.wiring import open_bank

pytestmark = pytest.mark.anyio

SECRET = "s3cret-v4lue-of-mine"
ALLOWED = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}


def variables(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


async def test_placeholders_are_filled_for_the_child_alone_and_written_down_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_SECRET", "never seen")
    log = tmp_path / "log"
    command, args = defect_command("none", log)
    env = {"TOKEN": "${MY_TOKEN}", "MODE": "${MODE:-quiet}"}
    document = {"mcpServers": {"odd": {"command": command, "args": [*args], "env": env}}}
    config = tmp_path / "kept" / "config.json"
    config.parent.mkdir()
    config.write_text(json.dumps(document))
    settings = Settings(config, config.with_name("store.db"), environment={"MY_TOKEN": SECRET})
    with anyio.fail_after(60):
        async with open_bank(settings) as bank:
            assert config.read_text() == json.dumps(document)
            await bank.call_tool(ToolId("odd", "good"), {"said": f"with {SECRET} in it"})
            (pid,) = (entry["started"] for entry in read_log(log) if "started" in entry)
            seen = variables(pid)
    assert (seen["TOKEN"], seen["MODE"]) == (SECRET, "quiet")
    assert set(seen) - ALLOWED == {"TOKEN", "MODE", "SKILLBANK_CHILD"}
    assert config.read_text() == json.dumps(document)
    written = [file.read_bytes() for file in config.parent.rglob("*") if file.is_file()]
    assert len(written) >= 2
    assert not any(SECRET.encode() in data for data in written)


async def test_a_placeholder_is_filled_at_each_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command, args = defect_command("dies_after_call", log)
    env = {"TOKEN": "${MY_TOKEN}"}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {"odd": {"command": command, "args": [*args], "env": env}}}))
    environment = {"MY_TOKEN": "first"}
    seen: list[str] = []
    with anyio.fail_after(60):
        async with open_bank(Settings(config, tmp_path / "store.db", environment=environment)) as bank:
            connection = bank.context.connections.connection("odd")
            assert connection is not None
            for value in ("first", "second"):
                environment["MY_TOKEN"] = value
                assert await connection.ready()
                pid = [entry["started"] for entry in read_log(log) if "started" in entry][-1]
                seen.append(variables(pid)["TOKEN"])
                await bank.call_tool(ToolId("odd", "good"), {})
                await connection.lost()
    assert seen == ["first", "second"]

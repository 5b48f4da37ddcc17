"""The demo on the real servers, as a person starts it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from server.provisioning.demo_servers import DEMO_SERVERS

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        shutil.which("git") is None or any(server.version() is None for server in DEMO_SERVERS),
        reason="needs git and skillbank[demo]",
    ),
]

DEMO = [sys.executable, "-m", "server.cli", "demo", "--json"]


def test_every_story_ends_in_a_tool_that_answers_a_client_right(tmp_path: Path):
    keep = tmp_path / "kept"
    done = subprocess.run([*DEMO, "--keep", str(keep)], capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)

    assert report["problems"] == []
    assert (done.returncode, report["ok"]) == (0, True)
    assert {server["name"] for server in report["servers"]} == {server.name for server in DEMO_SERVERS}
    for story in report["stories"]:
        assert story["faults"]
        assert story["edits"]
        assert all(edit["because"] for edit in story["edits"])
        assert all(edit["because"] != "another plan" for edit in story["edits"])
        assert story["status"] == "verified"
        assert all(check["passed"] for check in story["verdict"]["checks"])
        assert story["called"]["right"]
        assert story["skill"] in report["tools"]
    kinds = {edit["kind"] for story in report["stories"] for edit in story["edits"]}
    assert kinds >= {"swap_tool", "edit_parameter", "insert_node", "reorder"}
    assert str(keep / "store.db") in report["connect"]["command"]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to find processes")
@pytest.mark.parametrize("moment", ["repair", "admit", "call"])
def test_an_interrupt_leaves_no_process(tmp_path: Path, moment: str):
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [*DEMO, "--story", "sales_by_region"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stderr is not None
        seen = next((line for line in demo.stderr if line.startswith(moment)), None)
        assert seen is not None
        assert len(_processes_at_home(tmp_path)) > 1
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=60)

    assert demo.returncode == 130
    assert _processes_at_home(tmp_path) == []


def _processes_at_home(home: Path) -> list[str]:
    """Return the commands of all living processes that were given this home folder."""
    mark = f"HOME={home}".encode()
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it ended meanwhile, or is another user's
            continue
    return found

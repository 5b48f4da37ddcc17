"""Exploring a real server from the package index, as a developer who registers it would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.live

SKILLBANK = (sys.executable, "-m", "server.cli")
CALCULATOR = Path(sys.executable).with_name("calculator-mcp-server")


def skillbank(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    places = ("--config", str(folder / "config.json"), "--store", str(folder / "store.db"))
    return subprocess.run(
        [*SKILLBANK, *words[:1], *places, *words[1:]],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.skipif(not CALCULATOR.exists(), reason="needs the demo extra: pip install 'skillbank[demo]'")
def test_a_registered_server_is_explored_by_one_command(tmp_path: Path):
    added = skillbank(tmp_path, "add", "calculator", "--yes", "--", str(CALCULATOR), "--stdio")
    assert added.returncode == 0, added.stderr

    asked = skillbank(tmp_path, "explore", "calculator", "--json")
    assert asked.returncode == 3, asked.stderr
    assert "Exploring calculator would start" in asked.stderr

    tasks = tmp_path / "tasks.jsonl"
    made = skillbank(
        tmp_path,
        "explore",
        "calculator",
        "--json",
        "--yes",
        "--budget-calls",
        "120",
        "--tasks",
        "3",
        "--out",
        str(tasks),
    )
    assert made.returncode == 0, made.stderr
    report = json.loads(made.stdout)
    assert report["coverage"]["called"] == report["coverage"]["tools"] > 0
    assert report["calls"] <= 120
    assert len(report["tasks"]) == 3
    assert tasks.read_text().count("\n") == 3
    assert {skill["state"] for skill in report["skills"]} <= {"active", "proposed", "context_only"}
    assert any(skill["state"] == "active" for skill in report["skills"])

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


@pytest.mark.skipif(not CALCULATOR.exists(), reason="needs the demo extra: pip install 'skillbank[demo]'")
def test_a_bank_evolves_over_a_real_server_by_one_command(tmp_path: Path):
    added = skillbank(tmp_path, "add", "calculator", "--yes", "--", str(CALCULATOR), "--stdio")
    assert added.returncode == 0, added.stderr
    mine = tmp_path / "mine.jsonl"
    mine.write_text(
        json.dumps({"id": "mine", "task": "Add 3 and 5.", "assertions": ["output.result == `8`"]}) + "\n"
    )
    size = ("--rounds", "2", "--budget-calls", "160", "--picked", "2", "--attempts", "1")

    asked = skillbank(tmp_path, "evolve", "calculator", "--json", *size)
    assert asked.returncode == 3, asked.stderr
    assert "Exploring calculator would start" in asked.stderr

    out = tmp_path / "made.jsonl"
    made = skillbank(
        tmp_path,
        "evolve",
        "calculator",
        "--json",
        "--yes",
        *size,
        *("--tasks", str(mine), "--mix", "0.5", "--out", str(out)),
    )
    assert made.returncode == 0, made.stderr
    report = json.loads(made.stdout)
    assert [(one["picked_user"], one["picked_synthetic"]) for one in report["rounds"]] == [(1, 1), (1, 1)]
    assert report["rounds"][0]["explored"]["calculator"] > 0
    assert report["calls"] <= 160
    assert out.read_text().count("\n") == len(report["made"]) > 0
    assert any(task["id"] == "mine" and task["right"] > 0 for task in report["tasks"])


@pytest.mark.skipif(not CALCULATOR.exists(), reason="needs the demo extra: pip install 'skillbank[demo]'")
def test_the_quick_explore_benchmark_prints_its_numbers(tmp_path: Path):
    measured = skillbank(tmp_path, "bench", "explore", "--quick", "--json")
    assert measured.returncode == 0, measured.stderr
    report = json.loads(measured.stdout)
    assert report["quick"]
    for server in report["servers"]:
        assert server["problem"] is None
        assert server["called"] == server["tools"] > 0
        assert server["resolved"] == server["kept"] > 0
        assert server["after"] >= server["before"]

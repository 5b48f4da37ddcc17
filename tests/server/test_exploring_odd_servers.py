"""Exploring servers that are odd or hostile: whatever they send, there is a report at the end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from catalog.effects import Effect
from catalog.testing import Reply, ScriptedServer, ScriptedTool
from catalog.testing.defects import DEFECTS, defect_command, read_log
from catalog.testing.endurance import living
from server.bank.upstreams.exploration import Exploration
from server.exploration.options import ExplorationOptions
from server.settings import Settings
from server.wiring import open_bank
from tests.server.conftest import TEXT, schema

pytestmark = pytest.mark.anyio

EXPECTED = {
    "silent": "unavailable",
    "dies_at_start": "unavailable",
    "refuses_listing": "unavailable",
    "wrong_protocol": "unavailable",
    "dies_at_call": "crash",
    "dies_after_call": "crash",
    "hangs": "hang",
    "never_answers_calls": "hang",
    "out_of_order": "hang",
    "bad_output": "output-schema-mismatch",
    "nan": "malformed-answer",
    "unreadable_answer": "malformed-answer",
    "wrong_shape": "malformed-answer",
    "malformed_result": "protocol",
    "noise": "protocol",
    "duplicate_names": "protocol",
    "endless_pages": "protocol",
    "repeated_cursor": "protocol",
    "malformed_tools": "quarantined",
    "unreadable_tools": "quarantined",
    "hostile_schemas": "quarantined",
    "odd_names": "strict-hosts",
    "endless_line": "large-answer",
}
"""The rule that tells of a defect; the others cannot be told from a healthy server by its tools' answers."""


def options(**changed: Any) -> ExplorationOptions:
    return ExplorationOptions(**{"budget_calls": 120, "tasks": 4, "calls_per_second": 10_000, **changed})


def _odd() -> list[ScriptedTool]:
    text = schema(text=TEXT)

    def lengths(key: str) -> Any:
        return lambda a: {key: len(a["text"])}

    return [
        ScriptedTool("測量", lengths("length"), text, description="Measure a text."),
        ScriptedTool("--", lengths("size"), text, description="長さ。"),
        ScriptedTool(
            "other_letters", lambda a: {"n": len(a["文字"])}, schema(文字=TEXT), description="Count."
        ),
        ScriptedTool(
            "punctuated",
            lambda a: {"marks": len(a["?!"])},
            schema(**{"?!": TEXT}),
            description="Look for marks and points.",
        ),
        ScriptedTool("braces", lengths("{length}"), text, description="Count letters."),
        ScriptedTool("hashes", lengths("#"), text, description="Count letters."),
        ScriptedTool("slashes", lengths("a/b~c"), text, description="Take a ruler to something long."),
        ScriptedTool("empty_key", lengths(""), text, description="Count letters."),
        ScriptedTool(
            "a_number", lambda a: {"n": a["n"] + 1}, schema(n={"type": "number"}), description="Add one."
        ),
        ScriptedTool("set_of_sets", lambda _: Reply.text("[{{1}}]"), text, description="Say."),
        ScriptedTool("deep", lambda _: Reply.text("[" * 9_000), text, description="Say."),
        ScriptedTool(
            "dollars",
            lambda a: {"$inputs.text": len(a["text"]), "$": "$nodes.x.output"},
            text,
            description="Say.",
        ),
        ScriptedTool(
            "path_like", lambda _: Reply.text("/a" * 40_000, is_error=True), text, description="Say."
        ),
        ScriptedTool("nothing", lambda _: {}, text, description="Say."),
        ScriptedTool("null", lambda _: {"value": None}, text, description="Say."),
    ]


async def test_odd_names_and_answers_end_in_a_report(open_desk):
    server = ScriptedServer(_odd)
    async with open_desk({"odd": server}, effects={"odd": {"*": Effect.READ}}) as desk:
        report = await desk.bank.explore(Exploration("odd", options(budget_calls=900, tasks=30)))
    assert report.coverage.called == report.coverage.tools == len(_odd())
    solvers = {tool for task in report.tasks for tool in task.solvers}
    assert {"測量", "--", "other_letters", "punctuated", "slashes"} <= solvers
    assert not {"nothing", "null"} & solvers


@pytest.mark.parametrize("defect", sorted(DEFECTS))
async def test_every_defect_of_a_process_ends_in_a_report(defect: str, tmp_path: Path):
    log = None if defect == "dies_at_call" else tmp_path / "log.jsonl"  # with one, only its first life dies
    command, args = defect_command(defect, log)
    server = {"command": command, "args": [*args], "timeout_seconds": 6}
    config = tmp_path / "config.json"
    own = {"effects": {"odd": {"*": "read"}}}
    config.write_text(json.dumps({"mcpServers": {"odd": server}, "skillbank": own}))
    asked = Exploration("odd", options(budget_calls=30, tasks=2, call_timeout_seconds=1.0))
    with anyio.fail_after(60):
        async with open_bank(Settings(config, tmp_path / "store.db", environment=dict(os.environ))) as bank:
            report = await bank.explore(asked)
    found = {finding.rule for finding in report.health.findings}
    assert report.calls <= 30
    assert bool(report.unreachable) == ("unavailable" in found) == (report.coverage.called == 0)
    assert EXPECTED.get(defect, "no-annotations") in found
    started = [entry["started"] for entry in read_log(log or tmp_path / "none") if "started" in entry]
    assert living(started) == []


def _scenario(folder: Path, *tools: dict[str, Any]) -> tuple[Path, Path]:
    """Write a server of its own process with these tools, all unknown but `look_*`; return config and log."""
    log, scenario, config = folder / "log.jsonl", folder / "scenario.json", folder / "config.json"
    scenario.write_text(json.dumps({"tools": [*tools], "log": str(log)}))
    server = {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)]}
    own = {"effects": {"odd": {"look_*": "read", "change": "write"}}}
    config.write_text(json.dumps({"mcpServers": {"odd": server}, "skillbank": own}))
    return config, log


def _tool(name: str, behaviour: str, **fields: Any) -> dict[str, Any]:
    text = schema(text=TEXT)
    return {
        "name": name,
        "behaviour": behaviour,
        "input_schema": text,
        "description": f"To {name}.",
        **fields,
    }


def _skillbank(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    places = ("--config", str(folder / "config.json"), "--store", str(folder / "store.db"))
    command = [sys.executable, "-m", "server.cli", words[0], *places, *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("command", ["explore", "evolve"])
def test_a_server_that_counts_never_sees_a_call_that_may_change_it(command: str, tmp_path: Path):
    _, log = _scenario(
        tmp_path,
        _tool("look_back", "echo"),
        _tool("look_up", "answers", answers=[{"n": 3}]),
        _tool("change", "store"),
        _tool("mystery", "store"),
        _tool("delete_all", "store", annotations={"readOnlyHint": True}),
    )
    size = ("--rounds", "1") if command == "evolve" else ()
    ran = _skillbank(tmp_path, command, "odd", "--json", "--yes", "--budget-calls", "60", *size)
    assert ran.returncode == 0, ran.stderr
    called = [entry["tool"] for entry in read_log(log) if "called" in entry]
    assert {"look_back", "look_up"} <= set(called) <= {"look_back", "look_up"}
    if command == "explore":
        report = json.loads(ran.stdout)
        assert report["coverage"]["withheld"] == 3
        assert 0 < report["calls"] <= 60


def test_what_is_said_to_open_what_is_withheld_does_open_it(tmp_path: Path):
    _scenario(tmp_path, _tool("look_back", "echo"), _tool("change", "store"), _tool("mystery", "store"))
    told = _skillbank(tmp_path, "explore", "odd", "--yes", "--no-learn", "--budget-calls", "20").stdout
    commands = re.findall(r"`skillbank ([^`]+)`", told)
    assert len(commands) == 2
    for command in commands:
        words = command.replace("TOOL", "mystery").split()
        places = ("--config", str(tmp_path / "config.json"), "--store", str(tmp_path / "store.db"))
        done = subprocess.run(
            [sys.executable, "-m", "server.cli", *words, *places], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    again = _skillbank(tmp_path, "explore", "odd", "--yes", "--json", "--no-learn", "--budget-calls", "40")
    assert json.loads(again.stdout)["coverage"]["withheld"] == 0


def test_a_process_that_lies_crashes_and_hangs_is_reported_by_the_command(tmp_path: Path):
    _, log = _scenario(
        tmp_path,
        _tool("look_well", "echo"),
        _tool("look_false", "answers", answers=["Error: it did not work"]),
        _tool("look_dead", "answers", answers=[{"$vanish": True}]),
        _tool("look_long", "echo", latency_seconds=600),
    )
    ran = _skillbank(
        tmp_path,
        *("explore", "odd", "--json", "--ci", "--call-seconds", "2", "--budget-calls", "60"),
    )
    assert ran.returncode == 1, ran.stderr
    report = json.loads(ran.stdout)
    found = {(finding["tool"], finding["rule"]) for finding in report["health"]["findings"]}
    assert {("look_false", "disguised-error"), ("look_dead", "crash"), ("look_long", "hang")} <= found
    assert not {("look_well", "crash"), ("look_well", "hang"), ("look_well", "disguised-error")} & found
    assert report["coverage"]["called"] == 4
    started = [entry["started"] for entry in read_log(log) if "started" in entry]
    assert len(started) > report["health"]["crashes"] > 0
    assert living(started) == []

"""Exploring servers that are odd or hostile: whatever they send, there is a report at the end."""

from __future__ import annotations

import json
import os
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
    server = {"command": command, "args": [*args], "timeout_seconds": 3}
    config = tmp_path / "config.json"
    own = {"effects": {"odd": {"*": "read"}}}
    config.write_text(json.dumps({"mcpServers": {"odd": server}, "skillbank": own}))
    asked = Exploration("odd", options(budget_calls=30, tasks=2, call_timeout_seconds=0.3))
    with anyio.fail_after(60):
        async with open_bank(Settings(config, tmp_path / "store.db", environment=dict(os.environ))) as bank:
            report = await bank.explore(asked)
    found = {finding.rule for finding in report.health.findings}
    assert report.calls <= 30
    assert bool(report.unreachable) == ("unavailable" in found) == (report.coverage.called == 0)
    assert EXPECTED.get(defect, "no-annotations") in found
    started = [entry["started"] for entry in read_log(log or tmp_path / "none") if "started" in entry]
    assert living(started) == []

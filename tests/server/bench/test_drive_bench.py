"""The drive benchmark: the scripted policy is right where the template keeps what it needs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from server.backends.backend import Message, Request
from server.backends.scripted import ScriptedBackend
from server.bench.drive_bench import quick_drive_options, run_drive_bench
from server.bench.drive_context import Contexts, measure_model, open_drives, scripted_policy
from server.bench.drive_environments import measure_environments
from server.bench.drive_references import damaged
from server.bench.drive_report import DriveBenchReport, render_drive_report
from server.bench.kept import Kept
from server.progress import ignore_progress
from server.wiring import open_bank

pytestmark = pytest.mark.anyio


def said(*texts: str) -> dict:
    messages = tuple(Message("user", text) for text in texts)
    return json.loads(scripted_policy(8)(Request(messages)))


def test_the_policy_knows_nothing_but_what_it_is_shown():
    assert said("task")["tool"] == "git_log"
    assert said('r1: {"text": "Author: Alan"}')["tool"] == "hash_sha256"
    seven = "[result r1 cleared: 9 characters; recall r1 to see it]\nr6: {}"
    assert said(seven) == {
        "thought": "on to the next",
        "tool": "recall",
        "arguments": {"result": "r1", "pointer": ""},
    }
    assert said(seven, "r1: Author: Grace")["arguments"] == {"data": "Grace"}
    assert said("r7: {}")["tool"] == "finish"


async def test_a_window_carries_what_an_append_only_context_cannot():
    contexts = Contexts((30,), (4_096,), ("causal", "window"))
    options = replace(quick_drive_options(), contexts=contexts, parts=("context", "export"))
    report = await run_drive_bench(options, open_bank)
    causal, window = report.rows
    assert (causal.right, causal.ended) == (False, "context")
    assert (window.right, window.ended) == (True, "finished")
    assert window.largest_prompt < causal.largest_prompt
    assert report.export is not None
    # Those above, and three words, each right and wrong, guided and not.
    assert report.export.drives == 2 + 3 * 2 * 2
    rows = {one.file: one.rows for one in report.export.files}
    assert rows["trl/dpo.train.jsonl"] == 7
    assert rows["trl/grpo.train.jsonl"] > 12
    assert (report.export.checked_by, sum(one.loaded for one in report.export.files)) == ("", 0)
    table = render_drive_report(report)
    assert "| scripted policy | window | 4096 | 1 | **1** |" in table
    assert "no model was driven" in table
    assert "nothing was loaded: the trainer's packages are not here" in table
    assert "left out: environments, references" in table


async def test_a_killed_worker_disturbs_none_of_fifteen_others():
    told = await measure_environments(quick=True)
    assert (told.at_once, told.rewarded, told.killed_told, told.killed_reset) == (
        16,
        15,
        "WORKER_FAILED",
        True,
    )
    assert 0 < told.step_ms.median < told.reset_ms.median
    report = DriveBenchReport(quick=True, environments=told, versions={}, seconds=1)
    assert "of the 15 others **15** ended with reward 1" in render_drive_report(report)


async def test_a_model_is_driven_through_short_tasks_and_finished_rows_are_kept(tmp_path: Path):
    said = [
        {"tool": "hash_sha256", "arguments": {"data": "milk"}},
        {"tool": "finish", "arguments": {"digest": "$r1#/result"}},
        {"tool": "hash_md5", "arguments": {"data": "milk"}},
        {"tool": "hash_sha1", "arguments": {"data": "$r1#/result"}},
        {"tool": "finish", "arguments": {"digest": "$r2#/result"}},
    ]
    model = ScriptedBackend([json.dumps(one) for one in said], name="scripted:model")
    contexts = Contexts((), (8_192, 4_096), ("causal",))
    for _ in range(2):  # the second time there is nothing left to say
        async with open_drives(open_bank) as drives:
            kept = Kept(tmp_path / "kept.jsonl")
            rows = await measure_model(drives, model, contexts, kept, ignore_progress)
        assert [(row.task, row.window, row.taken, row.right, row.verified) for row in rows] == [
            ("one_hash", 4_096, 2, True, True),
            ("hash_of_hash", 4_096, 3, True, True),
        ]
    assert len((tmp_path / "kept.jsonl").read_text().splitlines()) == 2


CALLS: list[Any] = [
    {"tool_name": name, "arguments": {}} for name in ("get_user", "cancel_order", "get_order")
]


@pytest.mark.parametrize(
    ("turns", "other", "left"),
    [
        ([CALLS], None, ["get_user", "cancel_order"]),
        ([CALLS, []], None, ["get_user", "cancel_order"]),
        ([CALLS], CALLS[1], ["get_user", "get_order"]),
        ([CALLS[:1]], CALLS[1], ["get_user", "cancel_order"]),
        ([[]], None, []),
    ],
    ids=["last call", "last turn empty", "last change", "no change", "nothing"],
)
def test_a_damaged_run_lacks_what_counts_or_changes_what_must_not(turns: Any, other: Any, left: list[str]):
    broken = damaged(turns, other)
    assert [call["tool_name"] for turn in broken for call in turn] == left
    assert len(broken) == len(turns)

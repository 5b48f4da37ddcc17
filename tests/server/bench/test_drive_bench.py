"""The drive benchmark: the scripted policy is right where the template keeps what it needs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from server.backends.backend import Message, Request
from server.bench.drive_bench import quick_drive_options, run_drive_bench, scripted_policy
from server.bench.drive_report import render_drive_report
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
    options = replace(quick_drive_options(), lengths=(30,), templates=("causal", "window"))
    report = await run_drive_bench(options, open_bank)
    causal, window = report.rows
    assert (causal.right, causal.ended) == (False, "context")
    assert (window.right, window.ended) == (True, "finished")
    assert window.largest_prompt < causal.largest_prompt
    table = render_drive_report(report)
    assert "| scripted policy | window | 4096 | 1 | **1** |" in table
    assert "no model was driven" in table
    told = report.environments
    assert (told.at_once, told.rewarded, told.killed_told, told.killed_reset) == (
        16,
        15,
        "WORKER_FAILED",
        True,
    )
    assert 0 < told.step_ms.median < told.reset_ms.median
    assert "of the 15 others **15** ended with reward 1" in table

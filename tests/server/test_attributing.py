"""Better labels for kept runs: by leaving steps out, answered from memory, or by a judge."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.bank import Bank
from server.bank.exchange.training import TrainingRequest
from server.training.errors import TrainerUnusable
from server.training.export import ExportOptions
from server.verification import Checks

pytestmark = pytest.mark.anyio

SIX = Checks(assertions=("output.sum == `6.0` || output.sum == `6`",))


async def run_with_a_stray(desk: Any, document: Any, node: Any, checks: Checks = SIX) -> str:
    """Run a workflow of which one step is read by nothing that counts, with a task in words."""
    plan = document(
        node("one", "calculator/add", {"a": 1, "b": 2}),
        node("stray", "calculator/add", {"a": "$nodes.one.output#/result", "b": 100}),
        node("end", "calculator/multiply", {"a": "$nodes.one.output#/result", "b": 2}),
        outputs={"sum": "$nodes.end.output#/result"},
    )
    report = await desk.bank.run(plan, {}, checks)
    assert report.status == "verified"
    kept = desk.store.trace(report.trace_id)
    desk.store.add_trace(kept.model_copy(update={"id": "told", "task": "Add 1 and 2, and double it"}))
    return report.trace_id


def labels(exported: Any) -> dict[str, tuple[str, str]]:
    [episode] = [json.loads(line) for line in exported.files["episodes.jsonl"].splitlines()]
    return {step["node"]: (step["label"], step["label_source"]) for step in episode["steps"]}


def request(**changed: Any) -> TrainingRequest:
    return TrainingRequest(ExportOptions(formats=("episodes",)), **changed)


async def test_ablation_labels_steps_out_of_memory(open_desk, document, node):
    async with open_desk() as desk:
        await run_with_a_stray(desk, document, node)
        before = desk.count()
        exported = await desk.bank.export_training(request(attribution="ablation"))
        assert desk.count() == before
    assert labels(exported) == {
        "one": ("good", "ablation"),
        "stray": ("bad", "ablation"),
        "end": ("good", "ablation"),
    }


async def test_without_another_source_labels_are_those_of_the_run(open_desk, document, node):
    async with open_desk() as desk:
        await run_with_a_stray(desk, document, node)
        exported = await desk.bank.export_training(request())
    assert labels(exported) == {
        "one": ("good", "execution"),
        "stray": ("bad", "execution"),
        "end": ("good", "execution"),
    }


async def test_a_judge_is_asked_once_a_run_and_what_it_leaves_out_keeps_its_label(open_desk, document, node):
    said = {"steps": [{"step": "one", "judgement": "BAD", "reason": "known before"}]}
    model = ScriptedBackend([json.dumps(said)])
    async with open_desk() as desk:
        await run_with_a_stray(desk, document, node)
        bank = Bank(replace(desk.context, models=with_backend(model)))
        exported = await bank.export_training(request(attribution="judge"))
    assert len(model.requests) == 1
    assert labels(exported)["one"] == ("bad", "judge")
    assert labels(exported)["end"] == ("good", "execution")


async def test_a_judge_that_nobody_configured_is_said_to_be_missing(open_desk, document, node):
    async with open_desk() as desk:
        await run_with_a_stray(desk, document, node)
        with pytest.raises(TrainerUnusable, match=r"models\.judge"):
            await desk.bank.export_training(request(attribution="judge"))

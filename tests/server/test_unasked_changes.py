"""Changes that a planner wrote and nobody asked for: a repair may do without them, a person's it may not."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from catalog.effects import Effect, EffectTable
from catalog.testing import ScriptedServer, ScriptedTool
from tests.worlds import NUMBER, SUMS, TEXT, gives, node, scene, takes, workflow

pytestmark = pytest.mark.anyio

_SHEETS = (
    ScriptedTool(
        "read_range",
        lambda _: {"total": 4.0},
        takes(range=TEXT),
        gives(total=NUMBER),
        "Read a range",
    ),
    ScriptedTool("write_range", lambda _: {"written": 1}, takes(range=TEXT), None, "Write a range"),
)
_READING = {"*": Effect.PURE, "write_range": Effect.WRITE}
_REFUSED = EffectTable({"sheets": _READING, "sums": {"*": Effect.PURE}})
_TASK = "Read the range B2:B4 and add 1 to it."
_RIGHT = "output.sum == `5`"


def _servers() -> dict[str, ScriptedServer]:
    return {"sheets": ScriptedServer(_SHEETS), "sums": ScriptedServer(SUMS)}


def _plan(**more: JsonValue):
    return workflow(
        node("read", "sheets/read_range", {"range": "$inputs.range"}),
        node("sum", "sums/add", {"a": "$nodes.read.output#/total", "b": 1}),
        node("write", "sheets/write_range", {"range": "$inputs.range"}, after=["sum"], **more),
        outputs={"sum": "$nodes.sum.output#/result"},
        inputs=("range",),
    )


@pytest.mark.parametrize(
    ("planned", "task", "more", "kept"),
    [
        (True, _TASK, {}, False),
        (False, _TASK, {}, True),
        (True, f"{_TASK} Write the sum there.", {}, True),
        (True, f"{_TASK} Put the sum there.", {}, True),
        (True, "Add 1 to what the range says.", {}, True),
        (True, _TASK, {"expect": ["output.written == `1`"]}, True),
    ],
    ids=["nobody asked", "a person's", "asked for", "in other words", "its noun is said", "with a check"],
)
async def test_a_refused_change_is_left_out_only_of_a_plan_for_a_task_that_asks_for_none(
    planned: bool, task: str, more: dict[str, JsonValue], kept: bool
) -> None:
    async with scene(
        _servers(), _RIGHT, task=task, inputs={"range": "B2:B4"}, effects=_REFUSED, planned=planned
    ) as made:
        result = await made.repair(_plan(**more))
    best = result.best
    assert (best.candidate.workflow.node("write") is not None) is kept
    assert (best.evaluation.status == "verified") is not kept
    assert [tool for tool, _ in made.calls("sheets") if tool == "write_range"] == []


async def test_a_change_that_happened_cannot_be_left_out_any_more() -> None:
    allowed = EffectTable(
        {"sheets": _READING, "sums": {"*": Effect.PURE}}, allow={"sheets": ("write_range",)}
    )
    async with scene(
        _servers(),
        "output.sum == 'never'",
        task=_TASK,
        inputs={"range": "B2:B4"},
        effects=allowed,
        planned=True,
    ) as made:
        result = await made.repair(_plan())
    assert [tool for tool, _ in made.calls("sheets")].count("write_range") == 1
    without = [record for record in result.records if record.candidate.workflow.node("write") is None]
    assert without
    assert all(
        any(fault.kind == "denied" for fault in record.evaluation.faults)
        for record in without
        if record.evaluation.status != "static_faults"
    )

"""What speaks against a skill: failures by class, feedback, how long ago, in a row."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.tools import ToolId
from skills_store.doubts import NO_DOUBTS, Doubts, doubts_of
from skills_store.trace import Trace, Verification
from skills_store.utility import Use
from skills_store.workflow.faults import CheckFailed, ToolError

HOUR = 3600.0
NOW = 1_000 * HOUR


def used(trace: str, *, right: bool, world: bool = False, hours_ago: float = 0, **more: Any) -> Use:
    fields: dict[str, Any] = {"version": 1, "route": "direct", **more}
    return Use("s", succeeded=right, world_fault=world, at=NOW - hours_ago * HOUR, trace=trace, **fields)


def ran(trace_id: str, *faults: Any, said: bool | None = None, **more: Any) -> Trace:
    feedback = () if said is None else (Verification(by="feedback", passed=said),)
    fields: dict[str, Any] = {"inputs": {}, "status": "failed" if faults else "succeeded", **more}
    return Trace(
        id=trace_id,
        workflow_hash="h",
        steps=(),
        outputs=None,
        faults=faults,
        verifications=feedback,
        **fields,
    )


WRONG = CheckFailed(message="no")
BROKEN = ToolError(message="no", node="n", tool=ToolId("a", "b"))


def doubts(*pairs: tuple[Use, Trace], version: int = 1) -> Doubts:
    traces = {trace.id: trace for _, trace in pairs}
    return doubts_of([use for use, _ in pairs], version, traces.get, NOW)


def test_nothing_speaks_against_an_unused_skill():
    assert doubts() == NO_DOUBTS
    assert (NO_DOUBTS.risk, NO_DOUBTS.veto) == (0.0, "")


def test_failures_are_counted_by_class():
    found = doubts(
        (used("a", right=False), ran("a", WRONG)),
        (used("b", right=True), ran("b")),
        (used("c", right=False), ran("c", BROKEN, WRONG)),
    )
    assert found.faults == (("check_failed", 2), ("tool_error", 1))
    assert found.in_a_row == 1


def test_two_failures_in_a_row_are_a_veto_and_a_success_ends_it():
    failed = [(used(name, right=False), ran(name, BROKEN)) for name in "ab"]
    assert doubts(*failed).veto == "its last 2 uses failed (tool_error)"
    assert doubts((used("c", right=True, route="seeded"), ran("c")), *failed).veto == ""


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(used("a", right=False, world=True), id="the-world"),
        pytest.param(used("a", right=False, route="seeded"), id="a-plan-made-with-it"),
        pytest.param(used("a", right=False, version=2), id="another-version"),
    ],
)
def test_what_is_not_its_fault_says_nothing(use):
    assert doubts((use, ran("a", BROKEN))) == NO_DOUBTS


def test_the_last_feedback_decides_over_what_the_run_came_to():
    assert doubts((used("a", right=True), ran("a", said=False))).faults == (("called_wrong", 1),)
    assert doubts((used("a", right=False), ran("a", WRONG, said=True))) == NO_DOUBTS


def test_risk_grows_with_each_failure_and_fades_with_time():
    once = doubts((used("a", right=False), ran("a", BROKEN))).risk
    wrong = doubts((used("a", right=False), ran("a", WRONG))).risk
    twice = doubts(*((used(name, right=False), ran(name, BROKEN)) for name in "ab")).risk
    old = doubts((used("a", right=False, hours_ago=500), ran("a", BROKEN))).risk
    assert 0 < old < once < wrong < twice < 1


def test_inputs_that_failed_are_told_only_where_the_task_says_them():
    trace = ran("a", BROKEN, task="Count the orders of Ada", inputs={"name": "Ada", "id": "U-17"})
    assert doubts((used("a", right=False), trace)).failed_inputs == ({"name": "Ada"},)

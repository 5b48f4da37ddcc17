"""Verdicts: who says a run was right, and what a run that did not end is worth."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.result import CallFailure, CallSuccess, FailureKind, RanUpstream
from catalog.tools import Snapshot, Tool, ToolId
from server.execution.calls import Answer, CallRequest, ScriptedCaller
from server.execution.run import execute_workflow
from server.verification import Checks, Verdict, verify
from skills_store.workflow.model import parse_workflow

pytestmark = pytest.mark.anyio

FUEL, SIDE = ToolId("s", "fuel"), ToolId("s", "side")
CATALOG = Snapshot.of(*(Tool(tool, {"type": "object"}) for tool in (FUEL, SIDE)))
LITRES = {"type": "number", "maximum": 10}
SCHEMA = {"type": "object", "properties": {"litres": LITRES}, "required": ["litres"]}
AT_MOST_ONE = {"properties": {"litres": {"maximum": 1}}}


def failure(kind: FailureKind) -> CallFailure:
    return CallFailure(kind, "words", 0.0, RanUpstream.NO)


async def judged(
    checks: Checks | None = None,
    *,
    script: dict[ToolId, Any] | None = None,
    expect: tuple[str, ...] = (),
    side: bool = False,
    when: bool | None = None,
    caller: Any = None,
) -> Verdict:
    """Return the verdict on a run of one node, whose output has `litres`, with another beside it."""
    nodes: list[dict[str, Any]] = [{"id": "fuel", "tool": {"server": "s", "tool": "fuel"}, "arguments": {}}]
    if when is not None:
        nodes[0]["when"] = when
    if side:
        nodes.append({"id": "side", "tool": {"server": "s", "tool": "side"}, "arguments": {}})
    planned = parse_workflow(
        {
            "name": "w",
            "inputs": {"type": "object"},
            "nodes": nodes,
            "outputs": {"litres": "$nodes.fuel.output#/result"},
            "expect": list(expect),
        }
    )
    answers = {FUEL: {"result": 5.88, "unit": "l"}, SIDE: {"result": 1}} | (script or {})
    run = await execute_workflow(planned, {}, caller or ScriptedCaller(answers), snapshot=CATALOG)
    return verify(run, planned, {}, checks or Checks())


def said(verdict: Verdict) -> list[tuple[str, bool]]:
    return [(verification.by, verification.passed) for verification in verdict.verifications]


HOLDS, FAILS = "approx(output.litres, `5.880`, `0.001`)", "output.litres > `6`"


@pytest.mark.parametrize(
    ("checks", "expect", "status", "who"),
    [
        pytest.param(Checks(), (), "succeeded", [], id="nothing to check"),
        pytest.param(Checks((HOLDS,)), (), "verified", [("assertion", True)], id="assertion"),
        pytest.param(Checks((), SCHEMA), (), "verified", [("schema", True)], id="schema"),
        pytest.param(Checks(), (HOLDS,), "verified", [("postcondition", True)], id="postcondition"),
        pytest.param(
            Checks((HOLDS,), SCHEMA),
            (HOLDS,),
            "verified",
            [("assertion", True), ("schema", True), ("postcondition", True)],
            id="all",
        ),
        pytest.param(
            Checks(("nodes.fuel.output.unit == 'l'",)), (), "verified", [("assertion", True)], id="nodes"
        ),
    ],
)
async def test_checks_that_hold_verify_a_run(checks, expect, status, who):
    verdict = await judged(checks, expect=expect)
    assert (verdict.status, verdict.faults, said(verdict)) == (status, (), who)
    assert verdict.is_verified is (status == "verified")


@pytest.mark.parametrize(
    ("checks", "expect", "kind", "pointer"),
    [
        pytest.param(Checks((HOLDS, FAILS)), (), "check_failed", "", id="assertion"),
        pytest.param(Checks(("output.gallons == `1`",)), (), "check_failed", "", id="path that is not there"),
        pytest.param(Checks(("output.litres",)), (), "check_failed", "", id="merely truthy"),
        pytest.param(Checks(("output.litres ==",)), (), "check_failed", "", id="unreadable"),
        pytest.param(Checks((), AT_MOST_ONE), (), "check_failed", "/outputs/litres", id="schema"),
        pytest.param(Checks((), {"type": 3}), (), "check_failed", "", id="schema that is none"),
        pytest.param(Checks((HOLDS,)), (HOLDS, FAILS), "postcondition_failed", "/expect/1", id="expect"),
    ],
)
async def test_one_check_that_does_not_hold_fails_a_run(checks, expect, kind, pointer):
    verdict = await judged(checks, expect=expect)
    (fault,) = verdict.faults
    assert (verdict.status, fault.kind, fault.pointer) == ("failed", kind, pointer)
    assert not all(passed for _, passed in said(verdict))


async def test_a_failed_assertion_says_what_was_there():
    verdict = await judged(Checks((FAILS,)))
    assert verdict.faults[0].found == 5.88  # type: ignore[union-attr]
    assert "5.88" in verdict.verifications[0].detail


async def test_an_output_that_is_null_because_its_node_was_skipped_fails_the_schema():
    verdict = await judged(Checks((), SCHEMA), when=False)
    assert (verdict.status, [fault.kind for fault in verdict.faults]) == ("failed", ["check_failed"])


@pytest.mark.parametrize(
    ("kind", "checks", "status"),
    [
        pytest.param(FailureKind.TOOL_ERROR, Checks((HOLDS,)), "failed", id="workflow"),
        pytest.param(FailureKind.TIMEOUT, Checks((HOLDS,)), "unverified", id="world, checks asked for"),
        pytest.param(FailureKind.TIMEOUT, Checks(), "failed", id="world, nothing asked for"),
        pytest.param(FailureKind.DENIED, Checks((HOLDS,)), "failed", id="refused"),
    ],
)
async def test_a_run_without_outputs_is_worth_what_stood_in_its_way(kind, checks, status):
    verdict = await judged(checks, script={FUEL: failure(kind)})
    assert (verdict.status, len(verdict.faults), verdict.verifications) == (status, 1, ())


@pytest.mark.parametrize(
    ("kind", "checks", "status", "faults"),
    [
        pytest.param(FailureKind.TOOL_ERROR, Checks((HOLDS,)), "failed", 1, id="workflow fault beside"),
        pytest.param(FailureKind.TIMEOUT, Checks((HOLDS,)), "unverified", 1, id="world fault beside"),
        pytest.param(FailureKind.TIMEOUT, Checks((FAILS,)), "failed", 2, id="world fault, wrong answer"),
    ],
)
async def test_a_failed_node_beside_the_outputs_keeps_a_run_unverified(kind, checks, status, faults):
    verdict = await judged(checks, script={SIDE: failure(kind)}, side=True)
    assert (verdict.status, len(verdict.faults)) == (status, faults)
    assert said(verdict) == [("assertion", checks.assertions == (HOLDS,))]


async def test_a_call_that_waits_for_consent_makes_the_verdict_wait():
    class Asking:
        async def call(self, request: CallRequest) -> Answer:
            if request.tool == FUEL:
                return Answer(CallSuccess({"result": 5.88}, [], 0.0))
            return Answer(failure(FailureKind.DENIED), calls=0, needs_approval=True)

    verdict = await judged(Checks((HOLDS,)), side=True, caller=Asking())
    assert verdict.status == "needs_approval"

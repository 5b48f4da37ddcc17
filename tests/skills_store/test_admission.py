"""Which evidence earns which state, and what the verdict says about it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.effects import Effect, Reset
from catalog.tools import ToolId
from skills_store.admission import judge_admission
from skills_store.evidence import Evidence, InterfaceFindings, ReplayResult, UsedTool, VariedRun
from skills_store.lifecycle import check_entry
from skills_store.skill import ReplayTest, Signature, Skill
from skills_store.trace import Verification
from skills_store.workflow.faults import InvalidArgument, OverLimit
from skills_store.workflow.model import Node, Workflow

CONVERT = ToolId("units", "convert")
WRITER = UsedTool(CONVERT, Effect.WRITE)


def a_workflow(**changes: Any) -> Workflow:
    fields: dict[str, Any] = {
        "name": "convert",
        "inputs": {"type": "object", "properties": {"value": {"type": "number"}, "unit": {"type": "string"}}},
        "nodes": (
            Node(id="conv", tool=CONVERT, arguments={"value": "$inputs.value", "to": "{$inputs.unit}s"}),
        ),
        "outputs": {"converted": "$nodes.conv.output#/value"},
    }
    return Workflow(**{**fields, **changes})


def a_candidate(workflow: Workflow, **changes: Any) -> Skill:
    fields: dict[str, Any] = {
        "name": "convert",
        "version": 1,
        "state": "proposed",
        "workflow": workflow,
        "content_hash": "sha256:c",
        "shape_hash": "sha256:s",
        "signature": Signature(input_schema=workflow.inputs, output_schema={"type": "object"}),
        "tests": (ReplayTest(name="original", inputs={"value": 1, "unit": "m"}, outputs={"converted": 2}),),
    }
    return Skill(**{**fields, **changes})


def varied(changed: str, **changes: Any) -> VariedRun:
    names = tuple(changed.split())
    fields: dict[str, Any] = {
        "inputs": {"value": 7, "unit": "km"},
        "changed": names,
        "succeeded": True,
        "outputs_changed": True,
    }
    return VariedRun(**{**fields, **changes})


REPLAY = ReplayResult("original", {"value": 1, "unit": "m"}, passed=True, seconds=0.25)


def good(**changes: Any) -> Evidence:
    """Evidence that passes every gate, with something changed."""
    fields: dict[str, Any] = {
        "skill": a_candidate(a_workflow()),
        "learning": "auto",
        "tools": (UsedTool(CONVERT, Effect.PURE),),
        "replays": (REPLAY,),
        "varied": (varied("value"), varied("unit"), varied("value unit")),
        "verifications": (Verification(by="assertion", passed=True),),
        "distinct_verified_traces": 2,
    }
    return Evidence(**{**fields, **changes})


def failing(evidence: Evidence) -> dict[str, str]:
    return {check.name: check.detail for check in judge_admission(evidence).checks if not check.passed}


def test_an_input_that_nobody_said_waits_for_another_value():
    verdict = judge_admission(good(unsaid=("unit",)))
    assert verdict.state == "proposed"
    assert "nobody said that 'unit' may vary" in verdict.reason


def test_a_verdict_lists_every_check_in_order_with_its_inputs():
    verdict = judge_admission(good())
    assert (verdict.state, verdict.reason) == ("active", "all gates passed; 2 distinct verified runs")
    assert [(check.gate, check.name, check.passed) for check in verdict.checks] == [
        ("duplicate", "new", True),
        ("duplicate", "behaviour", True),
        ("interface", "portable_schema", True),
        ("interface", "static_check", True),
        ("interface", "pinned", True),
        ("function", "verified", True),
        ("function", "replay", True),
        ("function", "varied_runs", True),
        ("function", "inputs_reach_outputs", True),
        ("function", "no_frozen_literals", True),
        ("function", "inputs_said", True),
        ("function", "one_reading", True),
        ("safety", "effects", True),
        ("safety", "data_flow", True),
        ("safety", "no_self_call", True),
        ("safety", "within_limits", True),
        ("trivial", "calls_tools", True),
        ("trivial", "depends_on_inputs", True),
    ]
    replay = verdict.checks[6]
    assert replay.inputs == [
        {"test": "original", "inputs": {"value": 1, "unit": "m"}, "passed": True, "isolated": False}
    ]
    assert (replay.detail, replay.seconds) == ("1 of 1 replays gave the recorded outputs", 0.25)
    assert verdict.checks[12].inputs == [{"tool": "units/convert", "effect": "pure", "reset": "none"}]


@pytest.mark.parametrize(
    ("changes", "state", "reason"),
    [
        pytest.param({}, "active", "all gates passed; 2 distinct verified runs", id="two-traces"),
        pytest.param(
            {"distinct_verified_traces": 1, "explicit_save": True},
            "active",
            "all gates passed; saved explicitly",
            id="explicit-save",
        ),
        pytest.param(
            {"distinct_verified_traces": 1},
            "proposed",
            "all gates passed; 1 of 2 distinct verified runs: another one, an explicit save or a person's"
            " `skillbank skills approve convert` is awaited",
            id="one-trace",
        ),
        pytest.param(
            {"learning": "propose"},
            "proposed",
            "all gates passed; learning mode is propose: a person approves"
            " with `skillbank skills approve convert`",
            id="mode-propose",
        ),
        pytest.param(
            {"learning": "off", "explicit_save": True},
            "proposed",
            "all gates passed; learning mode is off: a person approves"
            " with `skillbank skills approve convert`",
            id="mode-off",
        ),
        pytest.param(
            {
                "tools": (UsedTool(CONVERT, Effect.WRITE, Reset.PROCESS),),
                "replays": (replace(REPLAY, isolated=True),),
            },
            "active",
            "all gates passed; 2 distinct verified runs",
            id="write-in-a-private-process",
        ),
    ],
)
def test_a_candidate_that_passes_every_gate_becomes_active_only_as_the_mode_allows(changes, state, reason):
    verdict = judge_admission(good(**changes))
    assert (verdict.state, verdict.reason) == (state, reason)
    assert all(check.passed for check in verdict.checks)


@pytest.mark.parametrize(
    ("changes", "details"),
    [
        pytest.param(
            {"duplicate_of": "to_metres"}, {"new": "the skill to_metres has this workflow"}, id="duplicate"
        ),
        pytest.param(
            {"interface": InterfaceFindings(schema_lint=("/properties/value: no type",))},
            {"portable_schema": "/properties/value: no type"},
            id="schema",
        ),
        pytest.param(
            {
                "interface": InterfaceFindings(
                    faults=(InvalidArgument(message="no such unit", pointer="/nodes/0"),)
                )
            },
            {"static_check": "/nodes/0: no such unit"},
            id="static-fault",
        ),
        pytest.param(
            {"interface": InterfaceFindings(unpinned=(CONVERT,))},
            {"pinned": "units/convert has no pinned contract"},
            id="unpinned",
        ),
        pytest.param(
            {
                "verifications": (
                    Verification(by="assertion", passed=True),
                    Verification(by="feedback", passed=False, detail="wrong unit"),
                )
            },
            {"verified": "feedback says no: wrong unit"},
            id="contradicted",
        ),
        pytest.param(
            {"replays": (replace(REPLAY, passed=False, detail="converted: 2 became 3"),)},
            {"replay": "replay of original failed: converted: 2 became 3"},
            id="replay-differs",
        ),
        pytest.param(
            {
                "varied": (
                    varied("value"),
                    varied("unit"),
                    varied("value", check_passed=False, detail="is not 7000"),
                )
            },
            {"varied_runs": "wrong on value = 7: is not 7000"},
            id="wrong-on-other-inputs",
        ),
        pytest.param(
            {"varied": (varied("value"), varied("unit", outputs_changed=False), varied("value unit"))},
            {"inputs_reach_outputs": "the input unit moves no output"},
            id="idle-input",
        ),
        pytest.param(
            {"interface": InterfaceFindings(calls_itself=True)},
            {"no_self_call": "it would call itself"},
            id="self-call",
        ),
        pytest.param(
            {"interface": InterfaceFindings(faults=(OverLimit(message="120 nodes, at most 100"),))},
            {"within_limits": "120 nodes, at most 100"},
            id="caps",
        ),
        pytest.param(
            {"varied": (varied("value", outputs_changed=False), varied("unit", outputs_changed=False))},
            {
                "inputs_reach_outputs": "the input unit moves no output; the input value moves no output",
                "depends_on_inputs": "its outputs were the same in 2 runs on other inputs",
            },
            id="constant",
        ),
    ],
)
def test_a_failed_gate_makes_a_shadow_with_the_reason(changes, details):
    verdict = judge_admission(good(**changes))
    assert failing(good(**changes)) == details
    assert (verdict.state, verdict.reason) == ("shadow", "; ".join(details.values()))


@pytest.mark.parametrize(
    ("workflow", "details"),
    [
        pytest.param(
            a_workflow(nodes=(Node(id="conv", tool=CONVERT, arguments={"value": "$inputs.value"}),)),
            {"inputs_reach_outputs": "nothing reads the input unit"},
            id="unread-input",
        ),
        pytest.param(
            a_workflow(
                nodes=(
                    Node(id="conv", tool=CONVERT, arguments={"value": "$inputs.value"}),
                    Node(id="aside", tool=CONVERT, arguments={"to": "$inputs.unit"}),
                )
            ),
            {"inputs_reach_outputs": "nothing reads the input unit"},
            id="read-by-a-node-nothing-stands-on",
        ),
        pytest.param(
            a_workflow(outputs={"a": "$inputs.value", "b": "$inputs.unit"}),
            {"calls_tools": "its outputs stand on no tool"},
            id="echo",
        ),
        pytest.param(
            a_workflow(nodes=(), outputs={"a": "{$inputs.value} {$inputs.unit}"}),
            {"calls_tools": "its outputs stand on no tool"},
            id="no-nodes",
        ),
    ],
)
def test_a_body_that_leaves_inputs_or_tools_unused_is_a_shadow(workflow, details):
    evidence = good(skill=a_candidate(workflow))
    assert failing(evidence) == details
    assert judge_admission(evidence).state == "shadow"


@pytest.mark.parametrize(
    ("changes", "details"),
    [
        pytest.param(
            {
                "verifications": (
                    Verification(by="judge", passed=True),
                    Verification(by="feedback", passed=True),
                )
            },
            {"verified": "only opinions say that it was right: no check, no replay"},
            id="judge-only",
        ),
        pytest.param(
            {"replays": (replace(REPLAY, passed=False, possible=False, detail="the results were not kept"),)},
            {"replay": "cannot be replayed: original: the results were not kept"},
            id="replay-impossible",
        ),
        pytest.param(
            {"skill": a_candidate(a_workflow(), tests=()), "replays": ()},
            {"replay": "cannot be replayed: it has no replay test"},
            id="no-replay-test",
        ),
        pytest.param(
            {
                "varied": (
                    varied("value unit"),
                    varied("unit", succeeded=False, detail="no such unit"),
                )
            },
            {"varied_runs": "works on 1 of 2 other inputs: failed on unit = 'km': no such unit"},
            id="partial-generality",
        ),
        pytest.param(
            {"frozen_literals": ("'celsius'",)},
            {"no_frozen_literals": "the task's 'celsius' is a constant in the workflow"},
            id="frozen-literal",
        ),
    ],
)
def test_what_is_right_only_in_part_or_by_opinion_is_guidance(changes, details):
    verdict = judge_admission(good(**changes))
    assert failing(good(**changes)) == details
    assert (verdict.state, verdict.reason) == ("context_only", "; ".join(details.values()))


@pytest.mark.parametrize(
    ("changes", "details"),
    [
        pytest.param(
            {"verifications": ()},
            {"verified": "nothing has verified the run it was made from"},
            id="unverified",
        ),
        pytest.param({"replays": ()}, {"replay": "not replayed yet: original"}, id="replay-missing"),
        pytest.param(
            {"tools": (UsedTool(CONVERT, Effect.UNKNOWN, Reset.PROCESS_DIRS),)},
            {"replay": "replayed, but not in a fresh process"},
            id="replay-not-fresh",
        ),
        pytest.param(
            {"varied": ()},
            {
                "varied_runs": "no 2 other valid values for unit, value",
                "inputs_reach_outputs": "no successful run on another value of unit, value",
            },
            id="no-variants",
        ),
        pytest.param(
            {"varied": (varied("value"), varied("value"))},
            {"inputs_reach_outputs": "no successful run on another value of unit"},
            id="one-input-never-varied",
        ),
        pytest.param(
            {"undecided": "the task says 'km', and so does an answer", "explicit_save": True},
            {"one_reading": "the task says 'km', and so does an answer"},
            id="another-reading-holds-as-well",
        ),
        pytest.param(
            {"tools": (WRITER,), "replays": (), "varied": ()},
            {
                "replay": "cannot be replayed: units/convert (write) may not run again",
                "varied_runs": "cannot be tried on other inputs: units/convert (write) may not run again",
                "inputs_reach_outputs": "no successful run on another value of unit, value",
                "effects": "units/convert (write) leaves lasting effects: a person approves"
                " with `skillbank skills approve convert`",
            },
            id="write",
        ),
        pytest.param(
            {
                "tools": (UsedTool(CONVERT, Effect.UNKNOWN),),
                "explicit_save": True,
                "replays": (),
                "varied": (),
            },
            {
                "replay": "cannot be replayed: units/convert (unknown) may not run again",
                "varied_runs": "cannot be tried on other inputs: units/convert (unknown) may not run again",
                "inputs_reach_outputs": "no successful run on another value of unit, value",
                "effects": "units/convert (unknown) leaves lasting effects: a person approves"
                " with `skillbank skills approve convert`",
            },
            id="unknown-effect-saved-explicitly",
        ),
    ],
)
def test_what_is_short_of_evidence_waits_and_says_for_what(changes, details):
    verdict = judge_admission(good(**changes))
    assert failing(good(**changes)) == details
    assert (verdict.state, verdict.reason) == ("proposed", "; ".join(details.values()))


def test_a_later_version_is_approved_by_its_number():
    verdict = judge_admission(good(skill=a_candidate(a_workflow(), version=2), learning="propose"))
    assert verdict.reason.endswith("a person approves with `skillbank skills approve convert --version 2`")


def test_a_check_says_what_it_leaves_open():
    waiting = judge_admission(good(tools=(WRITER,), replays=()))
    assert {c.name: c.leaves for c in waiting.checks if c.leaves} == {
        "replay": "proposed",
        "effects": "proposed",
    }
    wrong = judge_admission(good(replays=(replace(REPLAY, passed=False),)))
    assert {c.name: c.leaves for c in wrong.checks if c.leaves} == {"replay": "shadow"}


def test_a_run_on_one_input_alone_outweighs_a_run_on_several():
    together = (varied("value unit"), varied("value unit"))
    assert judge_admission(good(varied=together)).state == "active"
    alone = (*together, varied("unit", outputs_changed=False))
    assert failing(good(varied=alone)) == {"inputs_reach_outputs": "the input unit moves no output"}


def test_a_skill_without_inputs_has_nothing_to_vary():
    constant = a_workflow(
        inputs={"type": "object"}, nodes=(Node(id="conv", tool=CONVERT, arguments={"value": 1}),)
    )
    assert judge_admission(good(skill=a_candidate(constant), varied=())).state == "active"


def test_the_saver_vouches_for_a_run_that_nobody_checked():
    assert judge_admission(good(verifications=(), explicit_save=True)).state == "active"
    assert (
        judge_admission(
            good(verifications=(Verification(by="judge", passed=True),), explicit_save=True)
        ).state
        == "active"
    )


def test_the_worst_finding_decides_and_all_of_its_rank_are_named():
    evidence = good(
        duplicate_of="to_metres",
        verifications=(Verification(by="judge", passed=True),),
        tools=(WRITER,),
        interface=InterfaceFindings(calls_itself=True),
    )
    verdict = judge_admission(evidence)
    assert verdict.state == "shadow"
    assert verdict.reason == "the skill to_metres has this workflow; it would call itself"


@pytest.mark.parametrize(
    "changes",
    [{"duplicate_of": "other"}, {"frozen_literals": ("1",)}, {"varied": ()}],
    ids=["shadow", "context-only", "proposed"],
)
def test_a_persons_skill_is_never_set_aside_by_the_system(changes):
    skill = a_candidate(a_workflow(), origin="user")
    verdict = judge_admission(good(skill=skill, **changes))
    assert verdict.state == "proposed"
    assert verdict.reason == judge_admission(good(**changes)).reason


def test_only_a_candidate_is_judged():
    with pytest.raises(ValueError, match="convert is active: only what is proposed is judged"):
        good(skill=a_candidate(a_workflow(), state="active"))


def test_a_replay_that_could_not_run_has_not_passed():
    with pytest.raises(ValueError, match="cannot have passed"):
        ReplayResult("original", {}, passed=True, possible=False)


BLEMISHES: dict[str, Any] = {
    "duplicate_of": st.just("other"),
    "interface": st.sampled_from(
        [InterfaceFindings(calls_itself=True), InterfaceFindings(unpinned=(CONVERT,))]
    ),
    "tools": st.sampled_from([(WRITER,), (UsedTool(CONVERT, Effect.WRITE, Reset.PROCESS),)]),
    "replays": st.sampled_from([(), (replace(REPLAY, passed=False),)]),
    "varied": st.lists(
        st.builds(
            varied,
            st.sampled_from(["value", "unit", "value unit"]),
            succeeded=st.booleans(),
            outputs_changed=st.booleans(),
            check_passed=st.sampled_from([None, True, False]),
        ),
        max_size=4,
    ).map(tuple),
    "verifications": st.sampled_from([(), (Verification(by="judge", passed=True),)]),
    "frozen_literals": st.just(("1",)),
    "learning": st.sampled_from(["propose", "off"]),
    "distinct_verified_traces": st.integers(0, 3),
    "explicit_save": st.booleans(),
    "skill": st.just(a_candidate(a_workflow(), origin="user")),
}


@given(st.data())
def test_active_means_that_every_check_passed_and_every_state_is_one_a_skill_may_begin_in(data):
    chosen = data.draw(st.sets(st.sampled_from(sorted(BLEMISHES)), max_size=4))
    evidence = good(**{name: data.draw(BLEMISHES[name], label=name) for name in sorted(chosen)})
    verdict = judge_admission(evidence)
    passed = all(check.passed for check in verdict.checks)
    assert passed or verdict.state != "active"
    assert verdict.reason
    check_entry(evidence.skill.model_copy(update={"state": verdict.state}))


@pytest.mark.parametrize(
    "pair", list(combinations(["duplicate_of", "frozen_literals", "verifications"], 2)), ids="+".join
)
def test_a_further_blemish_never_improves_the_state(pair):
    bad = {
        "duplicate_of": "other",
        "frozen_literals": ("1",),
        "verifications": (Verification(by="judge", passed=True),),
    }
    rank = ["shadow", "context_only", "proposed", "active"]
    both = judge_admission(good(**{name: bad[name] for name in pair})).state
    assert all(rank.index(both) <= rank.index(judge_admission(good(**{n: bad[n]})).state) for n in pair)


def test_a_skill_that_does_what_another_does_says_which():
    verdict = judge_admission(good(equals="to_metres"))
    assert (verdict.state, verdict.reason) == (
        "active",
        "all gates passed; 2 distinct verified runs; it does what to_metres does",
    )
    assert [check.detail for check in verdict.checks if check.name == "behaviour"] == [
        "it does what to_metres does"
    ]


class TestAnInputThatMovesNothing:
    """It is an error unless its kind explains it, which the check then says."""

    def reached(self, name: str, schema: dict[str, Any], *tried: Any):
        inputs = {"type": "object", "properties": {"value": {"type": "number"}, name: schema}}
        node = Node(id="conv", tool=CONVERT, arguments={"value": "$inputs.value", "x": f"$inputs.{name}"})
        candidate = a_candidate(
            a_workflow(inputs=inputs, nodes=(node,)),
            signature=Signature(input_schema=inputs, output_schema={"type": "object"}),
            tests=(ReplayTest(name="original", inputs={"value": 1, name: "a"}, outputs={"converted": 2}),),
        )
        idle = [varied(name, inputs={"value": 1, name: value}, outputs_changed=False) for value in tried]
        verdict = judge_admission(good(skill=candidate, varied=(varied("value"), varied("value"), *idle)))
        return next(check for check in verdict.checks if check.name == "inputs_reach_outputs")

    @pytest.mark.parametrize("name", ["limit", "maxResults", "output_format", "timeout_seconds", "verbose"])
    def test_is_excused_where_it_says_how_the_answer_is_given(self, name):
        check = self.reached(name, {"type": "string"}, "b")
        assert (check.passed, check.inputs["excused"]) == (True, [name])
        assert f"apart from {name}: it says how much is given, how, or how long" in check.detail

    def test_is_excused_where_all_values_of_its_enum_were_tried(self):
        check = self.reached("mode", {"enum": ["a", "b", "c"]}, "b", "c")
        assert check.detail.endswith("mode: all 3 values of its enum were tried and agree")

    @pytest.mark.parametrize(
        ("name", "schema", "tried"),
        [
            ("mode", {"enum": ["a", "b", "c"]}, ["b"]),
            ("max", {"type": "string"}, ["b"]),
            ("unit", {"type": "string"}, ["b", "c"]),
        ],
        ids=["enum-in-part", "a-bound-of-the-task", "any-other"],
    )
    def test_is_an_error_otherwise(self, name, schema, tried):
        check = self.reached(name, schema, *tried)
        assert (check.passed, check.leaves) == (False, "shadow")
        assert check.detail == f"the input {name} moves no output"


def test_made_up_inputs_that_fail_say_nothing_of_the_skill_and_name_the_input():
    runs = [varied("unit", succeeded=False, detail="no such unit", known_valid=False) for _ in range(3)]
    verdict = judge_admission(good(varied=(varied("value"), *runs)))
    assert verdict.state == "proposed"
    assert (
        "no 2 other valid values for unit; made up ones failed on unit = 'km': no such unit" in verdict.reason
    )

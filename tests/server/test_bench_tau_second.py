"""A skill of one reference run on a second task: what it is given there, and why it goes otherwise."""

from __future__ import annotations

import pytest

from catalog.tools import ToolId
from server.bench.tau_second import base_of, cause_of, inputs_of
from skills_store.skill import Provenance, RecordedCall, ReplayTest, Signature, Skill
from skills_store.trace import Step
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Node, Workflow

ONE = (("find", {"mail": "a@x"}), ("cancel", {"order": "#W1", "reason": "late", "user": "u1"}))
TWO = (("find", {"mail": "b@x"}), ("cancel", {"order": "#W2", "reason": "wrong", "user": "u2"}))


def skill(**cancel):
    arguments = {"order": "$inputs.order", "reason": "late", "user": "$nodes.find.output#/user", **cancel}
    workflow = Workflow(
        name="cancelling",
        inputs={"type": "object"},
        nodes=(
            Node(id="find", tool=ToolId("shop", "find"), arguments={"mail": "$inputs.mail"}),
            Node(id="cancel", tool=ToolId("shop", "cancel"), arguments=arguments),
        ),
        outputs={"done": "$nodes.cancel.output"},
    )
    recorded = tuple(
        RecordedCall(node=tool, item=None, tool=ToolId("shop", tool), arguments=given, output={})
        for tool, given in ONE
    )
    return Skill(
        name="cancelling",
        version=1,
        state="proposed",
        reason="",
        title=None,
        description="",
        workflow=workflow,
        content_hash=content_hash(workflow),
        shape_hash=shape_hash(workflow),
        signature=Signature(input_schema={"type": "object"}, output_schema={"type": "object"}),
        tests=(
            ReplayTest(
                name="original", inputs={"mail": "a@x", "order": "#W1"}, outputs={}, recorded=recorded
            ),
        ),
        pins=(),
        provenance=Provenance(task="cancel"),
        created_at=0.0,
    )


def sent(**cancel):
    given = {"order": "#W2", "reason": "wrong", "user": "u2", **cancel}
    return [
        Step(node="find", tool=ToolId("shop", "find"), arguments={"mail": "b@x"}, outcome="succeeded"),
        Step(node="cancel", tool=ToolId("shop", "cancel"), arguments=given, outcome="succeeded"),
    ]


def test_inputs_get_what_the_other_run_has_at_their_places():
    assert inputs_of(skill(), ONE, TWO) == ({"mail": "b@x", "order": "#W2"}, None)


def test_an_input_that_would_need_two_values_has_none():
    assert inputs_of(skill(user="$inputs.order"), ONE, TWO) == (None, "an input has two values there")


def test_a_part_of_a_text_is_read_out_of_the_other_text():
    written = skill(reason="late by {$inputs.days} days, {$nodes.find.output#/user}", order="#W1")
    written = written.model_copy(
        update={"tests": (written.tests[0].model_copy(update={"inputs": {"mail": "a@x", "days": "2"}}),)}
    )
    other = (TWO[0], ("cancel", {"order": "#W1", "reason": "late by 30 days, u2", "user": "u2"}))
    assert inputs_of(written, ONE, other) == ({"mail": "b@x", "days": "30"}, None)
    unlike = (TWO[0], ("cancel", {"order": "#W1", "reason": "wrong", "user": "u2"}))
    assert inputs_of(written, ONE, unlike) == (None, "an input has no place")


def test_an_argument_that_the_other_run_leaves_out_gives_no_value():
    other = (TWO[0], ("cancel", {"reason": "wrong", "user": "u2"}))
    assert inputs_of(skill(), ONE, other) == (None, "an input has no place")


def test_an_input_that_nothing_reads_has_no_place():
    assert inputs_of(skill(order="#W1"), ONE, TWO) == (None, "an input has no place")


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"reason": "late"}, "a constant differs"),
        ({"user": "u9"}, "an answer gives another record"),
        ({}, "the calls are the same"),
    ],
    ids=["constant", "data-flow", "same"],
)
def test_the_first_argument_that_differs_says_why(given, cause):
    assert cause_of(skill(), ONE, TWO, sent(**given)) == cause


def test_a_skill_that_another_save_made_is_told_by_its_recorded_calls():
    assert base_of(skill(), [TWO, ONE]) == 1

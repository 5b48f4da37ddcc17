"""Compiling a run: signature, pins, hints, recorded calls, and when there is nothing to compile."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.effects import Effect, EffectTable
from catalog.tools import Annotations, Snapshot, Tool, ToolId
from server.compilation.compile import Surroundings, VerifiedRun, compile_skill, recorded_calls
from server.compilation.errors import NotCompilable
from skills_store.skill import Pin
from skills_store.trace import Step, Trace, Verification
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import parse_workflow

READ, SEND = ToolId("mail", "read"), ToolId("mail", "send")


def tool(tool_id: ToolId, **annotations: bool) -> Tool:
    schema = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 9}}}
    return Tool(tool_id, schema, annotations=Annotations(**annotations))


SNAPSHOT = Snapshot.of(tool(READ, open_world=False), tool(SEND, destructive=False))
EFFECTS = EffectTable({"mail": {"read": Effect.PURE, "send": Effect.WRITE}})
PASSED = Verification(by="assertion", passed=True)


def step(node: str, tool_id: ToolId | None, outcome: Any = "succeeded", **more: Any) -> Step:
    return Step(node=node, tool=tool_id, outcome=outcome, output={"id": "abc-123"}, **more)


def run(*nodes: tuple[str, ToolId, dict[str, Any]], task="say hello", steps=None, **more: Any) -> VerifiedRun:
    planned = [
        {"id": node_id, "tool": {"server": t.server, "tool": t.tool}, "arguments": arguments}
        for node_id, t, arguments in nodes
    ]
    outputs = {"id": f"$nodes.{nodes[-1][0]}.output#/id"} if nodes else {}
    workflow = parse_workflow(
        {"name": "plan", "inputs": {"type": "object"}, "nodes": planned, "outputs": outputs}
    )
    trace = Trace(
        id="t",
        workflow_hash=content_hash(workflow),
        inputs={},
        steps=tuple(steps or [step(node_id, t) for node_id, t, _ in nodes]),
        outputs={"id": "abc-123"},
        status="verified",
    )
    found = VerifiedRun(
        workflow=workflow,
        trace=trace,
        outputs={"id": "abc-123"},
        node_outputs={node_id: {"id": "abc-123"} for node_id, _, _ in nodes},
        task=task,
        inputs={},
        edits=("renamed",),
        verifications=(PASSED,),
    )
    return found if not more else VerifiedRun(**{**vars(found), **more})


def compiled(found: VerifiedRun, *, name="says", explicit=False, snapshot=SNAPSHOT, skills=lambda *_: None):
    return compile_skill(found, name, Surroundings(snapshot, EFFECTS, skills, now=7.0), explicit=explicit)[0]


def test_a_run_becomes_a_proposed_skill_with_everything_it_stands_on():
    skill = compiled(run(("r", READ, {"text": "hello"}))).skill
    assert (skill.name, skill.version, skill.state, skill.origin) == ("says", 1, "proposed", "system")
    assert skill.workflow.name == "says"
    assert skill.content_hash == content_hash(skill.workflow)
    assert skill.signature.input_schema["properties"]["text"]["maxLength"] == 9
    assert skill.pins == (
        Pin(tool=READ, contract_hash=tool(READ, open_world=False).contract_hash, effect=Effect.PURE),
    )
    assert skill.provenance.task == "say hello"
    assert (skill.provenance.traces, skill.provenance.edits) == (("t",), ("renamed",))
    assert (skill.provenance.verifications, skill.provenance.explicit_save) == ((PASSED,), False)
    assert (skill.tags, skill.created_at, skill.title) == (("mail",), 7.0, "Says")


def test_its_test_is_the_run_itself_with_recorded_calls():
    (test,) = compiled(run(("r", READ, {"text": "hello"}))).skill.tests
    assert (test.name, test.kind, test.inputs, test.outputs) == (
        "original",
        "original",
        {"text": "hello"},
        {"id": "abc-123"},
    )
    assert [(call.node, call.tool, call.output) for call in test.recorded] == [("r", READ, {"id": "abc-123"})]


def test_only_calls_that_succeeded_are_recorded():
    steps = [step("a", READ), step("b", SEND, "failed"), step("c", None), step("d", READ, item=2)]
    trace = run(("r", READ, {}), steps=steps).trace
    assert [(call.node, call.item) for call in recorded_calls(trace)] == [("a", None), ("d", 2)]


def test_a_literal_copied_from_an_output_becomes_data_flow():
    skill = compiled(run(("r", READ, {"text": "hello"}), ("s", SEND, {"text": "abc-123"}))).skill
    assert skill.workflow.nodes[1].arguments == {"text": "$nodes.r.output#/id"}
    assert [*skill.signature.input_schema["properties"]] == ["text"]


@pytest.mark.parametrize(
    ("tools", "hints"),
    [
        pytest.param(
            [READ],
            {"read_only": True, "destructive": False, "idempotent": True, "open_world": False},
            id="free",
        ),
        pytest.param(
            [READ, SEND],
            {"read_only": False, "destructive": False, "idempotent": False, "open_world": True},
            id="writes",
        ),
    ],
)
def test_hints_are_those_of_its_tools_together(tools, hints):
    nodes = [(f"n{i}", t, {"text": "hello"}) for i, t in enumerate(tools)]
    assert compiled(run(*nodes)).skill.hints.model_dump() == hints


def test_a_write_that_does_not_say_it_spares_may_destroy():
    snapshot = Snapshot.of(tool(SEND))
    assert compiled(run(("s", SEND, {"text": "hello"})), snapshot=snapshot).skill.hints.destructive


def test_a_skill_that_calls_a_skill_is_pinned_to_what_that_one_calls():
    inner = compiled(run(("s", SEND, {"text": "hello"}))).skill
    outer = run(("r", READ, {"text": "hello"}))
    node = {"id": "again", "skill": {"name": "inner", "version": 3}, "arguments": {"text": "hello"}}
    document = outer.workflow.to_json()
    workflow = parse_workflow({**document, "nodes": [*document["nodes"], node]})
    calling = VerifiedRun(**{**vars(outer), "workflow": workflow})
    known = {("inner", 3): inner}
    skill = compiled(calling, skills=lambda name, version: known.get((name, version))).skill
    assert [pin.tool for pin in skill.pins] == [READ, SEND]
    assert not skill.hints.read_only
    with pytest.raises(NotCompilable, match="skill inner@3 is not there"):
        compiled(calling)


class TestNotCompilable:
    @pytest.mark.parametrize(
        ("found", "said"),
        [
            pytest.param(run(), "no outputs, or no tool", id="no-nodes"),
            pytest.param(
                run(("r", ToolId("mail", "gone"), {})), "mail/gone is not in the catalog", id="unknown-tool"
            ),
            pytest.param(
                run(("r", READ, {"text": "hello"}), task="say hello 17 times"),
                "the task says 17",
                id="uncarried",
            ),
            pytest.param(
                run(("r", READ, {"text": "where n > 175"}), task="those over 17"),
                "the task says 17",
                id="inside-a-number",
            ),
        ],
    )
    def test_says_why(self, found, said):
        with pytest.raises(NotCompilable, match=said):
            compiled(found)

    def test_a_run_that_did_not_get_to_its_outputs(self):
        found = run(("r", READ, {}))
        cut = VerifiedRun(**{**vars(found), "trace": found.trace.model_copy(update={"outputs": None})})
        with pytest.raises(NotCompilable, match="no outputs"):
            compiled(cut)

    def test_a_name_that_cannot_be_one(self):
        with pytest.raises(ValueError, match="letter"):
            compiled(run(("r", READ, {})), name="17")


class TestAnExplicitSave:
    def test_vouches_for_what_the_task_says_and_no_input_carries(self):
        found = compiled(run(("r", READ, {"text": "hello"}), task="say hello 17 times"), explicit=True)
        assert (found.frozen, found.skill.provenance.explicit_save) == ((), True)

    def test_names_values_that_stand_inside_constants(self):
        told = run(("r", READ, {"text": "where {n} is"}), task="where '{n}' is")
        found = compiled(told, explicit=True)
        assert found.frozen == ("'{n}'",)
        assert "Always uses text = 'where {n} is'." in found.skill.guidance.pitfalls

    def test_lifts_a_value_out_of_a_longer_text(self):
        skill = compiled(run(("r", READ, {"text": "where age > 17"}), task="those over 17")).skill
        assert skill.workflow.nodes[0].arguments == {"text": "where age > {$inputs.age}"}
        assert skill.tests[0].inputs == {"age": 17}

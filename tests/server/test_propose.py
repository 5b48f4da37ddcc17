"""What no proposal does, and what no proposer sees, over damaged workflows of every kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.effects import Effect, EffectTable
from catalog.tools import Snapshot, Tool, ToolId
from server.evolution.propose import propose
from server.execution.run import Run
from server.planning.view import View, World
from server.verification import Checks, verify
from skills_store.trace import Trace
from skills_store.workflow.check import check_workflow
from skills_store.workflow.edits import EditRefused, InsertNode, apply_edit
from skills_store.workflow.faults import (
    CheckFailed,
    Denied,
    DisguisedError,
    Fault,
    InvalidArgument,
    MissingOutput,
    OutputSchemaMismatch,
    PostconditionFailed,
    ServerUnavailableFault,
    TimeoutFault,
    ToolError,
)
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import Found
from skills_store.workflow.scan import scan
from tests.strategies import ARGUMENTS, INPUTS, TOOLS, json_values, workflows
from tests.worlds import node, view_of, weather_plan, workflow, world_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "value": {"type": "number"},
        "from_unit": {"type": "string", "enum": ["metre", "mile"]},
        "to_unit": {"type": "string"},
        "a/b": {"type": "boolean"},
        "query": {"type": "string"},
    },
    "required": ["value", "from_unit"],
    "additionalProperties": False,
}
OUTPUT: dict[str, Any] = {"type": "object", "properties": {"result": {"type": "number"}}}
SNAPSHOT = Snapshot.of(
    *(Tool(tool, SCHEMA, OUTPUT if tool.server == "units" else None, description=tool.tool) for tool in TOOLS)
)
EFFECTS = EffectTable({"units": {"*": Effect.PURE}, "tables": {"query": Effect.READ, "*": Effect.WRITE}})
TASK = "Convert 12 miles from 'Oslo' into metres, then sum the rows of table_1"
WORLD = world_of(TASK, {"city": "Oslo", "amount": 12, "items": [1, 2]}, SNAPSHOT, EFFECTS)
MESSAGES = ("boom", "no such table: alpha", "unknown unit, did you mean 'mile'?", "not found: value")

GONE = ("$nodes.gone.output#/x", "$inputs.gone", f"$nodes.{'g' * 70}.output")
MALFORMED = ("$", "$nodes.alpha", "{{alpha.value}}", "$$", "${beta.x}", "{$inputs.}")


@st.composite
def damaged(draw: st.DrawFn) -> Workflow:
    """A workflow with checks, and with ids, tools, names and references broken here and there."""
    planned = draw(workflows())
    changed = []
    for one in planned.nodes:
        update: dict[str, Any] = {}
        harm = draw(
            st.sampled_from(["none", "none", "tool", "rename", "reference", "malformed", "after", "check"])
        )
        match harm:
            case "tool":
                update["tool"] = ToolId("units", "konvert")
            case "rename":
                update["arguments"] = {f"{name}_x": value for name, value in one.arguments.items()}
            case "reference":
                gone = draw(
                    st.sampled_from(["$nodes.gone.output#/x", "$inputs.gone", f"$nodes.{'g' * 70}.output"])
                )
                update["arguments"] = {**one.arguments, draw(st.sampled_from(ARGUMENTS)): gone}
            case "malformed":
                text = draw(
                    st.sampled_from(["$", "$nodes.alpha", "{{alpha.value}}", "$$", "${beta.x}", "{$inputs.}"])
                )
                update["arguments"] = {**one.arguments, draw(st.sampled_from(ARGUMENTS)): text}
            case "after":
                update["after"] = (*one.after, "gone")
            case "check":
                update["expect"] = ("output.result > `41`",)
            case _:
                pass
        changed.append(one.model_copy(update=update))
    kept = changed[draw(st.integers(0, 1)) :] or changed
    expect = draw(st.sampled_from([(), ("output.total > `1`",), ("nodes.alpha.result == 'x'",)]))
    return planned.model_copy(update={"nodes": tuple(kept), "expect": expect})


@st.composite
def run_faults(draw: st.DrawFn, planned: Workflow) -> tuple[Fault, ...]:
    """Faults as a run of the workflow could have."""
    one = draw(st.sampled_from(planned.nodes))
    tool, message = one.tool or TOOLS[0], draw(st.sampled_from(MESSAGES))
    named = {"message": message, "node": one.id, "tool": tool}
    found: list[Fault] = [
        ToolError(**named),
        DisguisedError(**named),
        OutputSchemaMismatch(**named),
        TimeoutFault(**named),
        ServerUnavailableFault(**named),
        Denied(**named),
        InvalidArgument(message=message, node=one.id, argument=None),
        InvalidArgument(message=message, node=one.id, argument=draw(st.sampled_from(ARGUMENTS))),
        PostconditionFailed(message=message, node=one.id),
        PostconditionFailed(message=message, pointer="/expect/0"),
        CheckFailed(message=message),
        MissingOutput(message=message, pointer="/outputs/total", output="total"),
    ]
    return tuple(draw(st.lists(st.sampled_from(found), max_size=2, unique_by=repr)))


@st.composite
def views(draw: st.DrawFn) -> View:
    planned = draw(damaged())
    faults = (*check_workflow(planned, SNAPSHOT), *draw(run_faults(planned)))
    seen = draw(st.lists(st.sampled_from(planned.nodes), max_size=2))
    outputs = {one.id: draw(json_values) for one in seen}
    return View(WORLD, planned, outputs, {}, faults)


def is_fed(planned: Workflow, name: str) -> bool:
    return any(
        isinstance(part, Found) and part.reference.root == "nodes" for part in scan(planned.outputs[name])
    )


def checks_of(planned: Workflow) -> dict[str, Any]:
    """Return everything of a workflow that says what is right, and when."""
    return {
        "expect": planned.expect,
        "of nodes": {one.id: one.expect for one in planned.nodes if one.expect},
        "outputs": set(planned.outputs),
        "inputs": planned.inputs,
        "name": planned.name,
    }


many = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@many
@given(views())
def test_no_proposal_touches_a_check_a_condition_or_what_the_workflow_promises(view: View):
    before = checks_of(view.workflow)
    conditions = {one.id: one.when for one in view.workflow.nodes}
    mapped = {one.id: one.for_each is None for one in view.workflow.nodes}
    for proposal in propose(view):
        changed = view.workflow
        try:
            for edit in proposal.edits:
                changed = apply_edit(changed, edit)
        except EditRefused:
            continue
        assert checks_of(changed) == before
        for one in changed.nodes:
            if one.id in conditions:
                assert one.when == conditions[one.id]
                assert (one.for_each is None) == mapped[one.id]
        for name in view.workflow.outputs:
            assert is_fed(changed, name) or not is_fed(view.workflow, name)


@many
@given(views())
def test_proposals_are_bounded_ordered_complete_and_always_the_same(view: View):
    before = content_hash(view.workflow)
    proposals = propose(view, limit=40)
    assert len(proposals) <= 40
    assert [p.cost for p in proposals] == sorted(p.cost for p in proposals)
    assert all(p.cost > 0 and p.edits for p in proposals)
    does = [tuple(e.model_dump_json(exclude={"because"}) for e in p.edits) for p in proposals]
    assert len(set(does)) == len(does)
    inserted = [e.planned for p in proposals for e in p.edits if isinstance(e, InsertNode)]
    for planned in inserted:
        assert planned.expect == ()
        assert planned.tool in SNAPSHOT
        assert {"value", "from_unit"} <= set(planned.arguments)
    assert propose(View(view.world, view.workflow, view.outputs, {}, view.faults), limit=40) == proposals
    assert content_hash(view.workflow) == before


@pytest.mark.parametrize("kind", [TimeoutFault, ServerUnavailableFault, Denied])
def test_what_the_world_or_the_policy_did_is_not_repaired(kind: Any):
    fault = kind(message="unknown city, did you mean 'Rome'?", node="now", tool=ToolId("weather", "current"))
    assert propose(view_of(weather_plan(), fault)) == []


def test_a_ladder_of_waits_is_measured_at_once():
    rungs: list[dict[str, Any]] = []
    before: list[str] = []
    for level in range(45):
        names = [f"a{level}", f"b{level}"]
        rungs += [node(name, "tables/count_rows", {"table": "t"}, after=list(before)) for name in names]
        before = names
    rungs[-1]["arguments"] = {}
    planned = workflow(*rungs, outputs={"o": "$nodes.a44.output"})
    view = view_of(planned, *check_workflow(planned, world_of().snapshot))
    assert propose(view)  # it took longer than anybody waits when every path was walked


class TestWhatAProposerSees:
    """`CONTRACTS`: proposers of plans and edits never see the literals of an assertion."""

    def faults(self, checks: Checks, **fields: Any) -> tuple[Fault, ...]:
        planned = weather_plan().model_copy(update=fields)
        result = {"fahrenheit": 41.0}
        nodes = {"now": {"station": "north", "temp_c": 5.0}, "conv": {"converted_value": 41.0}}
        trace = Trace(
            id="t", workflow_hash="sha256:0", inputs={}, steps=(), outputs=result, status="succeeded"
        )
        run = Run(trace=trace, outputs=nodes, faults=(), result=result)
        verdict = verify(run, planned, {"city": "Oslo"}, checks)
        assert verdict.faults
        return (*check_workflow(planned, world_of().snapshot), *verdict.faults)

    @pytest.mark.parametrize(
        ("checks", "fields"),
        [
            pytest.param(Checks(("output.fahrenheit == `98765`",)), {}, id="equality"),
            pytest.param(Checks(("contains(output.fahrenheit, '98765')",)), {}, id="type error"),
            pytest.param(Checks(("output.gone == `98765`",)), {}, id="missing path"),
            pytest.param(Checks(("output.fahrenheit == '98765",)), {}, id="malformed"),
            pytest.param(
                Checks(schema={"properties": {"fahrenheit": {"const": 98765}}}), {}, id="const of a schema"
            ),
            pytest.param(
                Checks(schema={"properties": {"fahrenheit": {"enum": [98765, 1]}}}), {}, id="enum of a schema"
            ),
            pytest.param(
                Checks(schema={"properties": {"fahrenheit": {"minimum": 98765}}}), {}, id="bound of a schema"
            ),
            pytest.param(Checks(), {"expect": ("output.fahrenheit == `98765`",)}, id="expect"),
            pytest.param(Checks(), {"expect": ("output.fahrenheit == '98765",)}, id="malformed expect"),
        ],
    )
    def test_no_literal_of_an_assertion(self, checks: Checks, fields: dict[str, Any]):
        faults = self.faults(checks, **fields)
        assert any("98765" in fault.model_dump_json() for fault in faults), "else nothing is shown here"
        view = view_of(weather_plan(), *faults, world=world_of("Tell", {"city": "Oslo"}))
        assert [fault.kind for fault in view.visible_faults] == [fault.kind for fault in faults]
        assert not any("98765" in fault.model_dump_json() for fault in view.visible_faults)
        shown = [edit.model_dump_json() for proposal in propose(view) for edit in proposal.edits]
        assert "98765" not in json.dumps(shown)

    def test_a_check_of_a_node_that_cannot_be_read_is_hidden_too(self):
        planned = workflow(
            node("n", "sums/add", {"a": 1, "b": 2}, expect=["output.result == '98765"]),
            outputs={"o": "$nodes.n.output"},
        )
        (fault,) = view_of(planned, *check_workflow(planned, world_of().snapshot)).visible_faults
        assert fault.message == "the check cannot be read"

    def test_what_a_server_said_is_seen(self):
        fault = ToolError(message="unknown unit", node="conv", tool=ToolId("units", "convert_temperature"))
        assert view_of(weather_plan(), fault).visible_faults == (fault,)


def test_the_world_that_is_damaged_here_has_the_tools_and_inputs_of_the_strategies():
    assert isinstance(WORLD, World)
    assert set(SNAPSHOT.tools) == set(TOOLS)
    assert set(WORLD.inputs) == set(INPUTS)


def test_a_malformed_reference_in_one_node_does_not_end_the_repair_of_another():
    planned = workflow(
        node("one", "sums/add", {"a": "$nodes.gone.output#/result", "b": 1}),
        node("two", "sums/add", {"a": "$", "b": "$inputs.x"}),
        outputs={"o": "$nodes.one.output#/result"},
    )
    view = view_of(
        planned, *check_workflow(planned, world_of().snapshot), world=world_of(inputs={"x": 1, "y": 2})
    )
    assert any(isinstance(edit, InsertNode) for proposal in propose(view) for edit in proposal.edits)

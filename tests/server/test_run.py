"""Running workflows: data flow, faults at their places, and nothing finished lost."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from catalog.effects import Effect
from catalog.result import CallFailure, CallSuccess, FailureKind, RanUpstream
from catalog.tools import Snapshot, Tool, ToolId
from server.execution.calls import Answer, CallRequest, ScriptedCaller
from server.execution.options import RunOptions
from server.execution.run import Run, execute_workflow
from server.execution.spill import Spill
from server.progress import Progress
from skills_store.redaction import Redactor
from skills_store.workflow.model import Workflow, parse_workflow

pytestmark = pytest.mark.anyio

NUMBER = {"type": "number"}


def tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(ToolId("s", name), schema)


CATALOG = Snapshot.of(
    tool("one"),
    tool("double", ("value",), value=NUMBER),
    tool("add", ("a", "b"), a=NUMBER, b=NUMBER),
    tool("say", text={"type": "string"}),
)
SCRIPT = {
    ToolId("s", "one"): {"result": 1},
    ToolId("s", "double"): lambda r: succeeded({"result": 2 * r.arguments["value"]}),
    ToolId("s", "add"): lambda r: succeeded({"result": r.arguments["a"] + r.arguments["b"]}),
    ToolId("s", "say"): lambda r: succeeded({"said": r.arguments.get("text", "")}),
}


def succeeded(value: Any) -> CallSuccess:
    return CallSuccess(structured=value, content=[], seconds=0.0)


def node(node_id: str, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    target = {"tool": {"server": "s", "tool": name}}
    return {"id": node_id, **target, "arguments": arguments or {}, **more}


def workflow(
    *nodes: dict[str, Any], outputs: dict[str, Any], inputs: dict[str, Any] | None = None
) -> Workflow:
    schema = {"type": "object", "properties": inputs or {}}
    return parse_workflow({"name": "w", "inputs": schema, "nodes": list(nodes), "outputs": outputs})


async def run(
    planned: Workflow, inputs: dict[str, Any] | None = None, caller: Any = None, **options: Any
) -> Run:
    chosen = caller or ScriptedCaller(SCRIPT)
    return await execute_workflow(
        planned, inputs or {}, chosen, snapshot=CATALOG, options=RunOptions(**options)
    )


def outcomes(finished: Run) -> dict[str, str]:
    return {step.node: step.outcome for step in finished.trace.steps}


async def test_outputs_flow_along_references_in_any_document_order():
    planned = workflow(
        node("sum", "add", {"a": "$nodes.left.output#/result", "b": "$nodes.right.output#/result"}),
        node("left", "double", {"value": "$inputs.x"}),
        node("right", "double", {"value": 10}),
        outputs={"total": "$nodes.sum.output#/result"},
        inputs={"x": NUMBER},
    )
    finished = await run(planned, {"x": 1})
    assert finished.result == {"total": 22}
    assert finished.trace.status == "succeeded"
    assert [(step.node, step.wave) for step in finished.trace.steps] == [
        ("left", 0),
        ("right", 0),
        ("sum", 1),
    ]
    assert finished.trace.calls == 3


async def test_an_input_left_out_takes_its_default():
    planned = workflow(
        node("d", "double", {"value": "$inputs.x"}),
        outputs={"r": "$nodes.d.output#/result"},
        inputs={"x": {"type": "number", "default": 4}},
    )
    assert (await run(planned)).result == {"r": 8}


async def test_inputs_that_do_not_fit_stop_everything_before_any_call():
    caller = ScriptedCaller(SCRIPT)
    planned = workflow(node("a", "one"), outputs={"r": "$nodes.a.output"}, inputs={"x": NUMBER})
    finished = await run(planned, {"x": "much"}, caller)
    assert [(fault.kind, fault.pointer) for fault in finished.faults] == [("invalid_argument", "/inputs/x")]
    assert (caller.requests, outcomes(finished)) == ([], {"a": "not_reached"})


async def test_a_failing_node_stops_only_what_depends_on_it():
    script = {**SCRIPT, ToolId("s", "one"): failed(FailureKind.TOOL_ERROR, "no")}
    planned = workflow(
        node("bad", "one"),
        node("after_bad", "say", {"text": "x"}, after=["bad"]),
        node("reads_after", "say", {"text": "$nodes.after_bad.output#/said"}),
        node("good", "double", {"value": 3}),
        outputs={"r": "$nodes.good.output#/result", "s": "$nodes.reads_after.output"},
    )
    finished = await run(planned, caller=ScriptedCaller(script))
    assert outcomes(finished) == {
        "bad": "failed",
        "after_bad": "not_reached",
        "reads_after": "not_reached",
        "good": "succeeded",
    }
    assert finished.outputs == {"good": {"result": 6}}
    assert [fault.kind for fault in finished.faults] == ["tool_error"]
    assert (finished.result, finished.trace.outputs, finished.trace.status) == (None, None, "failed")


def failed(kind: FailureKind, message: str, ran: RanUpstream = RanUpstream.YES) -> CallFailure:
    return CallFailure(kind, message, 0.0, ran)


async def test_a_dangling_pointer_names_the_keys_that_are_there():
    planned = workflow(
        node("a", "one"),
        node("b", "double", {"value": "$nodes.a.output#/value"}),
        outputs={"r": "$nodes.b.output#/result"},
    )
    (fault,) = (await run(planned)).faults
    assert fault.kind == "dangling_reference"
    assert (fault.node, fault.pointer) == ("b", "/nodes/1/arguments/value")
    assert (fault.reference, fault.available) == ("$nodes.a.output#/value", ("result",))


async def test_a_reference_to_no_node_names_all_nodes_there_are():
    planned = workflow(
        node("a", "one"),
        node("b", "double", {"value": "$nodes.c.output#/result"}),
        outputs={"r": "$nodes.a.output"},
    )
    (fault,) = (await run(planned)).faults
    assert (fault.kind, fault.available) == ("dangling_reference", ("a",))


async def test_a_dangling_output_keeps_what_the_nodes_gave():
    planned = workflow(node("a", "one"), outputs={"r/x": "$nodes.a.output#/value"})
    finished = await run(planned)
    (fault,) = finished.faults
    assert (fault.kind, fault.node, fault.pointer) == ("dangling_reference", None, "/outputs/r~1x")
    assert finished.outputs == {"a": {"result": 1}}


VALUE = "/nodes/0/arguments/value"
LOCAL = [
    pytest.param({}, "missing_argument", "value", "/nodes/0/arguments", id="missing"),
    pytest.param(
        {"value": 1, "precision": 2},
        "unexpected_argument",
        "precision",
        "/nodes/0/arguments/precision",
        id="unexpected",
    ),
    pytest.param({"value": "300 miles"}, "invalid_argument", "value", VALUE, id="wrong type"),
    pytest.param({"value": "$item"}, "dangling_reference", None, VALUE, id="item outside of a map"),
    pytest.param({"value": "$oops"}, "malformed", None, VALUE, id="no reference"),
]


@pytest.mark.parametrize(("arguments", "kind", "argument", "pointer"), LOCAL)
async def test_what_is_wrong_with_arguments_is_seen_before_the_call(arguments, kind, argument, pointer):
    caller = ScriptedCaller(SCRIPT)
    planned = workflow(node("d", "double", arguments), outputs={"r": "$nodes.d.output"})
    finished = await run(planned, caller=caller)
    (fault,) = finished.faults
    assert (fault.kind, getattr(fault, "argument", None), fault.pointer) == (kind, argument, pointer)
    assert caller.requests == []
    assert finished.trace.steps[0].fault == fault


async def test_a_tool_that_is_not_in_the_catalog_is_not_called():
    caller = ScriptedCaller(SCRIPT)
    planned = workflow(node("d", "doubled", {"value": 1}), outputs={"r": "$nodes.d.output"})
    (fault,) = (await run(planned, caller=caller)).faults
    assert (fault.kind, fault.pointer, fault.similar[0]) == (
        "unknown_tool",
        "/nodes/0/tool",
        ToolId("s", "double"),
    )
    assert caller.requests == []


async def test_exact_scalar_text_is_coerced_and_recorded():
    caller = ScriptedCaller(SCRIPT)
    planned = workflow(node("d", "double", {"value": "300"}), outputs={"r": "$nodes.d.output#/result"})
    finished = await run(planned, caller=caller)
    assert finished.result == {"r": 600}
    assert caller.requests[0].arguments == {"value": 300}
    (coercion,) = finished.trace.steps[0].coercions
    assert (coercion.pointer, coercion.before, coercion.after) == ("/value", "300", 300)


async def test_a_mapped_node_gives_the_list_of_outputs_in_order():
    planned = workflow(
        node("m", "double", {"value": "$item"}, for_each="$inputs.xs"),
        outputs={"all": "$nodes.m.output", "second": "$nodes.m.output#/1/result"},
        inputs={"xs": {"type": "array"}},
    )
    finished = await run(planned, {"xs": [1, 2, 3]})
    assert finished.result == {"all": [{"result": 2}, {"result": 4}, {"result": 6}], "second": 4}
    assert [step.item for step in finished.trace.steps] == [0, 1, 2]


async def test_a_map_over_nothing_gives_an_empty_list_and_a_step():
    planned = workflow(
        node("m", "double", {"value": "$item"}, for_each="$inputs.xs"),
        outputs={"all": "$nodes.m.output"},
        inputs={"xs": {"type": "array"}},
    )
    finished = await run(planned, {"xs": []})
    assert (finished.result, outcomes(finished)) == ({"all": []}, {"m": "succeeded"})


async def test_one_failing_item_fails_the_node_and_is_named_while_the_others_run():
    def answer(request: CallRequest):
        value = request.arguments["value"]
        return failed(FailureKind.TOOL_ERROR, "odd") if value == 2 else succeeded({"result": value})

    caller = ScriptedCaller({ToolId("s", "double"): answer})
    planned = workflow(
        node("m", "double", {"value": "$item"}, for_each="$inputs.xs"),
        outputs={"all": "$nodes.m.output"},
        inputs={"xs": {"type": "array"}},
    )
    finished = await run(planned, {"xs": [1, 2, 3]}, caller)
    (fault,) = finished.faults
    assert (fault.kind, fault.item) == ("tool_error", 1)
    assert [step.outcome for step in finished.trace.steps] == ["succeeded", "failed", "succeeded"]


async def test_an_item_that_is_wrong_here_keeps_every_item_from_being_called():
    caller = ScriptedCaller(SCRIPT)
    planned = workflow(
        node("m", "double", {"value": "$item"}, for_each="$inputs.xs"),
        outputs={"all": "$nodes.m.output"},
        inputs={"xs": {"type": "array"}},
    )
    finished = await run(planned, {"xs": [1, "two"]}, caller)
    assert [(fault.kind, fault.item) for fault in finished.faults] == [("invalid_argument", 1)]
    assert [step.outcome for step in finished.trace.steps] == ["not_reached", "failed"]
    assert caller.requests == []


@pytest.mark.parametrize(
    ("for_each", "kind"),
    [
        pytest.param("$inputs.word", "invalid_argument", id="no list"),
        pytest.param("$inputs.many", "over_limit", id="too many"),
        pytest.param("$inputs.none", "dangling_reference", id="not there"),
    ],
)
async def test_what_a_node_maps_over_must_be_a_bounded_list(for_each, kind):
    planned = workflow(
        node("m", "double", {"value": "$item"}, for_each=for_each),
        outputs={"all": "$nodes.m.output"},
        inputs={"word": {"type": "string"}, "many": {"type": "array"}},
    )
    (fault,) = (await run(planned, {"word": "x", "many": list(range(101))})).faults
    assert (fault.kind, fault.pointer) == (kind, "/nodes/0/for_each")


async def test_a_skipped_node_skips_its_readers_satisfies_after_and_nulls_outputs():
    planned = workflow(
        node("off", "one", when="$inputs.wanted"),
        node("reader", "say", {"text": "{$nodes.off.output#/result}"}),
        node("later", "one", after=["off"]),
        outputs={"gone": "$nodes.reader.output#/said", "there": "$nodes.later.output#/result"},
        inputs={"wanted": {"type": "boolean"}},
    )
    finished = await run(planned, {"wanted": False})
    assert outcomes(finished) == {"off": "skipped", "later": "succeeded", "reader": "skipped"}
    assert finished.result == {"gone": None, "there": 1}
    assert finished.trace.status == "succeeded"


async def test_when_must_be_a_boolean():
    planned = workflow(
        node("a", "one", when="$inputs.wanted"), outputs={"r": "$nodes.a.output"}, inputs={"wanted": {}}
    )
    (fault,) = (await run(planned, {"wanted": "yes"})).faults
    assert (fault.kind, fault.pointer, fault.found) == ("invalid_argument", "/nodes/0/when", "yes")


async def test_a_node_whose_expectation_does_not_hold_fails():
    planned = workflow(
        node("a", "one", expect=["output.result == `1`", "output.result > `5`"]),
        node("b", "double", {"value": "$nodes.a.output#/result"}),
        outputs={"r": "$nodes.b.output"},
    )
    finished = await run(planned)
    (fault,) = finished.faults
    assert (fault.kind, fault.pointer, fault.found) == ("postcondition_failed", "/nodes/0/expect/1", 1)
    assert outcomes(finished) == {"a": "failed", "b": "not_reached"}


async def test_an_expectation_may_read_inputs_and_earlier_nodes():
    planned = workflow(
        node("a", "one"),
        node(
            "b",
            "double",
            {"value": "$nodes.a.output#/result"},
            expect="inputs.x > nodes.a.output.result && nodes.b.output.result == output.result",
        ),
        outputs={"r": "$nodes.b.output#/result"},
        inputs={"x": NUMBER},
    )
    assert (await run(planned, {"x": 2})).result == {"r": 2}


async def test_nodes_that_wait_for_each_other_are_a_fault_and_nothing_runs():
    caller = ScriptedCaller(SCRIPT)
    planned = workflow(
        node("a", "double", {"value": "$nodes.b.output#/result"}),
        node("b", "double", {"value": "$nodes.a.output#/result"}),
        outputs={"r": "$nodes.b.output"},
    )
    finished = await run(planned, caller=caller)
    assert [fault.kind for fault in finished.faults] == ["cycle"]
    assert (caller.requests, set(outcomes(finished).values())) == ([], {"not_reached"})


SKILL = workflow(
    node("first", "double", {"value": "$inputs.x"}),
    node("second", "double", {"value": "$nodes.first.output#/result"}),
    outputs={"four_fold": "$nodes.second.output#/result"},
    inputs={"x": NUMBER},
)


def calling_skill(name: str = "quadruple", **more: Any) -> Workflow:
    planned = {"id": "q", "skill": {"name": name, "version": 1}, "arguments": {"x": 3}, **more}
    return workflow(planned, outputs={"r": "$nodes.q.output#/four_fold"})


def skills(name: str, version: int) -> Workflow | None:
    return {("quadruple", 1): SKILL, ("endless", 1): calling_skill("endless", arguments={})}.get(
        (name, version)
    )


async def test_a_skill_node_runs_its_workflow_and_records_its_steps_under_the_node():
    caller = ScriptedCaller(SCRIPT)
    finished = await run(calling_skill(), caller=caller, skills=skills)
    assert finished.result == {"r": 12}
    assert [(s.node, s.skill, s.tool and s.tool.tool) for s in finished.trace.steps] == [
        ("q", "quadruple", "double"),
        ("q", "quadruple", "double"),
        ("q", "quadruple", None),
    ]
    assert [request.node for request in caller.requests] == ["q.first", "q.second"]
    assert (finished.trace.calls, finished.trace.steps[-1].effect) == (2, Effect.PURE)


async def test_a_fault_inside_a_skill_stands_at_the_node_that_calls_it():
    caller = ScriptedCaller({ToolId("s", "double"): failed(FailureKind.TIMEOUT, "slow", RanUpstream.UNSURE)})
    finished = await run(calling_skill(), caller=caller, skills=skills)
    (fault,) = finished.faults
    assert (fault.kind, fault.node, fault.pointer) == ("timeout", "q", "/nodes/0")
    assert fault.message == "skill quadruple@1, node first: slow"


@pytest.mark.parametrize(
    ("planned", "kind"),
    [
        pytest.param(calling_skill("nobody"), "dangling_reference", id="unknown"),
        pytest.param(calling_skill("quadruple", arguments={}), "dangling_reference", id="input left out"),
        pytest.param(
            calling_skill("quadruple", arguments={"x": "much"}), "invalid_argument", id="wrong input"
        ),
    ],
)
async def test_a_skill_that_cannot_be_called_is_a_fault_of_its_node(planned, kind):
    (fault,) = (await run(planned, skills=skills)).faults
    assert (fault.kind, fault.node) == (kind, "q")


async def test_skills_nest_only_so_deep():
    planned = calling_skill("endless", arguments={})
    (fault,) = (await run(planned, skills=skills)).faults
    assert fault.kind == "over_limit"


class Gate:
    """A caller whose calls wait to be let through."""

    def __init__(self) -> None:
        self.open = anyio.Event()
        self.waiting: list[str] = []
        self.arrived = anyio.Event()
        self.wanted = 1
        self.cancelled: list[str] = []

    async def call(self, request: CallRequest) -> Answer:
        self.waiting.append(request.node)
        if len(self.waiting) >= self.wanted:
            self.arrived.set()
        try:
            await self.open.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(request.node)
            raise
        return Answer(succeeded({"result": 1}))


async def test_no_more_calls_are_on_their_way_than_the_limit_allows():
    gate = Gate()
    gate.wanted = 2
    planned = workflow(*(node(f"n{i}", "one") for i in range(4)), outputs={"r": "$nodes.n0.output"})
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: run(planned, caller=gate, concurrency=2))
            await gate.arrived.wait()
            await anyio.wait_all_tasks_blocked()
            assert len(gate.waiting) == 2
            gate.open.set()
    assert len(gate.waiting) == 4


async def test_cancelling_a_run_cancels_its_calls():
    gate = Gate()
    planned = workflow(node("a", "one"), outputs={"r": "$nodes.a.output"})
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: run(planned, caller=gate))
            await gate.arrived.wait()
            tasks.cancel_scope.cancel()
    assert gate.cancelled == ["a"]


@pytest.mark.parametrize(("own", "default", "sent"), [(3.0, 9.0, 3.0), (None, 9.0, 9.0), (None, None, None)])
async def test_a_nodes_timeout_goes_before_the_runs(own, default, sent):
    caller = ScriptedCaller(SCRIPT)
    planned = workflow(node("a", "one", timeout_seconds=own), outputs={"r": "$nodes.a.output"})
    await run(planned, caller=caller, timeout_seconds=default)
    assert caller.requests[0].timeout_seconds == sent


async def test_a_denied_call_that_waits_for_consent_makes_the_run_wait_too():
    class Denying:
        async def call(self, request: CallRequest) -> Answer:
            del request
            return Answer(failed(FailureKind.DENIED, "ask", RanUpstream.NO), calls=0, needs_approval=True)

    finished = await run(workflow(node("a", "one"), outputs={"r": "$nodes.a.output"}), caller=Denying())
    assert (finished.trace.status, finished.trace.calls) == ("needs_approval", 0)
    assert finished.faults[0].needs_approval


async def test_large_outputs_are_previewed_in_the_trace_kept_whole_and_spilled(tmp_path):
    text = "x" * 50_000
    caller = ScriptedCaller({ToolId("s", "one"): {"text": text}})
    planned = workflow(node("a", "one"), outputs={"r": "$nodes.a.output#/text"})
    finished = await run(planned, caller=caller, spill=Spill(tmp_path))
    (step,) = finished.trace.steps
    assert step.output["$digest"] == step.output_digest
    assert len(finished.trace.model_dump_json()) < 10_000
    assert finished.result == {"r": text}
    assert Spill(tmp_path).read(step.output_digest) == f'{{"text":"{text}"}}'.encode()


async def test_secrets_never_reach_the_trace():
    secret = "hunter2-hunter2"
    script = {ToolId("s", "say"): failed(FailureKind.TOOL_ERROR, f"refused {secret}")}
    planned = workflow(
        node("a", "say", {"text": "$inputs.key"}), outputs={"r": "$nodes.a.output"}, inputs={"key": {}}
    )
    finished = await run(
        planned,
        {"key": secret},
        ScriptedCaller(script),
        redact=Redactor([secret]).redact,
        task=f"say {secret}",
    )
    assert secret not in finished.trace.model_dump_json()
    assert "[redacted]" in finished.trace.faults[0].message
    assert secret in finished.faults[0].message


async def test_an_answer_that_is_no_json_is_a_fault_of_the_tool():
    caller = ScriptedCaller({ToolId("s", "one"): {"text": "\ud800"}})
    (fault,) = (await run(workflow(node("a", "one"), outputs={"r": "$nodes.a.output"}), caller=caller)).faults
    assert fault.kind == "output_schema_mismatch"


async def test_a_listener_hears_of_every_node():
    heard: list[Progress] = []
    planned = workflow(node("a", "one"), node("b", "one", after=["a"]), outputs={"r": "$nodes.b.output"})
    await run(planned, listener=heard.append)
    assert [progress.message for progress in heard] == [
        "a: s/one succeeded (1 of 2)",
        "b: s/one succeeded (2 of 2)",
    ]
    assert [progress.calls for progress in heard] == [1, 2]

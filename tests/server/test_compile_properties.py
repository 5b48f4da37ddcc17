"""Compile, then run: the skill made of a chain of calls gives on its own inputs what the chain gave."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.effects import Effect, EffectTable
from catalog.result import CallSuccess
from catalog.tools import Snapshot, Tool, ToolId
from server.compilation.compile import Compiled, Surroundings, VerifiedRun, compile_skill
from server.compilation.errors import NotCompilable
from server.compilation.recorded import Call, run_in_order
from server.execution.calls import CallRequest, ScriptedCaller
from server.execution.run import execute_workflow
from skills_store.trace import Step, Trace
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.references import Scope, resolve

NUMBER, TEXT = {"type": "number"}, {"type": "string"}


def total(n: dict[str, Any]) -> Any:
    return {"result": n["a"] + n["b"], "of": [n["a"], n["b"]]}


def told(n: dict[str, Any]) -> Any:
    return {"text": f"Value:   ${n['value']:,.2f}\nUnit: {n['unit']}"}


def rows(n: dict[str, Any]) -> Any:
    return {
        "rows": [{"key": f"{n['word']}-{i}", "group": n["word"], "size": 1000 + 17 * i} for i in range(3)]
    }


def joined(n: dict[str, Any]) -> Any:
    return {"code": "/".join(str(part) for part in n["parts"]) + f"#{len(n['parts'])}"}


TOOLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "total": (total, {"a": NUMBER, "b": NUMBER}),
    "told": (told, {"value": NUMBER, "unit": TEXT}),
    "rows": (rows, {"word": TEXT}),
    "joined": (joined, {"parts": {"type": "array", "items": TEXT}}),
}
SNAPSHOT = Snapshot.of(
    *(
        Tool(
            id=ToolId("s", name),
            description=name,
            input_schema={"type": "object", "properties": properties, "required": list(properties)},
        )
        for name, (_, properties) in TOOLS.items()
    )
)
EFFECTS = EffectTable(effects={"s": {"*": Effect.PURE}})
AROUND = Surroundings(SNAPSHOT, EFFECTS, lambda _name, _version: None, now=0.0)

numbers = st.one_of(st.integers(-5, 5000), st.floats(-900, 90000, allow_nan=False).map(lambda f: round(f, 2)))
words = st.sampled_from(["alpha", "Oslo", "B3", "x", "net total", "2026-05-04", "{odd}", "$5"])


def scalars(value: Any) -> list[Any]:
    match value:
        case dict():
            return [leaf for item in value.values() for leaf in scalars(item)]
        case list():
            return [leaf for item in value for leaf in scalars(item)]
        case _:
            return [value]


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[Call], str]:
    """Calls whose arguments are new values or ones from earlier answers, and a task that says some."""
    calls: list[Call] = []
    said: list[Any] = []
    for _ in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from(sorted(TOOLS)))
        known = [leaf for call in calls for leaf in scalars(call.output)]

        def one(
            fresh: st.SearchStrategy[Any], kind: type | tuple[type, ...], known: list[Any] = known
        ) -> Any:
            fitting = [value for value in known if isinstance(value, kind)]
            value = draw(st.one_of(fresh, st.sampled_from(fitting)) if fitting else fresh)
            if draw(st.booleans()):
                said.append(value)
            return value

        arguments: dict[str, Any] = {}
        for argument, schema in TOOLS[name][1].items():
            if schema == NUMBER:
                arguments[argument] = one(numbers, (int, float))
            elif schema == TEXT:
                arguments[argument] = one(words, str)
            else:
                arguments[argument] = [one(words, str) for _ in range(draw(st.integers(0, 3)))]
        calls.append(Call(ToolId("s", name), arguments, TOOLS[name][0](arguments)))
    return calls, "Do it with " + ", then ".join(f"'{value}'" for value in said)


def verified_run(calls: list[Call], task: str) -> VerifiedRun:
    workflow, node_outputs = run_in_order(calls, "recorded", EFFECTS)
    outputs = {name: resolve(value, Scope(outputs=node_outputs)) for name, value in workflow.outputs.items()}
    steps = tuple(
        Step(
            node=node.id,
            tool=node.tool,
            arguments={name: resolve(value, Scope()) for name, value in node.arguments.items()},
            outcome="succeeded",
            output=node_outputs[node.id],
        )
        for node in workflow.nodes
    )
    trace = Trace(
        id="t",
        workflow_hash=content_hash(workflow),
        inputs={},
        steps=steps,
        outputs=outputs,
        status="succeeded",
        calls=len(calls),
        seconds=0.0,
        started_at=0.0,
        task=task,
    )
    return VerifiedRun(workflow, trace, outputs, node_outputs, task, {}, is_recording=True)


def run_again(compiled: Compiled) -> Any:
    def answer(request: CallRequest) -> Any:
        return TOOLS[request.tool.tool][0](request.arguments)

    async def run() -> Any:
        script = {
            tool.id: lambda request: CallSuccess(structured=answer(request), content=[], seconds=0.0)
            for tool in SNAPSHOT
        }
        test = compiled.skill.tests[0]
        caller = ScriptedCaller(script, {tool.id: Effect.PURE for tool in SNAPSHOT})
        return await execute_workflow(compiled.skill.workflow, test.inputs, caller, snapshot=SNAPSHOT)

    return anyio.run(run)


@settings(max_examples=150, deadline=None)
@given(chains())
def test_a_compiled_chain_run_on_its_own_inputs_gives_what_was_recorded(chain):
    calls, task = chain
    try:
        readings = compile_skill(verified_run(calls, task), "chain", AROUND, explicit=True)
    except NotCompilable as error:
        pytest.fail(f"a chain of successful calls is not compilable: {error}")
    for compiled in readings:
        run = run_again(compiled)
        assert run.faults == ()
        assert run.trace.outputs == compiled.skill.tests[0].outputs


@settings(max_examples=100, deadline=None)
@given(chains())
def test_every_reading_makes_the_last_call_as_it_was_made(chain):
    calls, task = chain
    for compiled in compile_skill(verified_run(calls, task), "chain", AROUND, explicit=True):
        sent = [step.arguments for step in run_again(compiled).trace.steps if step.tool == calls[-1].tool]
        assert calls[-1].arguments in sent

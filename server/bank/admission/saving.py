"""Saving what was worked out already: a conversation's calls, or one run, becomes a skill.

What a person did once by hand, through a client with a large model, becomes a tool that a small one
can call. Compiling is `server.compilation`, judging and keeping `learning`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import cast

from pydantic import JsonValue

from server.bank.admission.learning import Learned, check_name, learn
from server.bank.context import Context
from server.bank.errors import NotSaved, UnknownTrace
from server.bank.using import skill_report
from server.compilation.compile import VerifiedRun
from server.compilation.recorded import Call, run_in_order
from server.reports import RecordedCallReport, RecordingReport, RecordingsReport, SavedReport
from server.requests import SaveRequest
from skills_store.errors import MalformedWorkflow
from skills_store.trace import Step, Trace
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Node, parse_workflow
from skills_store.workflow.references import ExpressionError, Scope, Unresolved, resolve

__all__ = ["forget_recording", "kept_run", "list_recordings", "save", "show_recording"]


async def save(request: SaveRequest, context: Context) -> SavedReport:
    """Compile a kept run or conversation into a skill under the name that was asked for.

    Raises:
        NotSaved: there is nothing to compile; says why.
        UnknownTrace: no such conversation or run is kept.
    """
    check_name(request.name)
    context.afterwards.finish()
    run = await kept_run(request, context)
    learned = await learn(run, context, name=request.name, examples=request.examples)
    return _report(learned, len(run.trace.steps), context)


async def kept_run(request: SaveRequest, context: Context) -> VerifiedRun:
    """Return the kept run or conversation that a request means, as it is compiled.

    Raises:
        NotSaved: there is nothing to compile; says why.
        UnknownTrace: no such conversation or run is kept.
    """
    traces = _chosen(request, context)
    await context.snapshot({step.tool.server for trace in traces for step in trace.steps if step.tool})
    whole = traces[0] if len(traces) == 1 and traces[0].workflow is not None else None
    return _run_again(whole, request, context) if whole else _run_of_calls(traces, request, context)


def _report(learned: Learned, calls: int, context: Context) -> SavedReport:
    skill = learned.skill
    return SavedReport(
        skill=skill_report(skill, context) if skill else None,
        reason=learned.reason,
        calls=calls,
        verdict=learned.verdict,
    )


def _chosen(request: SaveRequest, context: Context) -> list[Trace]:
    """Return the traces to compile: of the conversation or run that is named, else of the last one."""
    store = context.store
    if request.recording is not None:
        return _calls_of(request.recording, request.calls, context)
    if request.trace is not None:
        trace = store.trace(request.trace)
        if trace is None:
            raise UnknownTrace(f"no run {request.trace!r} is kept")
        return [trace]
    if not (newest := store.traces(1)):
        raise NotSaved("nothing was run or called yet: run a workflow, or call tools with call_tool")
    if (last := newest[0].recording) is not None:
        return _calls_of(last, request.calls, context)
    return newest


def _calls_of(name: str, calls: Sequence[int], context: Context) -> list[Trace]:
    traces = _recording(name, context)
    if wrong := [number for number in calls if not 1 <= number <= len(traces)]:
        raise NotSaved(f"recording {name} has calls 1 to {len(traces)}, not {wrong[0]}")
    return [traces[number - 1] for number in calls] if calls else traces


def _recording(name: str, context: Context) -> list[Trace]:
    context.afterwards.finish()
    if traces := context.store.recording(name):
        return traces
    known = ", ".join(kept.name for kept in context.store.recordings(5)) or "none yet"
    raise UnknownTrace(f"no recording {name!r} is kept; the newest: {known}")


def _run_of_calls(traces: Sequence[Trace], request: SaveRequest, context: Context) -> VerifiedRun:
    """Return the run that the successful calls of a conversation are."""
    done = [step for trace in traces for step in trace.steps if step.outcome == "succeeded" and step.tool]
    if not done:
        raise NotSaved("none of its calls succeeded: there is nothing to compile")
    calls = [
        Call(step.tool, _whole_arguments(step, context), _whole(step.output, context))
        for step in done
        if step.tool is not None
    ]
    workflow, node_outputs = run_in_order(calls, "recorded", context.effects)
    outputs = {name: resolve(value, Scope(outputs=node_outputs)) for name, value in workflow.outputs.items()}
    made = zip(workflow.nodes, node_outputs.values(), strict=True)
    steps = [_recorded_step(node, output, context) for node, output in made]
    trace = Trace(
        id=traces[0].recording or traces[0].id,
        workflow_hash=content_hash(workflow),
        inputs={},
        steps=tuple(steps),
        outputs=outputs,
        status="succeeded",
        calls=len(calls),
        seconds=sum(trace.seconds for trace in traces),
        started_at=traces[0].started_at,
        task=request.task,
    )
    return VerifiedRun(
        workflow=workflow,
        trace=trace,
        outputs=outputs,
        node_outputs=node_outputs,
        task=request.task,
        inputs=dict(request.inputs),
        verifications=tuple(said for trace in traces for said in trace.verifications),
        is_recording=True,
    )


def _recorded_step(node: Node, output: JsonValue, context: Context) -> Step:
    """Return the step of a call as tests of a skill keep it: what was sent, what came back, both bounded."""
    kept = context.recorder.value(output)
    arguments = {name: resolve(value, Scope()) for name, value in node.arguments.items()}
    return Step(
        node=node.id,
        tool=node.tool,
        arguments=context.recorder.values(arguments),
        outcome="succeeded",
        output=kept.value,
        output_digest=kept.digest,
    )


def _run_again(trace: Trace, request: SaveRequest, context: Context) -> VerifiedRun:
    """Return a kept run of a workflow as it was when it ended."""
    if trace.outputs is None or trace.status in ("failed", "cancelled", "needs_approval"):
        raise NotSaved(
            f"run {trace.id} is {trace.status.replace('_', ' ')}: only one that gave outputs is saved"
        )
    try:
        workflow = parse_workflow(trace.workflow)
        node_outputs = _node_outputs(trace.steps, {n.id for n in workflow if n.for_each is not None}, context)
        scope = Scope(inputs=trace.inputs, outputs=node_outputs)
        outputs = {name: resolve(value, scope) for name, value in workflow.outputs.items()}
    except (MalformedWorkflow, Unresolved, ExpressionError) as error:
        raise NotSaved(f"run {trace.id} cannot be read back: {error}") from error
    return VerifiedRun(
        workflow=workflow,
        trace=trace,
        outputs=outputs,
        node_outputs=node_outputs,
        task=request.task or trace.task,
        inputs=trace.inputs or dict(request.inputs),
        verifications=trace.verifications,
    )


def _node_outputs(steps: Iterable[Step], mapped: set[str], context: Context) -> dict[str, JsonValue]:
    outputs: dict[str, JsonValue] = {}
    for step in steps:
        if step.outcome != "succeeded":
            continue
        value = _whole(step.output, context)
        if step.node in mapped:
            items = outputs.setdefault(step.node, [])
            cast("list[JsonValue]", items).append(value)
        else:
            outputs[step.node] = value
    return outputs


def _whole_arguments(step: Step, context: Context) -> dict[str, JsonValue]:
    return {name: _whole(value, context) for name, value in step.arguments.items()}


def _whole(value: JsonValue, context: Context) -> JsonValue:
    """Return a value in full, read back where the trace has its digest only.

    Raises:
        NotSaved: it is no longer there.
    """
    if not isinstance(value, dict) or set(value) != {"$digest", "size", "preview"}:
        return value
    kept = str(value["$digest"])
    if context.spill is None:
        raise NotSaved(f"the value {kept} was too large to be kept")
    try:
        return cast("JsonValue", json.loads(context.spill.read(kept)))
    except (OSError, ValueError) as error:
        raise NotSaved(f"the value {kept} is no longer there: {error}") from error


def list_recordings(limit: int, context: Context) -> RecordingsReport:
    """Return the conversations whose calls were kept, the newest first."""
    return RecordingsReport(
        recordings=tuple(
            RecordingReport(
                name=kept.name, calls=kept.calls, started_at=kept.started_at, last_at=kept.last_at
            )
            for kept in context.store.recordings(limit)
        )
    )


def show_recording(name: str, context: Context) -> RecordingReport:
    """Return one conversation with its calls.

    Raises:
        UnknownTrace: none of this name is kept.
    """
    traces = _recording(name, context)
    steps = [(trace, step) for trace in traces for step in trace.steps]
    return RecordingReport(
        name=name,
        calls=len(steps),
        started_at=traces[0].started_at,
        last_at=traces[-1].started_at,
        steps=tuple(
            RecordedCallReport(
                number=number,
                tool=str(step.tool),
                arguments=step.arguments,
                outcome=step.outcome,
                detail=step.fault.message if step.fault else "",
                trace_id=trace.id,
                seconds=step.seconds,
            )
            for number, (trace, step) in enumerate(steps, start=1)
        ),
    )


def forget_recording(name: str, context: Context) -> int:
    """Drop one conversation's calls and return how many there were.

    Raises:
        UnknownTrace: none of this name is kept.
    """
    _recording(name, context)
    return context.store.drop_recording(name)

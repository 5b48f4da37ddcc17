"""What is kept of each run and each relayed call: bounded, redacted, open to later feedback."""

from __future__ import annotations

import uuid

from pydantic import JsonValue

from catalog.result import CallFailure, CallOutcome, CallSuccess
from catalog.tools import ToolId
from server.bank.context import Context
from server.bank.errors import UnknownTrace
from server.execution.failures import Place, PlannedCall, faults_of
from server.verification import Verdict
from skills_store.trace import Step, Trace
from skills_store.workflow.model import Workflow

__all__ = ["judged_trace", "keep_call", "report_outcome", "shown_outputs"]


def judged_trace(trace: Trace, workflow: Workflow, verdict: Verdict, context: Context) -> Trace:
    """Return a run's trace with the document that ran and what was said of it, fit to be stored and shown."""
    recorder = context.recorder
    return trace.model_copy(
        update={
            "workflow": context.redact(workflow.to_json()),
            "status": verdict.status,
            "faults": tuple(recorder.fault(fault) for fault in verdict.faults),
            "verifications": tuple(
                said.model_copy(update={"detail": str(context.redact(said.detail))})
                for said in verdict.verifications
            ),
        }
    )


def shown_outputs(outputs: dict[str, JsonValue] | None, context: Context) -> dict[str, JsonValue] | None:
    """Return outputs in full, secrets taken out."""
    if outputs is None:
        return None
    redacted = context.redact(outputs)
    assert isinstance(redacted, dict)
    return redacted


def keep_call(
    tool: ToolId,
    arguments: dict[str, JsonValue],
    outcome: CallOutcome,
    context: Context,
    recording: str | None = None,
) -> Trace:
    """Keep a relayed call as a trace of one step, as part of a conversation where one is named."""
    trace = _trace_of(_step(tool, arguments, outcome, context), outcome, context)
    trace = trace.model_copy(update={"recording": recording})
    context.store.add_trace(trace)
    return trace


def _step(tool: ToolId, arguments: dict[str, JsonValue], outcome: CallOutcome, context: Context) -> Step:
    recorder = context.recorder
    step = Step(
        node="call",
        tool=tool,
        arguments=recorder.values(arguments),
        outcome="failed",
        seconds=outcome.seconds,
        effect=context.config.effects.effect(tool),
    )
    if isinstance(outcome, CallSuccess):
        return step.model_copy(update={"outcome": "succeeded", **_kept(outcome.output, context)})
    connection = context.connections.connection(tool.server)
    known = next((t for t in connection.tools if t.id == tool), None) if connection else None
    call = PlannedCall(tool, known.input_schema if known else {}, arguments)
    fault = recorder.fault(faults_of(outcome, call, Place("call", 0))[0])
    return step.model_copy(update={"fault": fault, "content": recorder.content(outcome.content)})


def _kept(output: JsonValue, context: Context) -> dict[str, JsonValue]:
    try:
        kept = context.recorder.value(output)
    except ValueError as error:  # lone surrogates: the client gets them, the store cannot hold them
        return {"output": f"(no JSON value: {error})"}
    return {"output": kept.value, "output_digest": kept.digest}


def _trace_of(step: Step, outcome: CallOutcome, context: Context) -> Trace:
    return Trace(
        id=uuid.uuid4().hex,
        workflow_hash="",
        inputs={},
        steps=(step,),
        outputs=None,
        faults=(step.fault,) if step.fault else (),
        status="failed" if isinstance(outcome, CallFailure) else "succeeded",
        calls=1,
        seconds=outcome.seconds,
        started_at=context.clock() - outcome.seconds,
    )


def report_outcome(trace_id: str, passed: bool, detail: str, context: Context) -> dict[str, JsonValue]:
    """Record what somebody said of a run.

    Raises:
        UnknownTrace: no run with this id is kept.
    """
    if context.store.trace(trace_id) is None:
        raise UnknownTrace(
            f"no run {trace_id!r} is kept: use the trace id that came with its answer; old runs are dropped"
        )
    context.store.add_feedback(trace_id, passed, str(context.redact(detail)), context.clock())
    return {"trace": trace_id, "passed": passed, "recorded": True}

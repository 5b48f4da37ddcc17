"""What is kept of each run and each relayed call: bounded, redacted, open to later feedback."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import anyio.to_thread
from pydantic import JsonValue

from catalog.effects import Effect
from catalog.result import CallFailure, CallOutcome, CallSuccess
from catalog.size import is_large
from catalog.tools import ToolId
from server.bank.context import Context
from server.bank.errors import UnknownTrace
from server.execution.failures import Place, PlannedCall, faults_of
from server.verification import Verdict
from skills_store.trace import Step, Trace
from skills_store.workflow.model import Workflow

__all__ = ["KeptCall", "judged_trace", "keep_call", "report_outcome", "shown_outputs"]


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


async def shown_outputs(
    outputs: dict[str, JsonValue] | None, context: Context
) -> dict[str, JsonValue] | None:
    """Return outputs in full, secrets taken out."""
    if outputs is None:
        return None
    if is_large(outputs):
        redacted = await anyio.to_thread.run_sync(context.redact, outputs)
    else:
        redacted = context.redact(outputs)
    assert isinstance(redacted, dict)
    return redacted


async def keep_call(
    tool: ToolId,
    arguments: dict[str, JsonValue],
    outcome: CallOutcome,
    context: Context,
    recording: str | None = None,
) -> KeptCall:
    """Have a relayed call kept as a trace of one step, written a moment after its answer.

    One whose values are large is made in a thread and written at once: its client is shown what the
    trace holds.

    Args:
        tool: what was called.
        arguments: as they were sent.
        outcome: what came of it.
        context: the bank.
        recording: the conversation the call belongs to, None: to none.
    """
    trace_id, effect = uuid.uuid4().hex, context.effects.effect(tool)
    call = _Relayed(trace_id, tool, arguments, effect, context.clock(), recording)
    if outcome.large_bytes is not None or is_large(arguments):
        step = await anyio.to_thread.run_sync(_step, call, outcome, context)
        context.store.add_trace(_trace_of(call, step, outcome))
        return KeptCall(call.trace_id, step)

    def keep() -> None:
        context.store.add_trace(_trace_of(call, _step(call, outcome, context), outcome))

    context.afterwards.do(keep)
    return KeptCall(call.trace_id)


@dataclass(frozen=True, slots=True)
class KeptCall:
    """A relayed call that is or will be kept. `step` is what the trace of a large one holds, else None."""

    trace_id: str
    step: Step | None = None


@dataclass(frozen=True, slots=True)
class _Relayed:
    """A relayed call that was answered."""

    trace_id: str
    tool: ToolId
    arguments: dict[str, JsonValue]
    effect: Effect
    ended_at: float
    """Unix seconds."""
    recording: str | None


def _step(relayed: _Relayed, outcome: CallOutcome, context: Context) -> Step:
    recorder = context.recorder
    step = Step(
        node="call",
        tool=relayed.tool,
        arguments=recorder.values(relayed.arguments),
        outcome="failed",
        seconds=outcome.seconds,
        effect=relayed.effect,
    )
    if isinstance(outcome, CallSuccess):
        return step.model_copy(update={"outcome": "succeeded", **_kept(outcome.output, context)})
    connection = context.connections.connection(relayed.tool.server)
    known = next((t for t in connection.tools if t.id == relayed.tool), None) if connection else None
    call = PlannedCall(relayed.tool, known.input_schema if known else {}, relayed.arguments)
    fault = recorder.fault(faults_of(outcome, call, Place("call", 0))[0])
    return step.model_copy(update={"fault": fault, "content": recorder.content(outcome.content)})


def _kept(output: JsonValue, context: Context) -> dict[str, JsonValue]:
    try:
        kept = context.recorder.value(output)
    except ValueError as error:  # lone surrogates: the client gets them, the store cannot hold them
        return {"output": f"(no JSON value: {error})"}
    return {"output": kept.value, "output_digest": kept.digest}


def _trace_of(relayed: _Relayed, step: Step, outcome: CallOutcome) -> Trace:
    return Trace(
        id=relayed.trace_id,
        workflow_hash="",
        inputs={},
        steps=(step,),
        outputs=None,
        faults=(step.fault,) if step.fault else (),
        status="failed" if isinstance(outcome, CallFailure) else "succeeded",
        calls=1,
        seconds=outcome.seconds,
        started_at=relayed.ended_at - outcome.seconds,
        recording=relayed.recording,
    )


def report_outcome(trace_id: str, passed: bool, detail: str, context: Context) -> dict[str, JsonValue]:
    """Record what somebody said of a run.

    Raises:
        UnknownTrace: no run with this id is kept.
    """
    context.afterwards.finish()
    if context.store.trace(trace_id) is None:
        raise UnknownTrace(
            f"no run {trace_id!r} is kept: use the trace id that came with its answer; old runs are dropped"
        )
    context.store.add_feedback(trace_id, passed, str(context.redact(detail)), context.clock())
    return {"trace": trace_id, "passed": passed, "recorded": True}

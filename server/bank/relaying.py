"""The upstream side of the bank: finding and calling single tools, and how the servers are."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from pydantic import JsonValue

from catalog.connections import ConnectionReport
from catalog.effects import Effect
from catalog.result import CallFailure, CallOutcome, CallSuccess
from catalog.search import ToolIndex
from catalog.tools import ToolId
from server.bank.context import Context
from server.execution.failures import Place, PlannedCall, faults_of
from server.execution.spill import Bounded, bounded
from server.reports import DoctorReport, EffectsReport, ServerReport, ToolEffect, ToolHit
from skills_store.trace import Step, Trace
from skills_store.workflow.faults import Fault

__all__ = [
    "TRACE_META_KEY",
    "UpstreamProgress",
    "call_tool",
    "doctor",
    "find_tools",
    "list_effects",
    "report_outcome",
]

TRACE_META_KEY = "io.skillbank/trace"
"""Key of the trace id in the `meta` of a relayed outcome."""

UpstreamProgress = Callable[[float, float | None, str | None], Awaitable[None]]


async def find_tools(query: str, limit: int, context: Context) -> list[ToolHit]:
    """Return the upstream tools that fit a query, best first."""
    snapshot = await context.snapshot()
    return [
        ToolHit(
            server=hit.tool.id.server,
            tool=hit.tool.id.tool,
            description=hit.tool.description,
            score=hit.score,
            input_schema=hit.tool.input_schema,
            output_schema=hit.tool.output_schema,
            effect=context.config.effects.effect(hit.tool.id),
        )
        for hit in ToolIndex(snapshot).search(query, limit)
    ]


async def call_tool(
    tool: ToolId, arguments: Mapping[str, JsonValue], progress: UpstreamProgress | None, context: Context
) -> CallOutcome:
    """Relay one call and keep it as a trace of one step; the outcome's meta names the trace.

    A client's own call always runs: its approval governs (`CONTRACTS`, Effects).
    """
    outcome = await context.connections.call(tool, dict(arguments), progress=progress)
    trace = _trace_of(tool, dict(arguments), outcome, context)
    context.store.add_trace(trace)
    return replace(outcome, meta={**outcome.meta, TRACE_META_KEY: trace.id})


def _trace_of(tool: ToolId, arguments: dict[str, JsonValue], outcome: CallOutcome, context: Context) -> Trace:
    known = context.known().get(tool)
    call = PlannedCall(tool, known.input_schema if known else {}, arguments)
    faults: list[Fault] = []
    kept: Bounded | None = None
    if isinstance(outcome, CallSuccess):
        kept = bounded(context.redact(outcome.output), context.spill)
    else:
        faults = faults_of(outcome, call, Place("call", 0))
    step = Step(
        node="call",
        tool=tool,
        arguments=_redacted(arguments, context),
        outcome="succeeded" if kept else "failed",
        output=kept.value if kept else None,
        output_digest=kept.digest if kept else None,
        fault=faults[0] if faults else None,
        seconds=outcome.seconds,
        effect=context.config.effects.effect(tool),
    )
    return Trace(
        id=uuid.uuid4().hex,
        workflow_hash="",
        inputs={},
        steps=(step,),
        outputs=None,
        faults=tuple(faults),
        status="failed" if isinstance(outcome, CallFailure) else "succeeded",
        calls=1,
        seconds=outcome.seconds,
        started_at=context.clock() - outcome.seconds,
    )


def _redacted(arguments: dict[str, JsonValue], context: Context) -> dict[str, JsonValue]:
    redacted = context.redact(arguments)
    return redacted if isinstance(redacted, dict) else {}


def report_outcome(trace_id: str, passed: bool, detail: str, context: Context) -> dict[str, JsonValue]:
    """Record what somebody said of a run.

    Raises:
        LookupError: no trace with this id is kept.
    """
    context.store.add_feedback(trace_id, passed, detail, context.clock())
    return {"trace": trace_id, "passed": passed, "recorded": True}


async def doctor(context: Context) -> DoctorReport:
    """Connect to every configured server and say how it is."""
    await context.snapshot()
    reports = [_server(report, context) for report in context.connections.reports()]
    problems = (
        [] if reports else ["no server is configured: `skillbank add NAME -- COMMAND` or `skillbank init`"]
    )
    return DoctorReport(
        servers=tuple(reports),
        config=str(context.config_path),
        store=str(context.store_path),
        problems=tuple(problems),
    )


def _server(report: ConnectionReport, context: Context) -> ServerReport:
    effects = context.config.effects
    classes = [effects.effect(tool.id) for tool in report.tools]
    known = sum(effect is not Effect.UNKNOWN for effect in classes)
    fine = "problems" if report.problems else "ok"
    status = fine if report.status == "ready" else "unreachable"
    return ServerReport(
        name=report.name,
        status="ok" if report.status == "disabled" else status,
        transport=report.transport,
        era=report.era,
        tools=len(report.tools),
        seconds=report.seconds or 0.0,
        problems=("disabled in the configuration",) if report.status == "disabled" else report.problems,
        reset=effects.reset_mode(report.name),
        classified=known,
    )


def list_effects(context: Context) -> EffectsReport:
    """Return the effect class of every known tool with where it comes from."""
    table = context.config.effects
    found = [
        ToolEffect(
            server=tool.id.server,
            tool=tool.id.tool,
            effect=table.effect(tool.id),
            reason=_why(tool.id, context),
        )
        for tool in sorted(context.known(), key=lambda tool: tool.id)
    ]
    return EffectsReport(effects=tuple(found), reset=dict(table.reset))


def _why(tool: ToolId, context: Context) -> str:
    patterns = context.config.effects.effects.get(tool.server, {})
    if tool.tool in patterns:
        return "configured by name"
    if context.config.effects.effect(tool) is Effect.UNKNOWN:
        return f"not classified: `skillbank effects set {tool} CLASS`"
    return "configured by pattern"

"""The upstream side of the bank: finding and calling single tools, and how the servers are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from pydantic import JsonValue

from catalog.connections import ConnectionReport
from catalog.effects import Effect
from catalog.result import CallOutcome
from catalog.tools import ToolId
from server.bank.context import Context
from server.bank.traces import keep_call
from server.reports import DoctorReport, EffectsReport, ServerReport, ToolEffect, ToolHit

__all__ = ["TRACE_META_KEY", "UpstreamProgress", "call_tool", "doctor", "find_tools", "list_effects"]

TRACE_META_KEY = "io.skillbank/trace"
"""Key of the trace id in the `meta` of a relayed outcome."""

UpstreamProgress = Callable[[float, float | None, str | None], Awaitable[None]]


async def find_tools(query: str, limit: int, context: Context) -> list[ToolHit]:
    """Return the tools of all configured servers that fit a query, best first."""
    await context.snapshot()
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
        for hit in context.tool_index().search(query, limit)
    ]


async def call_tool(
    tool: ToolId,
    arguments: Mapping[str, JsonValue],
    progress: UpstreamProgress | None,
    context: Context,
    recording: str | None = None,
) -> CallOutcome:
    """Relay one call and keep it as a trace of one step; the outcome's meta names the trace.

    A client's own call always runs: its approval governs (`CONTRACTS`, Effects).
    """
    outcome = await context.connections.call(tool, dict(arguments), progress=progress)
    trace = keep_call(tool, dict(arguments), outcome, context, recording)
    return replace(outcome, meta={**outcome.meta, TRACE_META_KEY: trace.id})


async def doctor(context: Context) -> DoctorReport:
    """Connect to every configured server and say how it is."""
    await context.snapshot()
    reports = [_server(report, context) for report in context.connections.reports()]
    nothing = "no server is configured: `skillbank add NAME -- COMMAND` or `skillbank init`"
    return DoctorReport(
        servers=tuple(reports),
        config=str(context.config_path),
        store=str(context.store_path),
        problems=(*context.config.problems, *(() if reports else (nothing,))),
    )


def _server(report: ConnectionReport, context: Context) -> ServerReport:
    effects = context.config.effects
    classes = [effects.effect(tool.id) for tool in report.tools]
    fine = "problems" if report.problems else "ok"
    is_disabled = report.status == "disabled"
    return ServerReport(
        name=report.name,
        status="ok" if is_disabled else fine if report.status == "ready" else "unreachable",
        transport=report.transport,
        era=report.era,
        tools=len(report.tools),
        seconds=report.seconds or 0.0,
        problems=("disabled in the configuration",) if is_disabled else report.problems,
        reset=effects.reset_mode(report.name),
        classified=sum(effect is not Effect.UNKNOWN for effect in classes),
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
    matching = [pattern for pattern in patterns if fnmatchcase(tool.tool, pattern)]
    if matching:
        return f"configured by the pattern {max(matching, key=len)!r}"
    return f"not classified: `skillbank effects set {tool} CLASS`"

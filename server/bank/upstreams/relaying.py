"""The upstream side of the bank: finding and calling single tools, and what they are taken for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial

from pydantic import JsonValue

from catalog.effect_profile import propose_effect
from catalog.effects import EffectTable
from catalog.forwarding import Attendant
from catalog.labels import explained_labels
from catalog.result import CallFailure, CallOutcome
from catalog.search import EVERYTHING, FoundEntry, Scope, tool_key
from catalog.size import is_large
from catalog.tools import Tool, ToolId
from server.bank.context import Context
from server.bank.patience import FOR_A_FIRST_LOOK, FOR_A_LOOK
from server.bank.traces import keep_call
from server.execution.calls import CallRequest
from server.execution.journal import journaled
from server.reports import EffectsReport, LabelsReport, ToolEffect, ToolHit, ToolLabels, ToolsReport
from server.telemetry import span

__all__ = [
    "TRACE_META_KEY",
    "UpstreamProgress",
    "call_tool",
    "find_tools",
    "kept_value",
    "list_effects",
    "list_labels",
    "preview",
    "recheck_effects",
    "upstream_tools",
]

TRACE_META_KEY = "io.skillbank/trace"
"""Key of the trace id in the `meta` of a relayed outcome."""


UpstreamProgress = Callable[[float, float | None, str | None], Awaitable[None]]


async def find_tools(query: str, limit: int, context: Context, scope: Scope = EVERYTHING) -> ToolsReport:
    """Return the tools of all configured servers that fit a query, best first.

    Servers whose tools are stored are not waited for, nor started before there is an answer: twenty
    that start at once would hold it up.

    Args:
        query: what is wanted, in words; a long one is looked for part by part.
        limit: most hits.
        context: the bank.
        scope: what the asking principal may know of.
    """
    snapshot = await context.snapshot(patience=FOR_A_LOOK if context.known() else FOR_A_FIRST_LOOK)
    tools = {tool_key(tool.id.server, tool.id.tool): tool for tool in snapshot}
    findings = await context.find(query, limit, "tool", scope)
    hits = [(tools[hit.entry.key], hit) for hit in findings.found.hits if hit.entry.key in tools]
    effects = context.effects
    context.connect()
    return ToolsReport(
        tools=tuple(_tool_hit(tool, hit, effects) for tool, hit in hits),
        method=findings.found.method,
        note=findings.note,
    )


def _tool_hit(tool: Tool, hit: FoundEntry, effects: EffectTable) -> ToolHit:
    return ToolHit(
        server=tool.id.server,
        tool=tool.id.tool,
        description=tool.description,
        score=hit.score,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        effect=effects.effect(tool.id),
        goal=hit.goal,
        reasons=hit.reasons,
    )


async def call_tool(
    tool: ToolId,
    arguments: Mapping[str, JsonValue],
    progress: UpstreamProgress | None,
    context: Context,
    recording: str | None = None,
    attendant: Attendant | None = None,
) -> CallOutcome:
    """Relay one call; the outcome's meta names the trace of one step that it will be kept as.

    A client's own call always runs: its approval governs (`CONTRACTS`, Effects). Of an answer over a
    megabyte the outcome holds what the trace does: digest, size and preview.
    """
    request = CallRequest("call", None, tool, dict(arguments))
    call = partial(context.connections.call, tool, request.arguments, progress=progress)
    make = partial(call, attendant=attendant)
    effect = context.effects.effect(tool)
    described = {
        "gen_ai.tool.name": tool.tool,
        "skillbank.server": tool.server,
        "skillbank.effect": effect.value,
    }
    with span(f"execute_tool {tool.server}.{tool.tool}", "execute_tool", described) as current:
        outcome = await journaled(context.journal, request, effect, make)
        if isinstance(outcome, CallFailure):
            current.set_attribute("error.type", outcome.kind.value)
    context.keep_seen([tool.server])
    kept = await keep_call(tool, dict(arguments), outcome, context, recording)
    meta = {**outcome.meta, TRACE_META_KEY: kept.trace_id}
    if outcome.large_bytes is None or kept.step is None:
        return replace(outcome, meta=meta)
    if isinstance(outcome, CallFailure):
        return replace(outcome, content=[], structured=None, has_structured=False, meta=meta)
    shown = {"structured": kept.step.output, "has_structured": True, "large_output": kept.step.output}
    return replace(outcome, content=[], meta=meta, **shown)


def upstream_tools(context: Context) -> list[Tool]:
    """Return the usable tools of the servers that are in use, ordered by server and name."""
    used = {name for name, spec in context.config.servers.items() if not spec.disabled}
    return sorted((t for t in context.known() if t.id.server in used), key=lambda tool: tool.id)


async def preview(value: JsonValue, context: Context) -> JsonValue:
    """Return a value as a client is shown it: one over a megabyte as digest, size and preview."""
    return (await context.recorder.large_value(value)).value if is_large(value) else value


def kept_value(digest: str, context: Context) -> bytes:
    """Return the canonical JSON of a value that is kept under its digest.

    Raises:
        LookupError: none is, or its file is not what its name says.
    """
    if context.spill is None:
        raise LookupError("no values are kept")
    try:
        return context.spill.read(digest)
    except (FileNotFoundError, ValueError) as error:
        raise LookupError(str(error)) from error


def list_effects(context: Context) -> EffectsReport:
    """Return the effect class of every known tool with where it comes from."""
    table = context.effects
    found = [
        ToolEffect(
            server=tool.id.server,
            tool=tool.id.tool,
            effect=table.effect(tool.id),
            reason=_why(tool, table),
        )
        for tool in sorted(context.known(), key=lambda tool: tool.id)
    ]
    checks = context.config.reset_checks
    return EffectsReport(
        effects=tuple(found),
        reset=dict(table.reset),
        reset_checks={server: check.told for server, check in checks.items()},
    )


def list_labels(context: Context) -> LabelsReport:
    """Return what every known tool does with information, with what each label follows from."""
    table, labels = context.effects, context.config.labels
    found = [
        ToolLabels(
            server=tool.id.server,
            tool=tool.id.tool,
            labels=dict(explained_labels(tool, table.effect(tool.id), labels)),
        )
        for tool in sorted(context.known(), key=lambda tool: tool.id)
    ]
    return LabelsReport(tools=tuple(found), flows=dict(labels.granted))


def _why(tool: Tool, table: EffectTable) -> str:
    """Return where the class of a tool comes from, and what its words speak for."""
    thought = propose_effect(tool)
    pattern = table.pattern(tool.id)
    if pattern is None:
        return (
            f"not classified (proposed: {thought.effect.value}, {thought.reason}):"
            f" skillbank effects set {tool.id} CLASS"
        )
    configured = table.effects[tool.id.server][pattern]
    if tool.id in table.changed:
        return (
            f"configured as {configured.value}, but its definition changed since:"
            f" skillbank effects set {tool.id} CLASS"
        )
    how = "by name" if pattern == tool.id.tool else f"by the pattern {pattern!r}"
    if thought.effect is configured:
        return f"configured {how}; {thought.reason}"
    return f"configured {how}; proposed was {thought.effect.value}: {thought.reason}"


def recheck_effects(server: str, pattern: str, context: Context) -> tuple[str, ...]:
    """Take the known tools of a server that fit a pattern as looked at now; return those that had changed."""
    meant = [t for t in context.known().of_server(server) if fnmatchcase(t.id.tool, pattern)]
    changed = context.effects.changed
    context.notes.recheck(meant, context.store)
    return tuple(tool.id.tool for tool in meant if tool.id in changed)

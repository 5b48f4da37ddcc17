"""How the tool servers are: what `doctor` and the `catalog://` resources show."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.connection_report import ConnectionReport
from catalog.effects import Effect, EffectTable
from catalog.names import NAME_PATTERN
from catalog.schema import lint_schema
from catalog.tools import Annotations, Tool, ToolId
from server.backends.examining import examine_models
from server.bank.context import Context
from server.reports import CallTrouble, DoctorReport, ServerReport, ServerTool
from skills_store.workflow.faults import Fault

__all__ = ["doctor", "list_server_tools", "list_servers"]

_TRACES_READ = 200
_TROUBLES_SHOWN = 3
_SERVER_FAULTS = frozenset({"timeout", "server_unavailable", "over_limit", "output_schema_mismatch"})
"""Kinds of faults that speak of the server, not of what it was asked."""


async def doctor(context: Context) -> DoctorReport:
    """Connect to every configured server and say how it is."""
    await context.snapshot()
    reports = list_servers(context)
    nothing = "no server is configured: `skillbank add NAME -- COMMAND` or `skillbank init`"
    return DoctorReport(
        servers=tuple(reports),
        models=await examine_models(context.models),
        config=str(context.config_path),
        store=str(context.store_path),
        problems=(*context.config.problems, *(() if reports else (nothing,))),
    )


def list_servers(context: Context) -> list[ServerReport]:
    """Return how every configured server is, as far as is known without connecting."""
    troubles, known, effects = _troubles(context), context.known(), context.effects
    return [
        _server(_Known(report, known.of_server(report.name), troubles.get(report.name, []), effects), context)
        for report in context.connections.reports()
    ]


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of one server."""

    report: ConnectionReport
    tools: tuple[Tool, ...]
    troubles: list[CallTrouble]
    effects: EffectTable


def _server(server: _Known, context: Context) -> ServerReport:
    report, tools, effects = server.report, server.tools, server.effects
    classes = [effects.effect(tool.id) for tool in tools]
    problems = _problems(server)
    is_wrong = bool(problems or report.quarantined) and report.status != "disabled"
    reached = "problems" if is_wrong else "ok"
    waiting = report.status in ("idle", "starting")
    return ServerReport(
        name=report.name,
        status="idle" if waiting else reached if report.status in ("ready", "disabled") else "unreachable",
        transport=report.transport,
        era=report.era,
        tools=len(tools),
        seconds=report.seconds or 0.0,
        problems=("disabled in the configuration",) if report.status == "disabled" else problems,
        quarantined=dict(report.quarantined),
        strict_hosts={tool.id.tool: found for tool in tools if (found := _refused_by_strict_hosts(tool))},
        annotated=sum(tool.annotations != Annotations() for tool in tools),
        last_errors=tuple(server.troubles[:_TROUBLES_SHOWN]),
        changes=context.changes_of(report.name),
        circuit=report.circuit,
        retry_seconds=report.retry_seconds,
        reset=effects.reset_mode(report.name),
        classified=sum(effect is not Effect.UNKNOWN for effect in classes),
    )


def _problems(server: _Known) -> tuple[str, ...]:
    report, troubles = server.report, server.troubles
    found = list(report.problems)
    if troubles and troubles[0].is_last:
        found.append(f"the last call of it failed: {troubles[0].tool}: {troubles[0].message}")
    if changed := [tool.id.tool for tool in server.tools if tool.id in server.effects.changed]:
        found.append(
            f"changed since their class was set, unknown until set again: {', '.join(changed)}"
            f" (`skillbank effects set {report.name}/{changed[0]} CLASS`)"
        )
    return tuple(found)


def _refused_by_strict_hosts(tool: Tool) -> tuple[str, ...]:
    """Return what a strict host would refuse about a tool if it met it without us."""
    name = tool.id.tool
    odd = [] if NAME_PATTERN.fullmatch(name) else [f"name {name[:80]!r}"]
    given = [f"input {said}" for said in lint_schema(tool.input_schema)]
    output = tool.output_schema
    answered = ["output #: not an object at the top"] if output and output.get("type") != "object" else []
    return (*odd, *given, *answered)


def _troubles(context: Context) -> dict[str, list[CallTrouble]]:
    """Return the faults of servers that the kept traces tell of, by server, the latest first."""
    found: dict[str, list[CallTrouble]] = {}
    called: set[str] = set()
    context.afterwards.finish()
    for trace in context.store.traces(_TRACES_READ):
        for step in reversed(trace.steps):
            if step.tool is None or step.outcome not in ("succeeded", "failed") or step.from_memory:
                continue
            server = step.tool.server
            if step.fault is not None and step.fault.kind in _SERVER_FAULTS:
                trouble = _trouble(step.tool, step.fault, trace.started_at, is_last=server not in called)
                found.setdefault(server, []).append(trouble)
            called.add(server)
    return found


def _trouble(tool: ToolId, fault: Fault, at: float, *, is_last: bool) -> CallTrouble:
    return CallTrouble(tool=tool.tool, kind=fault.kind, message=fault.message, at=at, is_last=is_last)


def list_server_tools(server: str, context: Context) -> list[ServerTool]:
    """Return the usable tools of one server as last listed, ordered by name."""
    effects = context.effects
    return [
        ServerTool(
            name=tool.id.tool,
            title=tool.title,
            description=tool.description,
            effect=effects.effect(tool.id),
            contract_hash=tool.contract_hash,
        )
        for tool in context.known().of_server(server)
    ]

"""Answers one tool call: looks the tool up, checks the arguments, asks the bank, shapes the result.

Who is asked for consent is `consent`; how a call outlives its request is `suspension`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import mcp.types as types
from pydantic import BaseModel, JsonValue

from catalog.forwarding import Attendant, NotAnswered
from catalog.tools import ToolId
from server.backends.sampling import Sampler
from server.execution.consent import Consent
from server.progress import ProgressListener
from server.reports import RepairReport, RunReport
from server.surface.admin_arguments import ExploreServer
from server.surface.arguments import (
    CallSkill,
    CallTool,
    DescribeSkill,
    FindSkills,
    FindTools,
    RepairWorkflow,
    ReportOutcome,
    RunWorkflow,
    SaveSkill,
    Solve,
)
from server.surface.builtin_tools import ARGUMENTS
from server.surface.failures import Refusal, error_result, failure_result
from server.surface.port import BankPort, UpstreamProgress
from server.surface.results import (
    Kept,
    data_result,
    gateway_result,
    relayed_result,
    report_result,
    skill_description,
    skill_result,
    with_links,
)
from skills_store.skill import Skill

__all__ = ["Attendance", "ToolCall", "answer_call", "foreseen_total"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call whose arguments fit the schema of the listed tool."""

    name: str
    arguments: Mapping[str, JsonValue]
    skill: Skill | None
    """The skill behind the tool, None for another kind."""
    upstream: ToolId | None = None
    """The upstream tool behind it, None for another kind."""
    conversation: str | None = None
    """What the client's calls through `call_tool` belong to, None where nobody can tell."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """Who follows a call: asked for consent, told of progress."""

    consent: Consent
    listener: ProgressListener
    sampler: Sampler | None
    """Asks the client's own model, None where it has none to lend."""
    relay: UpstreamProgress
    """Takes the progress of an upstream tool as it comes."""
    attendant: Attendant | None = None
    """Answers what a trusted upstream asks, None: nobody does."""
    can_ask: bool = False
    """Whether the client shows its user questions."""


async def answer_call(bank: BankPort, call: ToolCall, attendance: Attendance) -> types.CallToolResult:
    """Return the result of a call; never raises but for cancellation."""
    try:
        if call.skill is not None:
            return await _answer_skill(bank, call, call.skill, attendance)
        if call.upstream is not None:
            return await _answer_upstream(bank, call, call.upstream, attendance)
        return await _answer_builtin(
            bank, ARGUMENTS[call.name].model_validate(call.arguments), attendance, call.conversation
        )
    except NotAnswered as refused:
        return Refusal.of(refused.error)
    except Exception as error:
        return failure_result(error, call.name)


def foreseen_total(call: ToolCall) -> float | None:
    """Return how many upstream calls a call is foreseen to need, None where nobody can tell."""
    if call.skill is not None:
        return len(call.skill.workflow.nodes)
    match call.name:
        case "run_workflow":
            workflow = cast("dict[str, JsonValue]", call.arguments["workflow"])
            return len(cast("list[JsonValue]", workflow["nodes"]))
        case "solve" | "repair_workflow":
            model = cast("Solve | RepairWorkflow", ARGUMENTS[call.name].model_validate(call.arguments))
            return model.budget.calls + model.budget.candidates
        case "explore_server":
            return ExploreServer.model_validate(call.arguments).budget_calls
        case _:
            return None


async def _answer_skill(
    bank: BankPort, call: ToolCall, skill: Skill, attendance: Attendance
) -> types.CallToolResult:
    report = await bank.call_skill(
        skill.name,
        call.arguments,
        version=skill.version,
        progress=attendance.listener,
        consent=attendance.consent,
    )
    kept = await _kept_outputs(bank, report.outputs)
    return skill_result(call.name, skill, report, kept)


async def _answer_upstream(
    bank: BankPort, call: ToolCall, tool: ToolId, attendance: Attendance
) -> types.CallToolResult:
    outcome = await bank.call_tool(
        tool, call.arguments, attendance.relay, call.conversation, attendance.attendant
    )
    return gateway_result(tool, outcome)


async def _answer_builtin(
    bank: BankPort, arguments: BaseModel, attendance: Attendance, conversation: str | None
) -> types.CallToolResult:
    match arguments:
        case FindSkills(query=query, limit=limit):
            return data_result((await bank.find_skills(query, limit)).model_dump(mode="json"))
        case FindTools(query=query, limit=limit):
            return data_result((await bank.find_tools(query, limit)).model_dump(mode="json"))
        case CallTool(id=tool):
            recording = arguments.trace or conversation
            outcome = await bank.call_tool(
                tool, arguments.arguments, attendance.relay, recording, attendance.attendant
            )
            return relayed_result(tool, outcome)
        case SaveSkill(trace=trace):
            request = arguments.request(conversation, is_run=trace is not None and bank.is_run(trace))
            return data_result((await bank.save(request)).model_dump(mode="json"))
        case ReportOutcome(trace_id=trace_id, passed=passed, detail=detail):
            try:
                return data_result(await bank.report_outcome(trace_id, passed, detail))
            except LookupError:
                return error_result(f"No result with trace_id {trace_id!r} is kept.", "unknown_id")
        case CallSkill():
            return await _answer_call_skill(bank, arguments, attendance)
        case DescribeSkill(name=name, version=version):
            return skill_description(await bank.describe_skill(name, version))
        case _:
            return await _answer_workflow(bank, arguments, attendance)


async def _answer_call_skill(
    bank: BankPort, arguments: CallSkill, attendance: Attendance
) -> types.CallToolResult:
    report = await bank.call_skill(
        arguments.name,
        arguments.arguments,
        version=arguments.version,
        progress=attendance.listener,
        consent=attendance.consent,
    )
    return await _shown(bank, report, detail=False)


async def _answer_workflow(
    bank: BankPort, arguments: BaseModel, attendance: Attendance
) -> types.CallToolResult:
    consent, progress = attendance.consent, attendance.listener
    match arguments:
        case RunWorkflow():
            report = await bank.run(
                arguments.workflow, arguments.inputs, arguments.checks, consent=consent, progress=progress
            )
        case RepairWorkflow():
            report = await bank.repair(
                arguments.workflow,
                arguments.request(),
                consent=consent,
                progress=progress,
                sampler=attendance.sampler,
            )
        case Solve():
            report = await bank.solve(
                arguments.task,
                arguments.request(),
                consent=consent,
                progress=progress,
                sampler=attendance.sampler,
            )
        case _:
            raise AssertionError(f"no answer for {type(arguments).__name__}")
    return await _shown(bank, report, detail=arguments.detail)


async def _shown(bank: BankPort, report: RunReport | RepairReport, *, detail: bool) -> types.CallToolResult:
    """Return a report as a result, with previews of and links to outputs that are too large for one."""
    kept = await _kept_outputs(bank, report.outputs)
    if kept:
        report = report.model_copy(update={"outputs": {**(report.outputs or {}), **kept}})
    return with_links(report_result(report, detail=detail), kept)


async def _kept_outputs(bank: BankPort, outputs: dict[str, JsonValue] | None) -> dict[str, Kept]:
    shown = {name: await bank.preview(value) for name, value in (outputs or {}).items()}
    return {
        name: value
        for name, value in shown.items()
        if outputs is not None and value is not outputs[name] and isinstance(value, dict)
    }

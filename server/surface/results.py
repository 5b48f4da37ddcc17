"""Turns reports, skills and upstream answers into results of the protocol.

Structured content is mirrored as one JSON text block for hosts that only show text. A result that
says something failed also says it in words first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import mcp.types as types
from mcp import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, JsonValue, ValidationError

from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind
from catalog.schema import problems
from catalog.tools import ToolId
from server.reports import RepairReport, RunReport, exit_code
from server.surface.failures import ERROR_META_KEY, Refusal, error_result
from server.surface.port import TRACE_META_KEY
from server.surface.remedies import render_fault
from server.surface.resources import value_link
from skills_store.skill import Skill
from skills_store.workflow.faults import Denied, Fault

__all__ = [
    "FAULT_META_KEY",
    "Kept",
    "data_result",
    "for_era",
    "gateway_result",
    "relayed_result",
    "report_result",
    "skill_result",
    "with_links",
]

FAULT_META_KEY = "io.skillbank/fault"
"""Key in `_meta` of what we see wrong with an upstream answer that we pass on unchanged."""

_PASSED_ON = (FailureKind.DISGUISED_ERROR, FailureKind.OUTPUT_SCHEMA_MISMATCH)
"""Failures by our judgement: the server itself answered a success."""
_NO_ANSWER = (FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE, FailureKind.OVER_LIMIT)
_NEXT_STEPS = {
    FailureKind.UNKNOWN_TOOL: "find_tools lists what there is.",
    FailureKind.INVALID_ARGUMENT: "find_tools shows its input schema.",
    FailureKind.TIMEOUT: "Nothing is wrong with the request: try again later.",
    FailureKind.SERVER_UNAVAILABLE: "Nothing is wrong with the request: try again later.",
}
_BULK = frozenset({"trace", "lineage"})


Kept = Mapping[str, JsonValue]
"""What stands for a value that is too large for a result: `$digest`, `size` and `preview`."""


def data_result(value: Mapping[str, JsonValue]) -> types.CallToolResult:
    """Return a success with structured content and its text mirror."""
    return types.CallToolResult(content=[_json_block(value)], structured_content=dict(value))


def report_result(report: RunReport | RepairReport, *, detail: bool) -> types.CallToolResult:
    """Return a report as a result; without `detail` its steps, candidates and prompts are left empty."""
    value = _dump(report if detail else _brief(report))
    result = data_result(value)
    if exit_code(report.status, report.faults):
        summary = types.TextContent(type="text", text=_failure_text(report))
        result = result.model_copy(update={"content": [summary, *result.content], "is_error": True})
    return _with_trace(result, report.trace_id)


def _brief(report: RunReport | RepairReport) -> RunReport | RepairReport:
    emptied: dict[str, object] = dict.fromkeys(_BULK & _fields(report), ())
    if isinstance(report, RepairReport) and report.drive is not None:
        emptied["drive"] = report.drive.model_copy(update={"snapshots": (), "tools": ()})
    return report.model_copy(update=emptied)


def with_links(result: types.CallToolResult, kept: Mapping[str, Kept]) -> types.CallToolResult:
    """Return a result with a link to each value that was too large for it, by the name of the output."""
    links: list[types.ContentBlock] = [_link(value) for value in kept.values()]
    return result.model_copy(update={"content": [*result.content, *links]})


def skill_result(
    name: str, skill: Skill, report: RunReport, kept: Mapping[str, Kept] | None = None
) -> types.CallToolResult:
    """Return a skill's outputs by its output schema, or what kept it from them.

    Args:
        name: under which the skill is listed.
        skill: the version that ran.
        report: its outputs; those in `kept` are too large for a result.
        kept: what stands for those, by name.
    """
    if exit_code(report.status, report.faults):
        return _with_trace(error_result(f"{name}: {_failure_text(report)}", "run_failed"), report.trace_id)
    if kept:  # a preview would not fit the output schema, and part of a value is another value
        text = f"{name} succeeded; its answer is too large for a result:\n" + "\n".join(
            f"- {output}: {_kept_text(value)}" for output, value in kept.items()
        )
        return _with_trace(with_links(error_result(text, "run_failed"), kept), report.trace_id)
    outputs = report.outputs or {}
    if found := problems(skill.signature.output_schema, outputs):
        broken = "; ".join(f"{problem.pointer or '/'}: {problem.message}" for problem in found)
        text = f"{name} answered what its output schema does not allow ({broken}). report_outcome can say so."
        return _with_trace(error_result(text, "run_failed"), report.trace_id)
    return _with_trace(data_result(outputs), report.trace_id)


def skill_description(skill: Skill) -> types.CallToolResult:
    """Return a skill as data, without the upstream results that its tests recorded."""
    return data_result(skill.model_dump(mode="json", exclude={"tests": {"__all__": {"recorded"}}}))


def relayed_result(tool: ToolId, outcome: CallOutcome) -> types.CallToolResult:
    """Return what an upstream answered, equal in content, structured content, error flag and `_meta`.

    Only the stamp of the server that answers is that of this one, not of the upstream. What never was
    an answer (timeout, lost connection, refusal) becomes an error result in words.
    """
    meta = {key: value for key, value in outcome.meta.items() if key != types.SERVER_INFO_META_KEY}
    match outcome:
        case CallSuccess(large_bytes=int(), structured=dict(kept)) if "$digest" in kept:
            return _kept_result(tool, kept, meta)
        case CallSuccess():
            return _passed_on(tool, outcome, meta, is_error=False)
        case CallFailure(kind=kind) if kind in _PASSED_ON:
            meta[FAULT_META_KEY] = {"kind": kind.value, "message": outcome.message}
            return _passed_on(tool, outcome, meta, is_error=False)
        case CallFailure(code=None) if outcome.content or outcome.has_structured:
            return _passed_on(tool, outcome, meta, is_error=True)
        case CallFailure():
            next_step = _NEXT_STEPS.get(outcome.kind, "")
            text = (
                f"{tool} failed ({outcome.kind.value}): {outcome.message.rstrip('. ')}. {next_step}".rstrip()
            )
            return error_result(text, "run_failed").model_copy(
                update={"meta": {**meta, ERROR_META_KEY: "run_failed"}}
            )


def gateway_result(tool: ToolId, outcome: CallOutcome) -> types.CallToolResult:
    """Return what an upstream answered to a tool that is listed as its own: its refusals stay refusals."""
    match outcome:
        case CallFailure(code=int(code), kind=kind) if kind not in _NO_ANSWER:
            return Refusal.of(MCPError(code, outcome.message))
        case _:
            return relayed_result(tool, outcome)


def for_era(result: types.CallToolResult, protocol_version: str) -> types.CallToolResult:
    """Return the result as a protocol revision can carry it.

    Before 2026-07-28 structured content was an object; any other value is left to the text blocks.
    """
    if protocol_version in MODERN_PROTOCOL_VERSIONS or isinstance(result.structured_content, dict | None):
        return result
    content = result.content or [_json_block(result.structured_content)]
    return result.model_copy(update={"structured_content": None, "content": content})


def _kept_result(tool: ToolId, kept: Kept, meta: dict[str, JsonValue]) -> types.CallToolResult:
    text = f"{tool} answered more than fits into a result. {_kept_text(kept)}"
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text), _link(kept)],
        structured_content={**kept, "uri": _link(kept).uri},
        _meta=meta,
    )


def _kept_text(kept: Kept) -> str:
    place = f"It has {kept['size']} bytes of JSON and is kept whole at {_link(kept).uri}."
    return f"{place} It begins: {kept['preview']}"


def _link(kept: Kept) -> types.ResourceLink:
    return value_link(cast("str", kept["$digest"]), cast("int", kept["size"]))


def _passed_on(
    tool: ToolId, outcome: CallOutcome, meta: dict[str, JsonValue], *, is_error: bool
) -> types.CallToolResult:
    document: dict[str, Any] = {"content": outcome.content, "isError": is_error, "_meta": meta or None}
    if outcome.has_structured:
        document["structuredContent"] = outcome.structured
    try:
        return types.CallToolResult.model_validate(document, by_name=False)
    except ValidationError:
        text = f"{tool} answered with a kind of content that this protocol revision cannot carry."
        return error_result(text, "run_failed").model_copy(
            update={"meta": {**meta, ERROR_META_KEY: "run_failed"}}
        )


def _failure_text(report: RunReport | RepairReport) -> str:
    lines = [f"Status {report.status}: {_STATUS_TEXT.get(report.status, 'see the faults')}."]
    lines += [f"- {render_fault(fault)}" for fault in report.faults]
    lines += [_approval_text(fault) for fault in report.faults if _is_waiting(fault)]
    lines += [
        f"- held back: {held.tool}: {held.reason.rstrip('. ')}. To allow it: {held.allow}"
        for held in report.not_repeated
    ]
    return "\n".join(lines)


_STATUS_TEXT = {
    "failed": "it did not run to its end",
    "unverified": "it ran, but the checks do not hold",
    "needs_approval": "a call that may change something waits for the user's approval; it was not made",
    "cancelled": "it was cancelled",
}


def _is_waiting(fault: Fault) -> bool:
    return isinstance(fault, Denied) and fault.needs_approval


def _approval_text(fault: Fault) -> str:
    denied = cast("Denied", fault)
    return f"- waiting: {denied.tool} with arguments {json.dumps(denied.arguments, ensure_ascii=False)}"


def _with_trace(result: types.CallToolResult, trace_id: str | None) -> types.CallToolResult:
    if trace_id is None:
        return result
    return result.model_copy(update={"meta": {**(result.meta or {}), TRACE_META_KEY: trace_id}})


def _dump(model: BaseModel) -> dict[str, JsonValue]:
    return model.model_dump(mode="json")


def _fields(model: BaseModel) -> frozenset[str]:
    return frozenset(type(model).model_fields)


def _json_block(value: object) -> types.TextContent:
    return types.TextContent(type="text", text=json.dumps(value, ensure_ascii=False))

"""The tool for long work, for clients without the tasks extension: begins, looks at and cancels a job."""

from __future__ import annotations

from typing import Final

import mcp.types as types
from pydantic import JsonValue

from server.surface.arguments import grouped
from server.surface.calls import Attendance, ToolCall
from server.surface.failures import error_result, unknown_tool
from server.surface.job_arguments import JOB_NAME, JobRequest
from server.surface.jobs import JobRefused, Jobs, parse_question
from server.surface.listing import Listing
from server.surface.names import ADMIN_NAMES
from server.surface.results import data_result
from server.surface.validation import check_arguments, render_problems
from skills_store.jobs import Job

__all__ = ["answer_job"]

_AT_ONCE: Final = {JOB_NAME, *ADMIN_NAMES} - {"explore_server"}
_NEEDS: Final = {
    "start": "To start a job give tool and its arguments, and no job.",
    "poll": "To look at a job give its id as job; without one your jobs are listed. No tool goes with poll.",
    "cancel": "To cancel a job give its id as job, and no tool.",
}


async def answer_job(
    jobs: Jobs, call: ToolCall, listing: Listing, attendance: Attendance
) -> types.CallToolResult:
    """Return the result of a call of this tool; never raises but for cancellation."""
    match JobRequest.model_validate(call.arguments):
        case JobRequest(action="start", tool=str(), job=None) as wanted:
            return _start(jobs, wanted, listing, call.conversation, attendance)
        case JobRequest(action="poll", tool=None, job=None):
            return data_result({"jobs": [_shown(job) for job in jobs.jobs()]})
        case JobRequest(action="poll", tool=None, job=str(job_id), wait_seconds=seconds):
            job = jobs.job(job_id)
            return _missing(job_id) if job is None else await _poll(jobs, job, seconds, attendance)
        case JobRequest(action="cancel", tool=None, job=str(job_id)):
            return _cancel(jobs, job_id)
        case JobRequest(action=action):
            return error_result(_NEEDS[action], "invalid_arguments")


def _start(
    jobs: Jobs, wanted: JobRequest, listing: Listing, conversation: str | None, attendance: Attendance
) -> types.CallToolResult:
    tool = wanted.tool or ""
    schema = listing.input_schema(tool)
    if schema is None:
        return error_result(unknown_tool(tool, listing.tools).message, "invalid_arguments")
    if tool in _AT_ONCE:
        return error_result(f"{tool} is at once: call it itself.")
    arguments, found = check_arguments(schema, grouped(tool, wanted.arguments))
    if found:
        return error_result(render_problems(tool, found, schema), "invalid_arguments")
    skill, upstream = listing.skills.get(tool), listing.upstream.get(tool)
    call = ToolCall(tool, arguments, skill, upstream, conversation)
    try:
        job = jobs.start(call, keep_seconds=wanted.keep_seconds, can_ask=attendance.can_ask)
    except JobRefused as error:
        return error_result(str(error))
    return data_result(_shown(job))


async def _poll(jobs: Jobs, job: Job, seconds: float, attendance: Attendance) -> types.CallToolResult:
    job = await jobs.wait(job, seconds) if job.status == "working" else job
    question = parse_question(job.question)
    if question is not None and attendance.can_ask:
        word = await attendance.consent.ask(question)
        if word is not None:
            jobs.answer(job, word)
            job = await jobs.wait(job, max(seconds, 1.0))
    await attendance.relay(job.done, job.total, job.message)
    if not isinstance(job.result, dict):
        return data_result(_shown(job)).model_copy(update={"is_error": job.status == "failed"})
    result = types.CallToolResult.model_validate(job.result)
    shown: dict[str, JsonValue] = {**_shown(job), "result": result.structured_content}
    told = data_result(shown)
    more = {"content": [*told.content, *result.content], "meta": result.meta, "is_error": result.is_error}
    return told.model_copy(update=more)


def _cancel(jobs: Jobs, job_id: str) -> types.CallToolResult:
    job = jobs.job(job_id)
    if job is None:
        return _missing(job_id)
    jobs.cancel(job_id)
    return data_result({**_shown(job), "cancelling": job.status in ("working", "input_required")})


def _shown(job: Job) -> dict[str, JsonValue]:
    return {
        "job": job.id,
        "tool": job.tool,
        "status": job.status,
        "done": job.done,
        "total": job.total,
        "message": job.message,
        "question": job.question,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
        "expires_at": job.expires_at,
        "resumed": job.resumed,
    }


def _missing(job_id: str) -> types.CallToolResult:
    return error_result(f"There is no job {job_id!r}: poll without an id lists yours.", "unknown_id")

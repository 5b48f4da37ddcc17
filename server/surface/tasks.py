"""The tasks extension (`io.modelcontextprotocol/tasks`, SEP-2663) over the jobs of a bank.

Only for connections of 2026-07-28 whose client declared it, on each request; others have `job_tools`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import mcp.types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from server.surface.calls import ToolCall
from server.surface.consent import allows, can_ask, consent_form, parse_answer
from server.surface.jobs import JobRefused, Jobs, parse_question
from skills_store.jobs import Job, is_ended

__all__ = ["TASKS_EXTENSION", "Tasks", "declares_tasks"]

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
_LONG: Final = frozenset({"solve", "repair_workflow", "run_workflow", "explore_server"})
"""Tools whose calls become tasks."""
_POLL_MILLISECONDS: Final = 1_000
_ASKED: Final = "consent"
_answers: TypeAdapter[types.ElicitResult] = TypeAdapter(types.ElicitResult)

Context = ServerRequestContext[Any, Any]


class _OfTask(types.RequestParams):
    model_config = ConfigDict(populate_by_name=True)
    task_id: str = Field(alias="taskId")


class _Update(_OfTask):
    input_responses: dict[str, Any] = Field(default_factory=dict, alias="inputResponses")


def declares_tasks(ctx: Context) -> bool:
    """Return whether the client of this request takes a task for an answer."""
    declared = ctx.session.client_capabilities
    extensions = declared.extensions if declared is not None else None
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and TASKS_EXTENSION in (extensions or {})


class Tasks:
    """Shows jobs as tasks."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def install(self, server: Server[Any]) -> None:
        """Offer the extension on a server."""
        server.extensions[TASKS_EXTENSION] = {}
        server.add_request_handler("tasks/get", _OfTask, self._get)
        server.add_request_handler("tasks/update", _Update, self._update)
        server.add_request_handler("tasks/cancel", _OfTask, self._cancel)

    def begin(self, ctx: Context, call: ToolCall) -> dict[str, Any] | None:
        """Return the task that a call became, None where it is to be answered at once."""
        if call.name not in _LONG or not declares_tasks(ctx):
            return None
        try:
            job = self._jobs.start(call, can_ask=can_ask(ctx.session.client_capabilities))
        except JobRefused as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        return {"resultType": "task", **_wire(job, detail=False)}

    async def _get(self, ctx: Context, params: _OfTask) -> dict[str, Any]:
        return {"resultType": "complete", **_wire(self._found(ctx, params), detail=True)}

    async def _update(self, ctx: Context, params: _Update) -> dict[str, Any]:
        job = self._found(ctx, params)
        if job.question is not None and _ASKED in params.input_responses:
            try:
                said = parse_answer(_answers.validate_python(params.input_responses[_ASKED]))
            except ValidationError as error:
                raise MCPError(types.INVALID_PARAMS, "The answer is not that of an elicitation") from error
            self._jobs.answer(job, said is not None and allows(said))
        return {"resultType": "complete"}

    async def _cancel(self, ctx: Context, params: _OfTask) -> dict[str, Any]:
        self._jobs.cancel(self._found(ctx, params).id)
        return {"resultType": "complete"}

    def _found(self, ctx: Context, params: _OfTask) -> Job:
        if not declares_tasks(ctx):
            needed: dict[str, JsonValue] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
            raise MCPError(
                types.MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", needed
            )
        named = ctx.request.headers.get("mcp-name") if ctx.request is not None else params.task_id
        if named != params.task_id:
            raise MCPError(types.HEADER_MISMATCH, "Mcp-Name header does not match params.taskId")
        job = self._jobs.job(params.task_id)
        if job is None:
            raise MCPError(types.INVALID_PARAMS, "Task not found")
        return job


def _wire(job: Job, *, detail: bool) -> dict[str, Any]:
    """Return a job as a task; a tool that said it failed is a completed task with that result."""
    has_result = job.result is not None
    task: dict[str, Any] = {
        "taskId": job.id,
        "status": "completed" if is_ended(job) and has_result else job.status,
        "createdAt": _date(job.created_at),
        "lastUpdatedAt": _date(job.updated_at),
        "ttlMs": round(job.keep_seconds * 1_000),
        "pollIntervalMs": _POLL_MILLISECONDS,
    }
    if job.message:
        task["statusMessage"] = job.message
    if not detail:
        return task
    if has_result:
        task["result"] = job.result
    elif job.status == "failed":
        task["error"] = {"code": types.INTERNAL_ERROR, "message": job.message}
    if (asked := _requests(job)) is not None:
        task["inputRequests"] = asked
    return task


def _requests(job: Job) -> dict[str, JsonValue] | None:
    question = parse_question(job.question)
    if question is None or job.status != "input_required":
        return None
    form = types.ElicitRequest(params=consent_form(question))
    return {_ASKED: form.model_dump(mode="json", by_alias=True, exclude_none=True)}


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

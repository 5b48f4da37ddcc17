"""A function for a task that no graph of calls could solve: asked of the planner, run in the sandbox.

Tried last, only where something checks the outputs and a model plans. The model never sees what a
check compares with. What it wrote is believed as any other run is: where the check passes.

Paper: FlowEvo (code family: draft, run tests, inspect the failure, repair, at most twice).
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from catalog.effects import Activity
from server.backends.backend import Completion, Message, Request
from server.backends.errors import BackendError
from server.bank.admission.coding import code_workflow, lay_out
from server.bank.context import Context
from server.bank.episode.repairing import Repaired
from server.bank.traces import judged_trace, shown_outputs
from server.compilation.compile import VerifiedRun
from server.execution.environment import with_defaults
from server.execution.run import execute_workflow
from server.planning.answer_json import NotJson, read_json
from server.planning.conversation import MeteredBackend, converse
from server.planning.wanted import wanted_outputs
from server.reports import RepairReport
from server.requests import SolveRequest
from server.sandbox.engine import CodeRequest as SandboxRequest
from server.sandbox.engine import Engine, Raised, SandboxUnavailable
from server.sandbox.sandbox import Sandbox
from server.verification import verify
from skills_store.code.lint import lint_code
from skills_store.code.reading import read_function
from skills_store.errors import MalformedCode
from skills_store.workflow.model import Workflow

__all__ = ["by_code"]

_TURNS = 3
_ROUTE_REASON = "no graph of calls came out right: the model wrote a function"
_SYSTEM = (
    "You write one small pure Python function that solves a task. Rules: every parameter and the result"
    " are annotated with int, float, str, bool, None, list, dict, Literal or unions of them; no files, no"
    " network, no clock, no other modules than json, math, re, datetime, collections, itertools, functools,"
    " bisect, decimal; every value that the task states is a parameter, none is a constant. Answer with one"
    ' JSON object: {"source": "the module as text", "entry": "name of the function", "arguments": {the'
    " values of the task by parameter}}."
)
_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "source": {"type": "string"},
        "entry": {"type": "string"},
        "arguments": {"type": "object"},
    },
    "required": ["source", "entry", "arguments"],
    "additionalProperties": False,
}


class _Draft(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    entry: str
    arguments: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class _Answered:
    """A draft, or what is wrong with an answer."""

    draft: _Draft | None
    problem: str = ""


async def by_code(task: str, request: SolveRequest, solved: Repaired, context: Context) -> Repaired:
    """Return the task solved by a function where no graph did it, else what there was."""
    sandbox = context.sandbox
    if sandbox is None or not _is_open(request, solved) or context.models.spec("planner").kind == "none":
        return solved
    left = request.budget.tokens - solved.report.tokens
    try:
        backend = await context.models.backend("planner")
        if backend is None or left <= 0:
            return solved
        model = MeteredBackend(backend, left)
        attempt = _Attempt(task, request, context, sandbox)
        found = await attempt.made(model)
    except (BackendError, SandboxUnavailable) as error:
        report = solved.report.model_copy(update={"model_problem": f"no function was written: {error}"})
        return replace(solved, report=report)
    spent: dict[str, int] = {"calls": solved.report.calls, "tokens": solved.report.tokens + model.usage.total}
    if found is None:
        return replace(solved, report=solved.report.model_copy(update=spent))
    reasons = (*solved.report.route_reasons, _ROUTE_REASON)
    return replace(
        found, report=found.report.model_copy(update={**spent, "model": model.name, "route_reasons": reasons})
    )


def _is_open(request: SolveRequest, solved: Repaired) -> bool:
    """Return whether there is a task left that a check would tell to be solved."""
    is_failure = solved.report.status in ("failed", "unverified")
    return is_failure and bool(request.checks) and request.route in (None, "dynamic")


@dataclass
class _Attempt:
    """A conversation about one function, each draft run before the next is asked for."""

    task: str
    request: SolveRequest
    context: Context
    sandbox: Sandbox
    _best: Repaired | None = None

    async def made(self, model: MeteredBackend) -> Repaired | None:
        """Return the first draft that the check passes, None where none does."""
        messages = [Message("system", _SYSTEM), Message("user", self._asked())]
        for _ in range(_TURNS):
            answered = await converse(model, _ask(messages))
            problem = answered.problem
            if answered.draft is not None:
                problem = await self._tried(answered.draft)
                if not problem:
                    return self._best
            said = answered.draft.model_dump_json() if answered.draft else "{}"
            messages += [Message("assistant", said), Message("user", f"That is not right: {problem}. Again.")]
        return None

    def _asked(self) -> str:
        asked: dict[str, JsonValue] = {"task": self.task}
        if self.request.inputs:
            asked["inputs"] = dict(self.request.inputs)
        if wanted := self._wanted():
            asked["result"] = f"an object with {', '.join(wanted)}" if len(wanted) > 1 else wanted[0]
        return json.dumps(asked, ensure_ascii=False)

    def _wanted(self) -> Sequence[str]:
        return wanted_outputs(self.request.checks)

    async def _tried(self, draft: _Draft) -> str:
        """Run a draft; return what is wrong with it, empty where the check passes."""
        try:
            function = read_function(draft.source, draft.entry)
            if problems := lint_code(draft.source):
                return "; ".join(problems)
        except MalformedCode as error:
            return str(error)
        engine = await self._engine(draft)
        if engine is None:
            return "it uses a module or a form of the language that is not there"
        workflow = code_workflow("plan", lay_out(draft.source, function, engine))
        outputs = self._outputs()
        workflow = workflow.model_copy(update={"outputs": outputs}) if outputs else workflow
        return await self._run(workflow, draft)

    def _outputs(self) -> dict[str, JsonValue]:
        """Return the outputs that the check reads: the result itself, or its parts where it reads several."""
        wanted = self._wanted()
        if len(wanted) == 1:
            return {wanted[0]: "$nodes.run.output"}
        return {name: f"$nodes.run.output#/{name}" for name in wanted}

    async def _engine(self, draft: _Draft) -> Engine | None:
        tried = await self.sandbox.first_able(SandboxRequest(draft.source, draft.entry, draft.arguments))
        lacks = isinstance(tried.outcome, Raised) and tried.outcome.is_unsupported
        return None if lacks else tried.engine

    async def _run(self, workflow: Workflow, draft: _Draft) -> str:
        context = self.context
        episode = context.episode(context.known())
        async with episode.candidate(Activity.FIRST_RUN) as caller:
            run = await execute_workflow(
                workflow,
                draft.arguments,
                caller,
                snapshot=context.known(),
                options=context.options(self.task),
            )
        inputs = with_defaults(workflow, draft.arguments)
        verdict = verify(run, workflow, inputs, self.request.checks)
        trace = judged_trace(run.trace, workflow, verdict, context)
        context.store.add_trace(trace)
        if not verdict.is_verified or run.result is None:
            # What a check compares with is never shown to who writes.
            faults = [fault.message for fault in run.faults]
            return "; ".join(faults) or f"its result {json.dumps(run.result)[:300]} is not what was asked for"
        report = _report(workflow, await shown_outputs(run.result, context), trace.id)
        report = report.model_copy(
            update={"trace": trace.steps, "seconds": trace.seconds, "verifications": trace.verifications}
        )
        self._best = Repaired(
            report,
            VerifiedRun(
                workflow=workflow,
                trace=trace,
                outputs=run.result,
                node_outputs=run.outputs,
                task=self.task,
                inputs=dict(draft.arguments),
                verifications=trace.verifications,
            ),
        )
        return ""


def _report(workflow: Workflow, outputs: dict[str, JsonValue] | None, trace_id: str) -> RepairReport:
    return RepairReport(
        status="verified", outputs=outputs, workflow=workflow.to_json(), route="dynamic", trace_id=trace_id
    )


def _ask(messages: Sequence[Message]) -> Generator[Request, Completion, _Answered]:
    request = Request(tuple(messages), _SCHEMA, "function", max_output_tokens=2_000)
    completion = yield request
    try:
        read = read_json(completion.texts[0])
        return _Answered(_Draft.model_validate(cast("object", read)))
    except NotJson as error:
        return _Answered(None, str(error))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        return _Answered(None, f"{'/'.join(map(str, problem['loc']))}: {problem['msg']}")

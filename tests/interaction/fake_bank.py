"""A small bank for tests of the surface: real answers from fixed skills, no store, no upstream.

Run as a program it serves itself over stdio, or over HTTP, and says at the end that it could clean up.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
import mcp.types as types
from pydantic import JsonValue

from catalog.effects import Effect
from catalog.forwarding import Attendant
from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind
from catalog.tools import Tool, ToolId
from server.backends.backend import Message
from server.backends.backend import Request as ModelRequest
from server.backends.sampling import Sampler, SamplingBackend
from server.bank.errors import UnknownTrace
from server.bank.upstreams.administering import Administration
from server.execution.consent import Consent, ConsentQuestion
from server.execution.journal import Journal
from server.progress import Progress, ProgressListener
from server.reports import (
    RecordingReport,
    RecordingsReport,
    RepairReport,
    ReviewReport,
    RunReport,
    SavedReport,
    ServerReport,
    ServerTool,
    SkillReport,
    SkillsReport,
    ToolHit,
    ToolsReport,
)
from server.requests import RepairRequest, SaveRequest, SolveRequest
from server.surface import TRACE_META_KEY, BankPort, serve_http, serve_stdio
from server.surface.port import UpstreamProgress
from server.surface.resources import PART_CHARACTERS
from server.verification import Checks
from skills_store.errors import UnknownSkill
from skills_store.jobs import MemoryJobs
from skills_store.skill import Guidance, ReplayTest, Signature, Skill, ToolHints
from skills_store.trace import Step, Trace
from skills_store.workflow.faults import Denied, ToolError
from skills_store.workflow.model import Node, Workflow

CITY: dict[str, JsonValue] = {"type": "object", "properties": {"name": {"type": "string"}}}
RUN = Trace(
    id="t1",
    workflow_hash="sha256:double",
    inputs={"value": 3},
    steps=(
        Step(
            node="twice",
            tool=ToolId("math", "multiply"),
            arguments={"a": 3, "b": 2},
            outcome="succeeded",
            output={"result": 6},
            seconds=0.01,
        ),
    ),
    outputs={"doubled": 6},
    status="verified",
    calls=1,
    task="double three",
    route="direct",
    route_reasons=("skill double fits",),
    started_at=1_000.0,
)
RECORDED = RecordingReport(name="monday", calls=1, started_at=1_000.0, last_at=1_001.0)
MAIL = ToolId("mail", "send")
KEPT = f"sha256:{'a' * 64}"


def skill(name: str, *, hints: ToolHints | None = None) -> Skill:
    """Return a skill that doubles a number."""
    input_schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"value": {"type": "number", "description": "What to double."}},
        "required": ["value"],
        "additionalProperties": False,
    }
    output_schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"doubled": {"type": "number"}},
        "required": ["doubled"],
    }
    node = Node(id="twice", tool=ToolId("math", "multiply"), arguments={"a": "$inputs.value", "b": 2})
    return Skill(
        name=name,
        version=1,
        state="active",
        description="Doubles a number.",
        workflow=Workflow(
            name=name, inputs=input_schema, nodes=(node,), outputs={"doubled": "$nodes.twice.output#/result"}
        ),
        content_hash=f"sha256:{name}",
        shape_hash="sha256:shape",
        signature=Signature(input_schema=input_schema, output_schema=output_schema),
        tests=(ReplayTest(name="three", inputs={"value": 3}, outputs={"doubled": 6}),),
        hints=hints or ToolHints(read_only=True, destructive=False, idempotent=True, open_world=False),
        guidance=Guidance(when_to_use="a number must be doubled", pitfalls=("not for text",)),
    )


@dataclass(frozen=True)
class Published:
    """A skill with the name it is published under."""

    tool_name: str
    skill: Skill


@dataclass
class FakeBank:
    """Keeps what happened to it, so that tests can ask."""

    skills: dict[str, Skill] = field(
        default_factory=lambda: {name: skill(name) for name in ("double", "broken", "wrong", "crash")}
    )
    called: list[str] = field(default_factory=list)
    """Names of the skills that were called."""
    changes: int = 0
    cancelled: int = 0
    sent: list[JsonValue] = field(default_factory=list)
    """Arguments of the mails that went out: the effect that must not be repeated."""
    saved: list[SaveRequest] = field(default_factory=list)
    jobs: MemoryJobs = field(default_factory=MemoryJobs)
    approved: list[tuple[ConsentQuestion, bool]] = field(default_factory=list)
    """Approvals that were to be remembered, and whether of these arguments alone."""
    said_recordings: list[str | None] = field(default_factory=list)
    """What each relayed call was said to belong to."""
    tools: list[Tool] = field(default_factory=list)
    """Upstream tools that are known."""
    looked: int = 0
    traces: dict[str, Trace] = field(default_factory=lambda: {RUN.id: RUN})

    def publish(self, name: str) -> None:
        """Publish one more skill."""
        self.skills[name] = skill(name)
        self.changes += 1

    @property
    def admin(self) -> Administration:
        raise AssertionError("no configuration stands behind this bank")

    async def review_queue(self) -> ReviewReport:
        return ReviewReport(waiting=())

    async def approve(self, name: str, version: int | None = None) -> SkillReport:
        del version
        raise UnknownSkill(f"no skill {name!r}")

    async def reject(self, name: str, reason: str, version: int | None = None) -> SkillReport:
        del version, reason
        raise UnknownSkill(f"no skill {name!r}")

    async def rollback(self, name: str, version: int) -> SkillReport:
        del version
        raise UnknownSkill(f"no skill {name!r}")

    def journaled(self, journal: Journal) -> FakeBank:
        del journal
        return self

    def redacted(self, value: JsonValue) -> JsonValue:
        return value

    def remember_approval(self, question: ConsentQuestion, exact: bool) -> None:
        self.approved.append((question, exact))

    def published(self) -> list[Published]:
        return [Published(name, self.skills[name]) for name in sorted(self.skills)]

    def revision(self) -> int:
        return self.changes

    async def call_skill(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        version: int | None = None,
        progress: ProgressListener | None = None,
        consent: Consent | None = None,
    ) -> RunReport:
        del version, consent
        if name not in self.skills:
            raise UnknownSkill(f"no skill {name!r}")
        self.called.append(name)
        if progress is not None:
            progress(Progress(stage="run", message="twice", calls=1))
        if name == "crash":
            raise RuntimeError("secret of /home/someone")
        if name == "broken":
            fault = ToolError(message="no such city", node="twice", tool=ToolId("math", "multiply"))
            return RunReport(status="failed", outputs=None, faults=(fault,), calls=1, trace_id="t2")
        doubled = "six" if name == "wrong" else 2 * float(str(arguments["value"]))
        return RunReport(status="succeeded", outputs={"doubled": doubled}, calls=1, trace_id="t1")

    async def run(
        self,
        document: object,
        inputs: Mapping[str, JsonValue],
        checks: Checks,
        allow: tuple[str, ...] = (),
        consent: Consent | None = None,
        progress: ProgressListener | None = None,
    ) -> RunReport:
        """Send one mail for each of `inputs.to`, each with consent."""
        del document, checks, allow, progress
        recipients = inputs.get("to")
        for recipient in recipients if isinstance(recipients, list) else []:
            arguments: dict[str, JsonValue] = {"to": recipient}
            question = ConsentQuestion(MAIL, arguments, Effect.WRITE, "write and not allowed yet")
            word = await consent.ask(question) if consent is not None else None
            if not word:
                denied = Denied(
                    message="not allowed",
                    node="send",
                    tool=MAIL,
                    arguments=arguments,
                    needs_approval=word is None,
                )
                return RunReport(
                    status="needs_approval" if word is None else "failed",
                    outputs=None,
                    faults=(denied,),
                    calls=len(self.sent),
                )
            self.sent.append(recipient)
        return RunReport(status="succeeded", outputs={"sent": [*self.sent]}, calls=len(self.sent))

    async def repair(
        self,
        document: object,
        request: RepairRequest,
        consent: Consent | None = None,
        progress: ProgressListener | None = None,
        sampler: Sampler | None = None,
    ) -> RepairReport:
        del consent, sampler
        if progress is not None:
            for calls in range(1, 4):
                progress(
                    Progress(stage="repair", message=f"candidate {calls}", candidates=calls, calls=calls)
                )
                await anyio.lowlevel.checkpoint()
        workflow = document if isinstance(document, dict) else {}
        return RepairReport(
            status="unverified" if request.checks.assertions else "succeeded",
            outputs={"calls": request.budget.calls},
            workflow=workflow,
            candidates=3,
        )

    async def solve(
        self,
        task: str,
        request: SolveRequest,
        consent: Consent | None = None,
        progress: ProgressListener | None = None,
        sampler: Sampler | None = None,
    ) -> RepairReport:
        """Publish a skill under the name that is to be saved; propose with the client's model."""
        del consent, progress
        if task.startswith("propose"):
            asked = ModelRequest(
                (Message("system", "Be brief."), Message("user", task)), n=request.budget.calls
            )
            answer = await SamplingBackend(sampler).complete(asked)
            return RepairReport(status="succeeded", outputs={"said": [*answer.texts]}, workflow={})
        if request.save is not None:
            self.publish(request.save)
        return RepairReport(
            status="verified", outputs={"doubled": 6}, workflow={}, skill=request.save, skill_state="active"
        )

    async def find_skills(self, query: str, limit: int) -> SkillsReport:
        hits = [
            SkillReport(name=name, version=1, state="active", score=0.5)
            for name in sorted(self.skills)
            if query in name
        ]
        return SkillsReport(skills=tuple(hits[:limit]))

    async def describe_skill(self, name: str, version: int | None = None) -> Skill:
        if name not in self.skills or version not in (None, 1):
            raise UnknownSkill(f"no skill {name!r}")
        return self.skills[name]

    async def find_tools(self, query: str, limit: int) -> ToolsReport:
        hit = ToolHit(server="math", tool=query, description="", score=1.0, input_schema={"type": "object"})
        return ToolsReport(tools=(hit,)[:limit], method="lexical", note="words alone")

    def is_run(self, trace_id: str) -> bool:
        return trace_id == "t3"

    async def save(self, request: SaveRequest) -> SavedReport:
        self.saved.append(request)
        return SavedReport(skill=None, reason=f"{request.name} was not kept", calls=0)

    async def call_tool(
        self,
        tool: ToolId,
        arguments: Mapping[str, JsonValue],
        progress: UpstreamProgress | None = None,
        recording: str | None = None,
        attendant: Attendant | None = None,
    ) -> CallOutcome:
        self.said_recordings.append(recording)
        match tool.tool:
            case "ask" if attendant is not None:
                form = types.ElicitRequestFormParams(message="Which city?", requested_schema=CITY)
                given = await attendant.answer(tool.server, {"city": types.ElicitRequest(params=form)})
                answer = given.get("city")
                content = answer.content if isinstance(answer, types.ElicitResult) else None
                return CallSuccess({"city": content}, [], 0.0)
            case "wait":
                return await self._wait(progress)
            case "counts":
                return CallSuccess({"cancelled": self.cancelled}, [], 0.0)
            case "list":
                return CallSuccess([1, 2], [], 0.0)
            case "refuse":
                return CallFailure(FailureKind.UNKNOWN_TOOL, "Unknown tool: refuse", 0.0, code=-32602)
            case "fail":
                return CallFailure(
                    FailureKind.TOOL_ERROR,
                    "no",
                    0.0,
                    content=[{"type": "text", "text": "no"}],
                    meta={"a/b": 1},
                )
            case _:
                content: list[JsonValue] = [
                    {"type": "text", "text": "one", "annotations": {"audience": ["user"], "priority": 0.5}},
                    {"type": "image", "data": "aGk=", "mimeType": "image/png", "_meta": {"a/b": [1]}},
                ]
                meta: dict[str, JsonValue] = {"upstream.example/key": {"n": 1}, TRACE_META_KEY: "t3"}
                return CallSuccess(dict(arguments), content, 0.0, meta=meta)

    def upstream_tools(self) -> list[Tool]:
        return self.tools

    async def look_at_servers(self) -> None:
        self.looked += 1

    def skill_heads(self) -> list[Skill]:
        return [self.skills[name] for name in sorted(self.skills)]

    def skill_versions(self, name: str) -> list[Skill]:
        head = self.skills.get(name)
        older = [head.model_copy(update={"version": 1})] if head is not None and head.version > 1 else []
        return [*older, head] if head is not None else []

    def trace(self, trace_id: str) -> Trace | None:
        return self.traces.get(trace_id)

    def recent_traces(self, limit: int) -> list[Trace]:
        return [*self.traces.values()][:limit]

    async def recordings(self, limit: int = 20) -> RecordingsReport:
        return RecordingsReport(recordings=(RECORDED,)[:limit])

    async def show_recording(self, name: str) -> RecordingReport:
        if name != RECORDED.name:
            raise UnknownTrace(f"no conversation {name!r}")
        return RECORDED

    def servers(self) -> list[ServerReport]:
        odd = ServerReport(
            name="odd name", status="problems", transport="stdio", quarantined={"bomb": "too deep"}, tools=1
        )
        return [ServerReport(name="math", status="ok", transport="stdio", tools=1), odd]

    def server_tools(self, server: str) -> list[ServerTool]:
        tool = ServerTool(name="multiply", title=None, description="", effect=Effect.PURE, contract_hash="")
        return [tool] if server == "math" else []

    async def preview(self, value: JsonValue) -> JsonValue:
        return value

    def kept_value(self, digest: str) -> bytes:
        if digest != KEPT:
            raise LookupError(digest)
        return json.dumps({"text": "ü" * PART_CHARACTERS}, ensure_ascii=False).encode()

    async def report_outcome(self, trace_id: str, passed: bool, detail: str) -> dict[str, JsonValue]:
        if trace_id != "t1":
            raise LookupError(f"no trace {trace_id}")
        return {"trace": trace_id, "passed": passed, "detail": detail}

    async def _wait(self, progress: UpstreamProgress | None) -> CallOutcome:
        try:
            if progress is not None:
                await progress(1.0, 2.0, "waiting")
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        raise AssertionError("slept for ever")


@asynccontextmanager
async def served_over_http(bank: BankPort) -> AsyncGenerator[str]:
    """Serve a bank on a free port and yield its URL."""
    async with anyio.create_task_group() as tasks:
        urls: list[str] = []
        bound = anyio.Event()

        def ready(url: str) -> None:
            urls.append(url)
            bound.set()

        tasks.start_soon(serve_http, bank, "127.0.0.1", 0, ready)
        await bound.wait()
        yield urls[0]
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["http"]:
            anyio.run(serve_http, FakeBank(), "127.0.0.1", 0, partial(print, flush=True))
        else:
            anyio.run(serve_stdio, FakeBank())
    finally:
        print("closed", file=sys.stderr)

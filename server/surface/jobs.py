"""Runs jobs: long calls of our tools that go on without their client, and after a restart.

A job is kept in the store with the journal of its upstream calls. This process renews the lease of
the jobs it runs, takes over those whose process ended, and does what others ask of them. What clients
see of jobs is `job_tools` and `tasks`.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, cast

import anyio
import anyio.abc
import mcp.types as types
from pydantic import JsonValue

from catalog.canonical import digest
from catalog.effects import Effect
from catalog.tools import ToolId
from server.execution.consent import ConsentQuestion
from server.execution.journal import StoredJournal
from server.surface.admin_tools import ADMIN_TOOLS, answer_admin
from server.surface.arguments import grouped
from server.surface.calls import Attendance, ToolCall, answer_call, foreseen_total
from server.surface.job_arguments import KEEP_SECONDS
from server.surface.listing import ListingSource
from server.surface.port import BankPort
from server.surface.progress import ProgressFeed
from skills_store.errors import StoreError
from skills_store.jobs import Job, JobCall, JobMessage, JobStatus, JobStore, is_ended

__all__ = ["JobRefused", "Jobs", "Tempo", "parse_question"]

_LOG = logging.getLogger(__name__)

_MOST_RUNNING: Final = 32
_MOST_RESUMED: Final = 5
"""After so many restarts a job is given up: it may be what ends the process."""


class JobRefused(Exception):  # noqa: N818
    """A job cannot be begun; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Tempo:
    """How often things are looked at, in seconds."""

    busy: float = 0.5
    """While jobs run here: messages, leases."""
    idle: float = 5.0
    """While none does: jobs whose process ended."""
    lease: float = 15.0
    save: float = 1.0
    """Least time between two writes of the progress of a job."""
    answer: float = 600.0
    """How long a job waits for a person."""


@dataclass
class _Running:
    """A job that runs in this process."""

    job: Job
    store: JobStore
    owner: str
    clock: Callable[[], float]
    tempo: Tempo
    changed: Callable[[], None]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_cancelled: bool = False
    _saved_at: float = 0.0
    _answered: anyio.Event = field(default_factory=anyio.Event)
    _word: bool | None = None
    _asking: anyio.Lock = field(default_factory=anyio.Lock)

    def keep(self, **changes: object) -> bool:
        """Keep how the job stands; False where another process has it by now."""
        self.job = self.job.model_copy(update={**changes, "updated_at": self.clock()})
        kept = self.store.save(self.job, owner=self.owner)
        self._saved_at = self.clock()
        self.changed()
        return kept

    async def report(self, done: float, total: float | None, message: str | None) -> None:
        """Take progress; it is written down at most once in a while."""
        moment = {"done": done, "total": total, "message": message or ""}
        if self.clock() - self._saved_at >= self.tempo.save:
            self.keep(**moment)
        else:
            self.job = self.job.model_copy(update=moment)
            self.changed()

    def cancel(self) -> None:
        self.is_cancelled = True
        self.scope.cancel()

    def answer(self, content: JsonValue) -> None:
        """Take a person's word, if it answers the question that waits."""
        asked = None if self.job.question is None else digest(self.job.question)
        match content:
            case {"question": str(answered), "word": bool(word)} if answered == asked:
                self._word = word
                self._answered.set()
            case _:
                pass

    async def ask(self, question: ConsentQuestion) -> bool | None:
        """Wait for a person to be asked by whoever follows the job; None where nobody was."""
        if not self.job.can_ask:
            return None
        async with self._asking:
            self._answered, self._word = anyio.Event(), None
            self.keep(status="input_required", question=_written(question))
            with anyio.move_on_after(self.tempo.answer):
                await self._answered.wait()
            self.keep(status="working", question=None)
            return self._word

    # The book of the journal.

    def begin(self, call: JobCall) -> bool:
        return self.store.begin_call(self.job.id, call, owner=self.owner)

    def end(self, call: JobCall) -> None:
        self.store.end_call(self.job.id, call)

    def plan(self, content_hash: str) -> None:
        if content_hash not in self.job.plans:
            self.keep(plans=(*self.job.plans, content_hash))


Answering = Callable[[BankPort, ToolCall, Attendance], Awaitable[types.CallToolResult]]


class Jobs:
    """The jobs of one bank.

    Args:
        bank: does the work, and keeps the jobs.
        source: what can be called.
        clock: Unix seconds.
        tempo: how often things are looked at.
    """

    def __init__(
        self,
        bank: BankPort,
        source: ListingSource,
        clock: Callable[[], float] = time.time,
        tempo: Tempo = Tempo(),
    ) -> None:
        self._bank = bank
        self._source = source
        self._clock = clock
        self._tempo = tempo
        self._owner = secrets.token_hex(8)
        self._running: dict[str, _Running] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._changed = anyio.Event()
        self._nudged = anyio.Event()

    @property
    def store(self) -> JobStore:
        """Where they are kept."""
        return self._bank.jobs

    async def attend(self) -> None:
        """Run jobs until cancelled, those that a process left when it ended first."""
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                while True:
                    self._look()
                    with anyio.move_on_after(self._tempo.busy if self._running else self._tempo.idle):
                        await self._nudged.wait()
                    self._nudged = anyio.Event()
        finally:
            self._tasks = None
            self._release()

    def start(self, call: ToolCall, *, keep_seconds: float = KEEP_SECONDS, can_ask: bool = False) -> Job:
        """Begin a job and return it.

        Raises:
            JobRefused: too many run, or none can.
        """
        if self._tasks is None:
            raise JobRefused("jobs cannot be run now: the server is ending")
        if len(self._running) >= _MOST_RUNNING:
            raise JobRefused(f"{_MOST_RUNNING} jobs are running: wait for one to end, or cancel one")
        now = self._clock()
        kept = cast("dict[str, JsonValue]", self._bank.redacted(dict(call.arguments)))
        job = Job(
            id=secrets.token_urlsafe(16),
            tool=call.name,
            arguments=kept,
            created_at=now,
            updated_at=now,
            keep_seconds=keep_seconds,
            can_ask=can_ask,
            total=foreseen_total(call),
            is_whole=kept == dict(call.arguments),
        )
        self.store.add(job, owner=self._owner, lease_until=now + self._tempo.lease)
        self._begin(job, call)
        self._nudged.set()
        return job

    def job(self, job_id: str) -> Job | None:
        """Return a job as it stands, None where there is none of this id."""
        running = self._running.get(job_id)
        return running.job if running is not None else self.store.job(job_id)

    def jobs(self, limit: int = 50) -> list[Job]:
        """Return the newest jobs, the newest first."""
        return [self.job(job.id) or job for job in self.store.jobs(limit)]

    def cancel(self, job_id: str) -> bool:
        """Have a job cancelled, wherever it runs; False where none of this id runs."""
        if (running := self._running.get(job_id)) is not None:
            running.cancel()
            return True
        return self.store.tell(JobMessage(job=job_id, kind="cancel"))

    def answer(self, job: Job, word: bool) -> bool:
        """Give a person's word on what a job asks; False where it runs no more."""
        content: JsonValue = {"question": digest(job.question), "word": word}
        if (running := self._running.get(job.id)) is not None:
            running.answer(content)
            return True
        return self.store.tell(JobMessage(job=job.id, kind="answer", content=content))

    async def wait(self, job: Job, seconds: float) -> Job:
        """Return a job as soon as it ends, asks something or makes progress, or after some time."""
        with anyio.move_on_after(seconds):
            while (now := self.job(job.id)) is not None and _seen(now) == _seen(job) and not is_ended(now):
                with anyio.move_on_after(self._tempo.busy):
                    await self._changed.wait()
        return self.job(job.id) or job

    def _look(self) -> None:
        try:
            now = self._clock()
            if self._running:
                for message in self.store.renew(self._owner, now + self._tempo.lease):
                    self._follow(message)
            for job in self.store.claim(self._owner, now=now, lease_until=now + self._tempo.lease):
                self._resume(job)
            self.store.forget(now=now)
        except StoreError:
            _LOG.exception("the jobs could not be looked at; they are looked at again soon")

    def _follow(self, message: JobMessage) -> None:
        running = self._running.get(message.job)
        if running is None:
            return
        if message.kind == "cancel":
            running.cancel()
        else:
            running.answer(message.content)

    def _resume(self, job: Job) -> None:
        """Go on with a job that another process had, or end it and say why that cannot be."""
        again = job.model_copy(update={"resumed": job.resumed + 1, "status": "working", "question": None})
        schema = self._source.current().input_schema(job.tool)
        problem = None
        if not job.is_whole:
            problem = "its arguments held a secret, which is not kept: begin it again"
        elif job.resumed >= _MOST_RESUMED:
            problem = f"it was interrupted {job.resumed + 1} times"
        elif schema is None:
            problem = f"there is no tool {job.tool} any more"
        if problem is not None:
            self._entry(again).keep(status="failed", message=f"cannot be gone on with: {problem}")
            return
        _LOG.info("going on with job %s (%s)", job.id, job.tool)
        listing = self._source.current()
        skill, upstream = listing.skills.get(job.tool), listing.upstream.get(job.tool)
        self._begin(again, ToolCall(job.tool, grouped(job.tool, job.arguments), skill, upstream))

    def _begin(self, job: Job, call: ToolCall) -> None:
        if self._tasks is None:
            raise RuntimeError("jobs run only while they are attended")
        running = self._running[job.id] = self._entry(job)
        self._tasks.start_soon(self._run, running, call)

    def _entry(self, job: Job) -> _Running:
        return _Running(job, self.store, self._owner, self._clock, self._tempo, self._tell)

    async def _run(self, running: _Running, call: ToolCall) -> None:
        job_id = running.job.id
        try:
            result = None
            with running.scope:
                result = await self._answer(running, call)
            if running.is_cancelled or result is None:
                running.keep(status="cancelled", message="cancelled", question=None)
            else:
                running.keep(**_ended(result, running.job, self._bank))
        except StoreError:
            _LOG.exception("job %s could not be kept", job_id)
        finally:
            self._running.pop(job_id, None)
            self._tell()

    async def _answer(self, running: _Running, call: ToolCall) -> types.CallToolResult:
        job, feed = running.job, ProgressFeed(running.job.total)
        earlier = self.store.calls(job.id)
        journal = StoredJournal(running, earlier, job.plans, self._bank.redacted)
        attendance = Attendance(running, feed, None, running.report)
        if job.resumed:
            running.keep()
        async with feed.attached(running.report):
            bank = self._bank.journaled(journal)
            if call.name in ADMIN_TOOLS:
                return await answer_admin(bank, call, attendance)
            return await answer_call(bank, call, attendance)

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def _release(self) -> None:
        try:
            self.store.release(self._owner)
        except (StoreError, RuntimeError):
            _LOG.warning("the leases of jobs could not be given up; they run out by themselves")


def _ended(result: types.CallToolResult, job: Job, bank: BankPort) -> dict[str, object]:
    status: JobStatus = "failed" if result.is_error else "completed"
    wire = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    told: dict[str, object] = {
        "status": status,
        "message": status,
        "question": None,
        "result": bank.redacted(wire),
    }
    return told if result.is_error or job.total is None else {**told, "done": job.total}


def _seen(job: Job) -> tuple[object, ...]:
    return (job.status, job.done, job.message, digest(job.question))


def _written(question: ConsentQuestion) -> JsonValue:
    return {
        "server": question.tool.server,
        "tool": question.tool.tool,
        "arguments": question.arguments,
        "effect": question.effect.value,
        "reason": question.reason,
    }


def parse_question(written: JsonValue) -> ConsentQuestion | None:
    """Return what a job asks a person, None where it asks nothing."""
    match written:
        case {
            "server": str(server),
            "tool": str(tool),
            "arguments": dict(arguments),
            "effect": str(effect),
            "reason": str(reason),
        }:
            return ConsentQuestion(ToolId(server, tool), arguments, Effect(effect), reason)
        case _:
            return None

"""Jobs: long tool calls that outlive their client and their process, and the port that keeps them.

A job is one call of one of our tools, with a journal of the upstream calls it made, so that whoever
goes on with it after a restart repeats none that is finished. One process owns a job at a time, by a
lease; what others want of it they leave as a message. Running jobs is the server's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import RLock
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, JsonValue

from catalog.tools import ToolId

__all__ = ["ENDED", "Job", "JobCall", "JobMessage", "JobStatus", "JobStore", "MemoryJobs", "is_ended"]

JobStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]
ENDED: frozenset[JobStatus] = frozenset({"completed", "failed", "cancelled"})


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Job(_Record):
    """One long call, as it stands."""

    id: str
    tool: str
    """Name of the tool of ours that is called."""
    arguments: dict[str, JsonValue]
    """As given, secrets taken out."""
    status: JobStatus = "working"
    created_at: float
    """Unix seconds."""
    updated_at: float
    keep_seconds: float
    """How long it is kept after it ended."""
    can_ask: bool = False
    """Whether the client that began it shows its user questions."""
    done: float = 0.0
    total: float | None = None
    """What `done` grows to, None when nobody can tell."""
    message: str = ""
    """What is going on, or why it ended as it did."""
    question: JsonValue = None
    """What a person is asked, None when nothing is."""
    result: JsonValue = None
    """The tool's result on the wire, None before there is one."""
    resumed: int = 0
    """How often another process went on with it."""
    is_whole: bool = True
    """Whether the arguments are kept as they were given, so that it can be gone on with."""
    plans: tuple[str, ...] = ()
    """Content hashes of the plans it began to run."""

    @property
    def expires_at(self) -> float | None:
        """Unix seconds after which it is forgotten, None while it runs."""
        return self.updated_at + self.keep_seconds if is_ended(self) else None


class JobCall(_Record):
    """One upstream call of a job: written down before it is sent, completed when it is answered."""

    number: int
    node: str
    items: tuple[int, ...]
    tool: ToolId
    arguments_digest: str
    is_free: bool
    """Whether it may be repeated at will."""
    outcome: JsonValue = None
    """What it came to, None where that is not known or could not be kept."""
    is_answered: bool = False


class JobMessage(_Record):
    """What somebody wants of the process that runs a job."""

    job: str
    kind: Literal["cancel", "answer"]
    content: JsonValue = None


class JobStore(Protocol):
    """The jobs of one principal. May be called from several threads; a call is all or nothing."""

    def add(self, job: Job, *, owner: str, lease_until: float) -> None:
        """Keep a new job that `owner` runs.

        Args:
            job: new.
            owner: names the running process.
            lease_until: Unix seconds; another may take the job over later.
        """
        ...

    def job(self, job_id: str) -> Job | None:
        """Return a job, None where this principal has none of this id."""
        ...

    def jobs(self, limit: int) -> list[Job]:
        """Return the newest jobs, the newest first."""
        ...

    def save(self, job: Job, *, owner: str) -> bool:
        """Keep how a job stands; False and nothing kept where the owner is another one by now."""
        ...

    def claim(self, owner: str, *, now: float, lease_until: float) -> list[Job]:
        """Take over the jobs that have not ended and whose lease ran out; each once in all processes."""
        ...

    def renew(self, owner: str, lease_until: float) -> list[JobMessage]:
        """Lengthen the leases of an owner, and hand out the messages for its jobs, each once."""
        ...

    def release(self, owner: str) -> None:
        """Give up the leases of an owner, so that its jobs can be taken over at once."""
        ...

    def tell(self, message: JobMessage) -> bool:
        """Leave a message for whoever runs a job; False where there is none that runs."""
        ...

    def begin_call(self, job_id: str, call: JobCall, *, owner: str) -> bool:
        """Write a call down before it is sent; False where the owner is another one by now."""
        ...

    def end_call(self, job_id: str, call: JobCall) -> None:
        """Write down what a call came to."""
        ...

    def calls(self, job_id: str) -> list[JobCall]:
        """Return the calls of a job in the order in which they were begun."""
        ...

    def forget(self, *, now: float) -> int:
        """Drop the jobs that expired, with their calls; return how many."""
        ...


def is_ended(job: Job) -> bool:
    """Return whether nothing more will come of a job."""
    return job.status in ENDED


@dataclass
class _Kept:
    job: Job
    owner: str | None
    lease_until: float
    calls: dict[int, JobCall] = field(default_factory=dict[int, JobCall])


class MemoryJobs:
    """Jobs that live as long as their process."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._messages: list[JobMessage] = []
        self._lock = RLock()

    def add(self, job: Job, *, owner: str, lease_until: float) -> None:
        with self._lock:
            self._kept[job.id] = _Kept(job, owner, lease_until)

    def job(self, job_id: str) -> Job | None:
        with self._lock:
            kept = self._kept.get(job_id)
            return None if kept is None else kept.job

    def jobs(self, limit: int) -> list[Job]:
        with self._lock:
            return [kept.job for kept in reversed(self._kept.values())][:limit]

    def save(self, job: Job, *, owner: str) -> bool:
        with self._lock:
            kept = self._owned(job.id, owner)
            if kept is None:
                return False
            kept.job = job
            return True

    def claim(self, owner: str, *, now: float, lease_until: float) -> list[Job]:
        with self._lock:
            free = [
                kept
                for kept in self._kept.values()
                if not is_ended(kept.job) and (kept.owner is None or kept.lease_until < now)
            ]
            for kept in free:
                kept.owner, kept.lease_until = owner, lease_until
            return [kept.job for kept in free]

    def renew(self, owner: str, lease_until: float) -> list[JobMessage]:
        with self._lock:
            mine = {job_id for job_id, kept in self._kept.items() if kept.owner == owner}
            for job_id in mine:
                self._kept[job_id].lease_until = lease_until
            found = [message for message in self._messages if message.job in mine]
            self._messages = [message for message in self._messages if message.job not in mine]
            return found

    def release(self, owner: str) -> None:
        with self._lock:
            for kept in self._kept.values():
                if kept.owner == owner:
                    kept.owner = None

    def tell(self, message: JobMessage) -> bool:
        with self._lock:
            kept = self._kept.get(message.job)
            if kept is None or is_ended(kept.job):
                return False
            self._messages.append(message)
            return True

    def begin_call(self, job_id: str, call: JobCall, *, owner: str) -> bool:
        with self._lock:
            kept = self._owned(job_id, owner)
            if kept is None:
                return False
            kept.calls[call.number] = call
            return True

    def end_call(self, job_id: str, call: JobCall) -> None:
        with self._lock:
            if job_id in self._kept:
                self._kept[job_id].calls[call.number] = call

    def calls(self, job_id: str) -> list[JobCall]:
        with self._lock:
            kept = self._kept.get(job_id)
            return [] if kept is None else [kept.calls[number] for number in sorted(kept.calls)]

    def forget(self, *, now: float) -> int:
        with self._lock:
            gone = [k for k, kept in self._kept.items() if (kept.job.expires_at or now) < now]
            for job_id in gone:
                del self._kept[job_id]
            self._messages = [message for message in self._messages if message.job not in gone]
            return len(gone)

    def _owned(self, job_id: str, owner: str) -> _Kept | None:
        kept = self._kept.get(job_id)
        return kept if kept is not None and kept.owner == owner else None

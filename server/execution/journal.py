"""The journal of a job: every upstream call is written down before it is sent and when it is answered.

Whoever goes on with a job after its process ended runs the same use case again; calls that are in the
journal are answered from it, so that what is finished is not repeated. A call that is not free and
whose end is unknown is never sent again, nor is one that would stand in its place. How a job is run
and kept is `server.surface.jobs`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pydantic import JsonValue, TypeAdapter

from catalog.canonical import digest
from catalog.effects import Effect
from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind, RanUpstream
from catalog.tools import ToolId
from server.execution.calls import CallRequest
from server.execution.spill import Redact
from skills_store.jobs import JobCall

__all__ = ["CallBook", "JobTakenOver", "Journal", "StoredJournal", "journaled"]

_outcomes: TypeAdapter[CallSuccess | CallFailure] = TypeAdapter(CallSuccess | CallFailure)
_WORLD = frozenset({FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE})
_MOST_BYTES: Final = 16 * 1024 * 1024
"""Rough size of an answer that is still kept in a journal."""


class JobTakenOver(Exception):  # noqa: N818
    """Another process owns the job by now; nothing more may be sent for it here."""


class Journal(Protocol):
    """What is known of a job's upstream calls, from this process and earlier ones."""

    def earlier(self, request: CallRequest, effect: Effect) -> CallOutcome | None:
        """Return what an earlier process's equal call came to, or why it may not be made; None: make it.

        What a free call came to is handed out once for each time it was made.
        """
        ...

    def is_settled(self, request: CallRequest) -> bool:
        """Return whether a call that is not free needs no consent, since it will not be made."""
        ...

    def set_plan(self, content_hash: str) -> None:
        """Say which plan begins to run."""
        ...

    def begin(self, request: CallRequest, effect: Effect) -> JobCall:
        """Write a call down that is about to be sent.

        Raises:
            JobTakenOver: another process owns the job.
        """
        ...

    def end(self, call: JobCall, outcome: CallOutcome) -> None:
        """Write down what a call came to."""
        ...


async def journaled(
    journal: Journal | None,
    request: CallRequest,
    effect: Effect,
    make: Callable[[], Awaitable[CallOutcome]],
) -> CallOutcome:
    """Return the outcome of a call, from the journal where an earlier process made it."""
    if journal is None:
        return await make()
    if (kept := journal.earlier(request, effect)) is not None:
        return kept
    call = journal.begin(request, effect)
    outcome = await make()
    journal.end(call, outcome)
    return outcome


class CallBook(Protocol):
    """Where the calls of one job are written down by its owner."""

    def begin(self, call: JobCall) -> bool:
        """Keep a call that is about to be sent; False where the job has another owner by now."""
        ...

    def end(self, call: JobCall) -> None:
        """Keep what a call came to."""
        ...

    def plan(self, content_hash: str) -> None:
        """Keep that a plan begins to run."""
        ...


@dataclass(frozen=True, slots=True)
class _Place:
    node: str
    items: tuple[int, ...]
    tool: ToolId


class StoredJournal:
    """The journal over what a store kept of a job.

    Args:
        book: takes what happens from now on.
        earlier: calls of the processes that had the job before, in order.
        plans: hashes of the plans that ran before.
        redact: takes secrets out; an answer that holds one is not kept, since it would not be the same.
    """

    def __init__(
        self, book: CallBook, earlier: Iterable[JobCall], plans: Iterable[str], redact: Redact
    ) -> None:
        before = list(earlier)
        self._book, self._redact = book, redact
        self._next = max((call.number for call in before), default=-1) + 1
        self._free: defaultdict[tuple[ToolId, str], deque[JobCall]] = defaultdict(deque)
        self._costly: dict[_Place, JobCall] = {}
        for call in before:
            if call.is_free:
                self._free[call.tool, call.arguments_digest].append(call)
            elif not _was_refused(call):
                self._costly[_Place(call.node, call.items, call.tool)] = call
        self._plans = frozenset(plans)
        self._is_another_plan = False

    def earlier(self, request: CallRequest, effect: Effect) -> CallOutcome | None:
        asked = digest(request.arguments)
        if effect.is_free:
            return self._earlier_free(request.tool, asked)
        call = self._costly.get(_place(request))
        if call is None:
            return _another_plan(request) if self._costly and self._is_another_plan else None
        if call.arguments_digest != asked:
            return _refused(f"{request.tool} ran in this step before a restart, with other arguments")
        if not call.is_answered:
            return _unsure(f"{request.tool} was under way at a restart: it may have run, and runs only once")
        return _read(call) or _unsure(
            f"{request.tool} ran before a restart; its answer could not be kept, and it runs only once"
        )

    def is_settled(self, request: CallRequest) -> bool:
        return _place(request) in self._costly or (bool(self._costly) and self._is_another_plan)

    def set_plan(self, content_hash: str) -> None:
        self._is_another_plan = bool(self._plans) and content_hash not in self._plans
        self._book.plan(content_hash)

    def begin(self, request: CallRequest, effect: Effect) -> JobCall:
        call = JobCall(
            number=self._next,
            node=request.node,
            items=request.items,
            tool=request.tool,
            arguments_digest=digest(request.arguments),
            is_free=effect.is_free,
        )
        self._next += 1
        if not self._book.begin(call):
            raise JobTakenOver("another process goes on with this job")
        return call

    def end(self, call: JobCall, outcome: CallOutcome) -> None:
        kept = call.model_copy(update={"outcome": self._wire(outcome), "is_answered": True})
        self._book.end(kept)

    def _earlier_free(self, tool: ToolId, arguments_digest: str) -> CallOutcome | None:
        calls = self._free.get((tool, arguments_digest))
        while calls:
            outcome = _read(calls.popleft())
            if outcome is not None and not (isinstance(outcome, CallFailure) and outcome.kind in _WORLD):
                return outcome
        return None

    def _wire(self, outcome: CallOutcome) -> JsonValue:
        """Return an outcome as it is kept, None where it is too large or holds a secret."""
        if (outcome.large_bytes or 0) > _MOST_BYTES:
            return None
        wire: Any = _outcomes.dump_python(outcome, mode="json")
        return wire if self._redact(wire) == wire else None


def _place(request: CallRequest) -> _Place:
    return _Place(request.node, request.items, request.tool)


def _read(call: JobCall) -> CallOutcome | None:
    if not call.is_answered or call.outcome is None:
        return None
    return _outcomes.validate_python(call.outcome)


def _was_refused(call: JobCall) -> bool:
    """Return whether a call is known not to have had any effect, so that it may still be made."""
    outcome = _read(call)
    return isinstance(outcome, CallFailure) and outcome.ran is RanUpstream.NO


def _refused(message: str) -> CallFailure:
    return CallFailure(FailureKind.DENIED, message, 0.0, RanUpstream.NO)


def _unsure(message: str) -> CallFailure:
    return CallFailure(FailureKind.SERVER_UNAVAILABLE, message, 0.0, RanUpstream.UNSURE)


def _another_plan(request: CallRequest) -> CallFailure:
    return _refused(
        f"{request.tool} is not free, and before a restart this job ran calls of another plan that are not"
        " free either: nothing of the kind is added to them"
    )

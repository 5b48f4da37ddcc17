"""Lets a tool call outlive its request while a person is asked (2026-07-28, input required).

That era has no requests from server to client: the call is answered with a question, and the client
sends it again with the answer. Running the use case again would repeat what it already did, so it is
suspended at the question and goes on when the answer comes. The sealed request state names the
suspended call and the question's digest; an answer counts for nothing else.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import anyio.abc
import mcp.types as types
from mcp import MCPError
from pydantic import BaseModel, ConfigDict, ValidationError

from server.execution.consent import ConsentQuestion
from server.surface.consent import Answer, AskPerson, consent_form, parse_answer, question_digest
from server.surface.failures import error_result
from server.surface.progress import ProgressFeed, Report

__all__ = ["WAIT_SECONDS", "SuspendedCalls"]

WAIT_SECONDS = 600.0
"""How long a call waits for an answer before it is given up; also the life of a request state."""
_MOST_WAITING = 64
_ANSWER_KEY = "consent"

Work = Callable[[AskPerson], Awaitable[types.CallToolResult]]
"""Does a call, given how to ask the person behind it; never raises but for cancellation."""


class _State(BaseModel):
    """What the sealed request state says."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    call: str
    question: str


@dataclass
class _Question:
    asked: ConsentQuestion
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: Answer | None = None


class _Call:
    """A use case that runs in a task of its own until it is done or has a question."""

    def __init__(self, feed: ProgressFeed) -> None:
        self.id = secrets.token_urlsafe(16)
        self.question: _Question | None = None
        self.result: types.CallToolResult | None = None
        self._feed = feed
        self._scope = anyio.CancelScope()
        self._moved = anyio.Event()

    async def run(self, work: Work) -> None:
        with self._scope:
            self.result = await work(self._ask)
        self._moved.set()

    def cancel(self) -> None:
        self._scope.cancel()

    def answer(self, answer: Answer | None) -> None:
        question, self.question = self.question, None
        if question is not None:
            question.answer = answer
            question.answered.set()

    async def settle(self, report: Report) -> None:
        """Wait until there is a result or a question; give the call up if the request is."""
        try:
            async with self._feed.attached(report):
                await self._moved.wait()
        except BaseException:
            self.cancel()
            raise
        self._moved = anyio.Event()

    async def _ask(self, question: ConsentQuestion) -> Answer | None:
        self.question = asked = _Question(question)
        self._moved.set()
        await asked.answered.wait()
        return asked.answer


class SuspendedCalls:
    """The calls of one server that wait for an answer.

    Args:
        tasks: where calls run; it outlives every request.
        most_waiting: calls that may wait at a time; one more is told that nobody can be asked.
    """

    def __init__(
        self,
        tasks: anyio.abc.TaskGroup,
        *,
        wait_seconds: float = WAIT_SECONDS,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        self._tasks = tasks
        self._wait_seconds = wait_seconds
        self._most_waiting = most_waiting
        self._waiting: dict[str, _Call] = {}

    async def begin(
        self, work: Work, feed: ProgressFeed, report: Report
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Start a call, and return its result or its first question."""
        call = _Call(feed)
        self._tasks.start_soon(call.run, work)
        return await self._outcome(call, report)

    async def resume(
        self, params: types.CallToolRequestParams, report: Report
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Give a call the answer that its client came back with, and return how it goes on.

        Raises:
            MCPError: no call waits with that question: answered before, given up, or forgotten.
        """
        state = _parse_state(params.request_state or "")
        call = self._waiting.get(state.call)
        if call is None or call.question is None or question_digest(call.question.asked) != state.question:
            raise _not_waiting()
        del self._waiting[state.call]
        call.answer(parse_answer((params.input_responses or {}).get(_ANSWER_KEY)))
        return await self._outcome(call, report)

    async def _outcome(self, call: _Call, report: Report) -> types.CallToolResult | types.InputRequiredResult:
        while call.result is None:
            await call.settle(report)
            if call.question is None:
                break
            if len(self._waiting) < self._most_waiting:
                return self._suspend(call, call.question)
            call.answer(None)
        return call.result or error_result("The call was given up before it had a result.")

    def _suspend(self, call: _Call, question: _Question) -> types.InputRequiredResult:
        self._waiting[call.id] = call
        self._tasks.start_soon(self._give_up_later, call, question)
        state = _State(call=call.id, question=question_digest(question.asked))
        return types.InputRequiredResult(
            input_requests={_ANSWER_KEY: types.ElicitRequest(params=consent_form(question.asked))},
            request_state=state.model_dump_json(),
        )

    async def _give_up_later(self, call: _Call, question: _Question) -> None:
        with anyio.move_on_after(self._wait_seconds) as waiting:
            await question.answered.wait()
        if waiting.cancelled_caught:
            del self._waiting[call.id]
            call.cancel()


def _parse_state(text: str) -> _State:
    try:
        return _State.model_validate(json.loads(text))
    except (ValueError, ValidationError) as error:
        raise _not_waiting() from error


def _not_waiting() -> MCPError:
    return MCPError(types.INVALID_PARAMS, "No call waits for this answer: call the tool again")

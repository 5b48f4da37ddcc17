"""Lets a tool call outlive its request while its client is asked (2026-07-28, input required).

That era has no requests from server to client: the call is answered with questions, and the client
sends it again with the answers. Running the use case again would repeat what it already did, so it is
suspended at the questions and goes on when the answers come. The sealed request state names the
suspended call and the digest of the questions; an answer counts for nothing else. What is asked is
`consent`, a person's word, or `lending`, an answer of the client's model.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import anyio
import anyio.abc
import mcp.types as types
from mcp import MCPError
from pydantic import BaseModel, ConfigDict, ValidationError

from server.surface.failures import error_result
from server.surface.progress import ProgressFeed, Report

__all__ = ["WAIT_SECONDS", "Ask", "Questions", "SuspendedCalls"]

WAIT_SECONDS = 600.0
"""How long a call waits for an answer before it is given up; also the life of a request state."""
_MOST_WAITING = 64


@dataclass(frozen=True, slots=True)
class Questions:
    """What is asked of a client at once."""

    requests: Mapping[str, types.InputRequest]
    digest: str
    """Their identity: an answer counts for these and no others."""


Answers = Mapping[str, object]
"""By the keys of the requests; those that the client left out are missing."""
Ask = Callable[[Questions], Awaitable[Answers]]
"""Asks the client behind a call; nothing is answered when nobody can be asked."""
Work = Callable[[Ask], Awaitable[types.CallToolResult]]
"""Does a call, given how to ask its client; never raises but for cancellation."""


class _State(BaseModel):
    """What the sealed request state says."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    call: str
    questions: str


@dataclass
class _Asked:
    questions: Questions
    answered: anyio.Event = field(default_factory=anyio.Event)
    answers: Answers = field(default_factory=dict[str, object])


class _Call:
    """A use case that runs in a task of its own until it is done or has a question."""

    def __init__(self, feed: ProgressFeed) -> None:
        self.id = secrets.token_urlsafe(16)
        self.asked: _Asked | None = None
        self.result: types.CallToolResult | None = None
        self._feed = feed
        self._scope = anyio.CancelScope()
        self._moved = anyio.Event()
        self._asking = anyio.Lock()

    async def run(self, work: Work) -> None:
        with self._scope:
            self.result = await work(self._ask)
        self._moved.set()

    def cancel(self) -> None:
        self._scope.cancel()

    def answer(self, answers: Answers) -> None:
        asked, self.asked = self.asked, None
        if asked is not None:
            asked.answers = answers
            asked.answered.set()

    async def settle(self, report: Report) -> None:
        """Wait until there is a result or a question; give the call up if the request is."""
        try:
            async with self._feed.attached(report):
                await self._moved.wait()
        except BaseException:
            self.cancel()
            raise
        self._moved = anyio.Event()

    async def _ask(self, questions: Questions) -> Answers:
        async with self._asking:
            self.asked = asked = _Asked(questions)
            self._moved.set()
            await asked.answered.wait()
            return asked.answers


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
        """Start a call, and return its result or its first questions."""
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
        if call is None or call.asked is None or call.asked.questions.digest != state.questions:
            raise _not_waiting()
        del self._waiting[state.call]
        call.answer(params.input_responses or {})
        return await self._outcome(call, report)

    async def _outcome(self, call: _Call, report: Report) -> types.CallToolResult | types.InputRequiredResult:
        while call.result is None:
            await call.settle(report)
            if call.asked is None:
                break
            if len(self._waiting) < self._most_waiting:
                return self._suspend(call, call.asked)
            call.answer({})
        return call.result or error_result("The call was given up before it had a result.")

    def _suspend(self, call: _Call, asked: _Asked) -> types.InputRequiredResult:
        self._waiting[call.id] = call
        self._tasks.start_soon(self._give_up_later, call, asked)
        state = _State(call=call.id, questions=asked.questions.digest)
        return types.InputRequiredResult(
            input_requests=dict(asked.questions.requests), request_state=state.model_dump_json()
        )

    async def _give_up_later(self, call: _Call, asked: _Asked) -> None:
        with anyio.move_on_after(self._wait_seconds) as waiting:
            await asked.answered.wait()
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

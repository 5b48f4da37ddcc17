"""Answers of repeatable calls, so that a search does not ask an upstream the same thing twice.

What may be remembered is the effect policy's word (`catalog.effects.Decision.memoise`); this module
owns the key, the sharing of calls in flight, the state epochs and the size bound.
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from catalog.canonical import JsonValue, digest
from catalog.effects import Effect
from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind
from catalog.tools import ToolId
from server.execution.calls import Answer

__all__ = ["CallMemory", "MemoKey", "is_repeatable"]

LIMIT_BYTES = 128 * 1024 * 1024

_REFUSED_UNSEEN = frozenset({FailureKind.UNKNOWN_TOOL, FailureKind.INVALID_ARGUMENT})
_WORLD = frozenset({FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE, FailureKind.DENIED})


def is_repeatable(outcome: CallOutcome, effect: Effect) -> bool:
    """Return whether an equal call would come to the same, so that it need not be made.

    A success would, of a tool that may be remembered at all. A failure would when it says something
    about the arguments: any of a pure tool, a refusal before any effect of a reading one. What the
    world did says nothing.
    """
    if isinstance(outcome, CallSuccess):
        return True
    if effect is Effect.PURE:
        return outcome.kind not in _WORLD
    return outcome.kind in _REFUSED_UNSEEN


@dataclass(frozen=True, slots=True)
class MemoKey:
    """What makes two calls the same (`CONTRACTS`, Effects). `arguments` is a digest."""

    principal: str
    contract_hash: str
    tool: ToolId
    arguments: str
    epoch: int


@dataclass(slots=True)
class _Flight:
    """A call on its way; `answer` stays None when it ended without one."""

    landed: anyio.Event = field(default_factory=anyio.Event)
    answer: Answer | None = None


class CallMemory:
    """Remembered answers, least recently used first to go.

    Args:
        limit_bytes: JSON size of all answers that are kept; a larger single answer is not kept.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[MemoKey, tuple[Answer, int]] = OrderedDict()
        self._flights: dict[MemoKey, _Flight] = {}
        self._epochs: Counter[str] = Counter()
        self.bytes = 0
        """JSON size of what is kept now."""

    def key(
        self, principal: str, contract_hash: str, tool: ToolId, arguments: dict[str, JsonValue]
    ) -> MemoKey:
        """Return the key of a call in its server's present epoch."""
        return MemoKey(principal, contract_hash, tool, digest(arguments), self._epochs[tool.server])

    def advance(self, server: str) -> None:
        """Begin a new state epoch of a server: something that is not free may have run on it."""
        self._epochs[server] += 1

    async def answer(self, key: MemoKey, make: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the remembered answer, that of an equal call on its way, or a new one.

        Args:
            key: identity of the call.
            make: makes the call; not called when an answer stands in.
        """
        while True:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return _from_memory(kept[0])
            flight = self._flights.get(key)
            if flight is None:
                return await self._lead(key, make)
            await flight.landed.wait()
            if flight.answer is not None:
                return _from_memory(flight.answer)

    async def _lead(self, key: MemoKey, make: Callable[[], Awaitable[Answer]]) -> Answer:
        flight = self._flights[key] = _Flight()
        try:
            answer = await make()
            if is_repeatable(answer.outcome, answer.effect):
                flight.answer = answer
                self._keep(key, answer)
            return answer
        finally:
            del self._flights[key]
            flight.landed.set()

    def _keep(self, key: MemoKey, answer: Answer) -> None:
        size = _size(answer.outcome)
        if size > self._limit_bytes:
            return
        self._kept[key] = (answer, size)
        self.bytes += size
        while self.bytes > self._limit_bytes:
            _, (_, dropped) = self._kept.popitem(last=False)
            self.bytes -= dropped


def _from_memory(answer: Answer) -> Answer:
    return Answer(answer.outcome, answer.effect, from_memory=True, calls=0)


def _size(outcome: CallOutcome) -> int:
    if outcome.large_bytes is not None:
        return outcome.large_bytes
    message = outcome.message if isinstance(outcome, CallFailure) else ""
    return len(json.dumps([outcome.structured, outcome.content, message]))

"""Conversations with a model as values: a generator yields requests and receives completions.

The turns of a planner, judge or writer are thereby tested without a backend, and what they cost is
counted in one place. Law 8 of the house style.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeVar

from server.backends.backend import Backend, Completion, Request, Usage

__all__ = ["Conversation", "Spent", "Turn", "converse"]

_T = TypeVar("_T")

Conversation = Generator[Request, Completion, _T]
"""Yields what is asked, receives what was answered, returns what came of it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request with its completion."""

    request: Request
    completion: Completion


@dataclass
class Spent:
    """What was asked of a model so far; `turns` in order."""

    turns: list[Turn] = field(default_factory=list[Turn])

    def add(self, request: Request, completion: Completion) -> None:
        """Count one turn."""
        self.turns.append(Turn(request, completion))

    @property
    def usage(self) -> Usage:
        """Tokens of all turns."""
        total = Usage()
        for turn in self.turns:
            total += turn.completion.usage
        return total

    @property
    def seconds(self) -> float:
        """Time the backend took, its retries included."""
        return sum(turn.completion.seconds for turn in self.turns)

    @property
    def cost_usd(self) -> float | None:
        """Sum of the known prices, None when any is not known."""
        prices = [turn.completion.cost_usd for turn in self.turns]
        known = [price for price in prices if price is not None]
        return sum(known) if len(known) == len(prices) else None


async def converse(backend: Backend, conversation: Conversation[_T], spent: Spent | None = None) -> _T:
    """Hold a conversation to its end and return what came of it.

    Args:
        backend: who answers.
        conversation: just begun.
        spent: where the turns are counted.

    Raises:
        BackendError: the model could not answer.
    """
    try:
        request = next(conversation)
        while True:
            completion = await backend.complete(request)
            if spent is not None:
                spent.add(request, completion)
            request = conversation.send(completion)
    except StopIteration as end:
        return end.value
    finally:
        conversation.close()

"""Conversations with a model as values, and the meter that every model's use goes through.

A generator yields requests and receives completions (law 8 of the house style): its turns are
tested without a backend. The meter counts what was spent and lets no request through that could
pass a budget of tokens.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeVar

from server.backends.backend import Backend, Completion, Request, Usage
from server.backends.errors import BackendError

__all__ = ["Conversation", "MeteredBackend", "TokensSpent", "Turn", "converse"]

_T = TypeVar("_T")

Conversation = Generator[Request, Completion, _T]
"""Yields what is asked, receives what was answered, returns what came of it."""


class TokensSpent(BackendError):  # noqa: N818
    """A request was not sent, since it could have passed the budget of tokens."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request with its completion."""

    request: Request
    completion: Completion


@dataclass
class MeteredBackend:
    """A backend whose use is counted, and bounded where there is a limit."""

    inner: Backend
    limit: int | None = None
    """Tokens, prompts and answers together; None: any number."""
    turns: list[Turn] = field(default_factory=list[Turn])

    @property
    def name(self) -> str:
        """Of the backend behind it."""
        return self.inner.name

    @property
    def samples(self) -> bool:
        """Of the backend behind it."""
        return self.inner.samples

    @property
    def context_tokens(self) -> int | None:
        """Of the backend behind it."""
        return self.inner.context_tokens

    async def complete(self, request: Request) -> Completion:
        """Return the model's answer, counted.

        Raises:
            TokensSpent: the answer could pass the limit; nothing was sent.
            BackendError: nothing usable came.
        """
        if self.limit is not None:
            prompt = await self.count_tokens("\n".join(message.text for message in request.messages))
            needed, left = prompt + request.n * request.max_output_tokens, self.limit - self.usage.total
            if needed > left:
                raise TokensSpent(f"the budget of tokens: {left} are left, and an answer may take {needed}")
        completion = await self.inner.complete(request)
        self.turns.append(Turn(request, completion))
        return completion

    async def count_tokens(self, text: str) -> int:
        """Return how many tokens a text has."""
        return await self.inner.count_tokens(text)

    @property
    def usage(self) -> Usage:
        """Tokens of all turns."""
        return sum((turn.completion.usage for turn in self.turns), Usage())


async def converse(backend: Backend, conversation: Conversation[_T]) -> _T:
    """Hold a conversation, just begun, to its end and return what came of it.

    Raises:
        BackendError: the model could not answer.
    """
    try:
        request = next(conversation)
        while True:
            request = conversation.send(await backend.complete(request))
    except StopIteration as end:
        return end.value
    finally:
        conversation.close()

"""What a model answered within a job, in the journal of its calls: after a restart it is not asked again.

A request to a model stands in the journal as a free call, so the same request is answered in the order in
which it was asked; with it a resumed job comes to the plan that it had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import anyio
from pydantic import JsonValue, TypeAdapter

from catalog.effects import Effect
from catalog.result import CallOutcome, CallSuccess
from catalog.tools import ToolId
from server.backends.backend import Completion, Offer, Request, Wire
from server.execution.calls import CallRequest
from server.execution.journal import Journal, journaled

__all__ = ["JournaledBackend"]

_completions: TypeAdapter[Completion] = TypeAdapter(Completion)
_requests: TypeAdapter[Request] = TypeAdapter(Request)


@dataclass(frozen=True, slots=True)
class JournaledBackend:
    """A backend whose answers are kept with a job, and taken from there after a restart."""

    inner: Wire
    journal: Journal

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
        """Return the model's answer, or the one that an earlier process of this job got.

        Raises:
            BackendError: nothing usable came.
            JobTakenOver: another process goes on with the job.
        """
        arguments = cast("dict[str, JsonValue]", _requests.dump_python(request, mode="json"))
        # A bound of time follows from when it is asked, not from what is asked.
        del arguments["deadline_seconds"]
        asked = CallRequest("model", None, ToolId("skillbank", self.name), arguments)

        async def ask() -> CallOutcome:
            started = anyio.current_time()
            completion = await self.inner.complete(request)
            wire = cast("JsonValue", _completions.dump_python(completion, mode="json"))
            return CallSuccess(wire, [], anyio.current_time() - started)

        outcome = await journaled(self.journal, asked, Effect.READ, ask)
        if not isinstance(outcome, CallSuccess):
            raise TypeError("a model's answer is kept as a success only")
        return _completions.validate_python(outcome.structured)

    async def count_tokens(self, text: str) -> int:
        """Return how many tokens a text has."""
        return await self.inner.count_tokens(text)

    async def examine(self) -> Offer:
        """Return what the model offers."""
        return await self.inner.examine()

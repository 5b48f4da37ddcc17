"""The model of an MCP client, lent for the length of one call.

All alternatives of a request are asked for at once, so that a call of the 2026-07-28 era goes one
round for each generation of proposals. How a client is asked belongs to the surface.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio

from server.backends.backend import Completion, Offer, Request, Stop
from server.backends.errors import BackendTimeout, BackendUnavailable, SamplingUnsupported
from server.backends.estimate import estimate_tokens, estimated_usage

__all__ = ["SAMPLING_REMEDY", "Lent", "Sampler", "SamplingBackend"]

SAMPLING_REMEDY = (
    "set a model of your own under 'skillbank.models' in the configuration, such as anthropic:MODEL "
    "with ANTHROPIC_API_KEY, or local:NAME"
)


@dataclass(frozen=True, slots=True)
class Lent:
    """One answer of a client's model."""

    text: str
    model: str
    stop: Stop = "end"


Sampler = Callable[[Request], Awaitable[Sequence[Lent]]]
"""Asks the client's model once for all alternatives of a request; fewer when its user declines some.

Raises:
    BackendUnavailable: the client did not answer, or its user declined.
"""


class SamplingBackend:
    """Asks the client behind a call.

    Args:
        sampler: None: there is no client, or it has no model to lend.

    Raises:
        SamplingUnsupported: there is no sampler.
    """

    name = "sampling"
    samples = True
    context_tokens = None

    def __init__(self, sampler: Sampler | None) -> None:
        if sampler is None:
            raise SamplingUnsupported(
                f"sampling: no MCP client that lends its model is behind this call: {SAMPLING_REMEDY}"
            )
        self._sampler = sampler

    async def complete(self, request: Request) -> Completion:
        """Return the answers of the client's model.

        Raises:
            BackendError: it did not answer.
        """
        started = anyio.current_time()
        try:
            with anyio.fail_after(request.deadline_seconds):
                answers = await self._sampler(request)
        except TimeoutError:
            raise BackendTimeout(
                f"sampling: the client's model did not answer within {request.deadline_seconds:g} s"
            ) from None
        if not answers:
            raise BackendUnavailable(f"sampling: the client's user declined: {SAMPLING_REMEDY}")
        return Completion(
            texts=tuple(answer.text for answer in answers),
            stops=tuple(answer.stop for answer in answers),
            model=answers[0].model,
            usage=estimated_usage(request, (answer.text for answer in answers), prompts=len(answers)),
            seconds=anyio.current_time() - started,
        )

    async def count_tokens(self, text: str) -> int:
        """Return an estimate: the client's model is not known."""
        return estimate_tokens(text)

    async def examine(self) -> Offer:
        """Return that nothing is enforced."""
        return Offer("none", "the client's model; answers are validated only")

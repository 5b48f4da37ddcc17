"""A backend that says what it was told to say: the double for tests, demos and benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from server.backends.backend import Completion, Constraint, Offer, Request
from server.backends.errors import BackendError, BackendUnavailable
from server.backends.estimate import estimate_tokens, estimated_usage

__all__ = ["Answer", "ScriptedBackend"]

Answer = str | Sequence[str] | Completion | BackendError
"""A text, alternatives, a whole completion, or the error that is raised."""


class ScriptedBackend:
    """Answers from a script and keeps what it was asked.

    Args:
        script: answers in the order of the requests, or a function from a request to its answer.
        name: as if it were configured.
        samples: whether it says that a temperature has an effect.
        context_tokens: as it says.
        constraint: what it says it enforces of a structured answer.

    Attributes:
        requests: every request, in order.
    """

    def __init__(
        self,
        script: Iterable[Answer] | Callable[[Request], Answer],
        *,
        name: str = "scripted:model",
        samples: bool = True,
        context_tokens: int | None = None,
        constraint: Constraint = "schema",
    ) -> None:
        self.name = name
        self.samples = samples
        self.context_tokens = context_tokens
        self.requests: list[Request] = []
        self._constraint: Constraint = constraint
        self._say = script if callable(script) else _in_order(iter(script), name)

    async def complete(self, request: Request) -> Completion:
        """Return the next answer of the script.

        Raises:
            BackendError: the script says so, or is at its end.
        """
        self.requests.append(request)
        answer = self._say(request)
        if isinstance(answer, BackendError):
            raise answer
        if isinstance(answer, Completion):
            return answer
        texts = (answer,) * request.n if isinstance(answer, str) else tuple(answer)
        return Completion(
            texts=texts,
            stops=("end",) * len(texts),
            model=self.name,
            usage=estimated_usage(request, texts),
            constraint="none" if request.schema is None else self._constraint,
        )

    async def count_tokens(self, text: str) -> int:
        """Return an estimate."""
        return estimate_tokens(text)

    async def examine(self) -> Offer:
        """Return what it says it offers."""
        return Offer(self._constraint, "scripted", self.context_tokens)


def _in_order(answers: Iterator[Answer], name: str) -> Callable[[Request], Answer]:
    def say(request: Request) -> Answer:
        del request
        return next(answers, None) or BackendUnavailable(f"{name}: the script has no further answer")

    return say

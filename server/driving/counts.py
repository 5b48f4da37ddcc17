"""Tokens of texts for one model: by its own tokenizer where that can be asked, else estimated."""

from __future__ import annotations

from dataclasses import dataclass, field

from server.backends.backend import Backend
from server.backends.errors import BackendError
from server.backends.estimate import estimate_tokens
from server.context.events import EventLog
from server.context.policy import ContextPolicy
from server.context.render import Rendered, render

__all__ = ["TokenCounts"]

_ROUNDS = 4


@dataclass
class TokenCounts:
    """Counts that were asked for, so that rendering itself asks nobody."""

    model: Backend
    known: dict[str, int] = field(default_factory=dict[str, int])
    missed: set[str] = field(default_factory=set[str])
    is_estimated: bool = False
    """Whether the model's tokenizer could not be asked."""

    def __call__(self, text: str) -> int:
        """Return the tokens of a text; one that was never asked about is estimated, and noted."""
        if text not in self.known:
            self.missed.add(text)
            return estimate_tokens(text)
        return self.known[text]

    async def rendered(self, log: EventLog, policy: ContextPolicy) -> Rendered:
        """Return the rendered log, its bounds kept by the model's own tokens."""
        for _ in range(_ROUNDS):
            self.missed.clear()
            shown = render(log, policy, self)
            if not self.missed:
                return shown
            await self._learn()
        return render(log, policy, self)

    async def _learn(self) -> None:
        for text in self.missed:
            try:
                self.known[text] = await self.model.count_tokens(text)
            except BackendError:
                self.is_estimated = True
                self.known[text] = estimate_tokens(text)

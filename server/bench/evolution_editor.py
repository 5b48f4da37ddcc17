"""A model's edits on tape: found again by what was asked, since a search may ask in another order.

How a plan's tape is read by turn is `planning_tape`; here several requests are under way at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from server.backends.backend import Backend, Completion, Request, Usage
from server.bench.planning_tape import Answer, NotRecorded, Tape, request_digest

__all__ = ["EditorTape"]

_CHARACTERS_PER_TOKEN = 3.4
_VOLATILE = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
"""What differs from run to run in answers of tools: ids of connections and cursors."""


@dataclass
class EditorTape:
    """A backend that edits one plan under one condition: off the tape, else by asking, and kept then."""

    tape: Tape
    condition: str
    plan: str
    live: Backend | None = None
    hidden: Mapping[str, str] = field(default_factory=dict[str, str])
    """Texts of this run by the names that stand for them on the tape."""
    replayed_seconds: float = 0.0
    """That the model took for the answers found on the tape."""
    missed: int = 0
    """Requests to which no answer was recorded."""
    _used: set[int] = field(default_factory=set[int])

    @property
    def name(self) -> str:
        """The model that answers, or answered."""
        return self.live.name if self.live else f"recorded:{self.tape.about.model}"

    @property
    def samples(self) -> bool:
        """As when it was recorded."""
        return self.tape.about.samples

    @property
    def context_tokens(self) -> int | None:
        """As when it was recorded."""
        return self.tape.about.context_tokens

    async def complete(self, request: Request) -> Completion:
        """Return the answer to an equal request, each once; else the live one.

        Raises:
            NotRecorded: it is not on the tape and nobody can be asked.
            BackendError: the live one's.
        """
        digest = request_digest(request, lambda text: _VOLATILE.sub("*", self._hiding(text)))
        known = self._recorded(digest)
        if known is not None:
            self._used.add(known.turn)
            self.replayed_seconds += known.seconds
            return Completion(
                texts=tuple(self._showing(text) for text in known.texts),
                stops=known.stops,
                model=self.tape.about.model,
                usage=Usage(known.input_tokens, known.cached_tokens, known.output_tokens),
                seconds=known.seconds,
                constraint=known.constraint,
            )
        if self.live is None:
            self.missed += 1
            raise NotRecorded(f"{self.name}: no answer for {self.plan!r} ({self.condition}) was recorded")
        turn = 1 + max((a.turn for a in self._answers()), default=-1)
        self._used.add(turn)
        placeholder = self._answer(turn, digest)
        self.tape.answers[self.condition, self.plan, turn] = placeholder
        try:
            completion = await self.live.complete(request)
        except BaseException:
            del self.tape.answers[self.condition, self.plan, turn]
            raise
        self.tape.keep(
            placeholder.model_copy(
                update={
                    "texts": tuple(self._hiding(text) for text in completion.texts),
                    "stops": completion.stops,
                    "input_tokens": completion.usage.input_tokens,
                    "cached_tokens": completion.usage.cached_tokens,
                    "output_tokens": completion.usage.output_tokens,
                    "seconds": round(completion.seconds, 3),
                    "constraint": completion.constraint,
                }
            )
        )
        return completion

    async def count_tokens(self, text: str) -> int:
        """Return an estimate: what bounds a search must not depend on who answers."""
        return int(len(text) / _CHARACTERS_PER_TOKEN) + 1

    def _hiding(self, text: str) -> str:
        for name, value in self.hidden.items():
            text = text.replace(value, name)
        return text

    def _showing(self, text: str) -> str:
        for name, value in self.hidden.items():
            text = text.replace(name, value)
        return text

    def _answers(self) -> list[Answer]:
        return [
            answer
            for (condition, plan, _), answer in self.tape.answers.items()
            if condition == self.condition and plan == self.plan
        ]

    def _recorded(self, digest: str) -> Answer | None:
        found = (a for a in self._answers() if a.prompt == digest and a.turn not in self._used and a.texts)
        return min(found, key=lambda answer: answer.turn, default=None)

    def _answer(self, turn: int, digest: str) -> Answer:
        return Answer(
            condition=self.condition,
            task=self.plan,
            turn=turn,
            prompt=digest,
            texts=(),
            stops=(),
            input_tokens=0,
            output_tokens=0,
            seconds=0.0,
        )

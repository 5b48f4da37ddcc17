"""Messages with their authors: what is sent to a model, and which part of it somebody else wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from server.backends.backend import Message

__all__ = ["Author", "Span", "Spoken", "spoken"]

Author = Literal["instruction", "user", "model", "tool", "driver"]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a message's text that an experience unit put there: characters from `start` to `end`."""

    start: int
    end: int
    unit: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """One message, who wrote it, and what of it is experience."""

    role: Literal["system", "user", "assistant"]
    text: str
    author: Author
    spans: tuple[Span, ...] = ()

    @property
    def message(self) -> Message:
        """As a backend takes it."""
        return Message(self.role, self.text)

    def without_experience(self) -> Spoken:
        """Return the message exactly as it would be without what experience units added."""
        text, end = "", 0
        for span in sorted(self.spans, key=lambda one: one.start):
            text += self.text[end : span.start]
            end = span.end
        return Spoken(self.role, text + self.text[end:], self.author)


def spoken(role: Literal["system", "user", "assistant"], text: str, author: Author) -> Spoken:
    """Return a message without spans."""
    return Spoken(role, text, author)

"""Where experience stands in a prompt, and how it is taken out again: exactly, by place, never by pattern.

Paper: AgentEvolver (experience stripping; facts §4.3). Differs: the paper finds its marks by a regular
expression, which a text that holds such a mark breaks; here the places are kept when the text is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["ExperienceSpan", "stripped"]


@dataclass(frozen=True, slots=True)
class ExperienceSpan:
    """One unit in one message: characters from `start` to before `end`."""

    message: int
    """Index of the message."""
    start: int
    end: int
    unit: str
    """Id of the unit; empty for the lead above them, which goes when they go."""

    def __post_init__(self) -> None:
        if self.message < 0 or not 0 <= self.start < self.end:
            raise ValueError(f"no place in a prompt: {self}")


def stripped(texts: Sequence[str], spans: Iterable[ExperienceSpan]) -> tuple[str, ...]:
    """Return messages without what stands in the spans, all else as it was, character for character.

    Raises:
        ValueError: a span is not in its message, or two overlap.
    """
    found = list(texts)
    end: dict[int, int] = {}
    for span in sorted(spans, key=lambda span: (span.message, -span.start)):
        if span.message >= len(found) or span.end > min(
            len(texts[span.message]), end.get(span.message, span.end)
        ):
            raise ValueError(f"{span} is not in the messages, or overlaps another one")
        text = found[span.message]
        found[span.message] = text[: span.start] + text[span.end :]
        end[span.message] = span.start
    return tuple(found)

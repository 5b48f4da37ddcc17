"""Bounds of one drive, and how its context is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from server.context.policy import ContextPolicy

__all__ = ["DriveOptions"]


@dataclass(frozen=True, slots=True)
class DriveOptions:
    """What a model may spend on one task, beside a budget's seconds and tokens."""

    steps: int = 30
    """Answers of the model at most. Source: AgentEvolver's `max_steps`."""
    unreadable: int = 3
    """Answers in a row that may be no step."""
    repeats: int = 3
    """Steps in a row that may bring nothing new before it is called a loop."""
    answer_tokens: int = 400
    deadline_seconds: float = 120.0
    """Of one answer."""
    preview: int = 1_200
    """Characters of a result that are shown at once; the rest is read by pointer."""
    policy: ContextPolicy = field(default_factory=ContextPolicy)

    def __post_init__(self) -> None:
        if min(self.steps, self.unreadable, self.repeats, self.answer_tokens, self.preview) < 1:
            raise ValueError("steps, unreadable, repeats, answer_tokens and preview are at least 1")

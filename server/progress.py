"""What a use case says while it works, as values; showing them belongs to each border.

The command line draws a line on stderr, the MCP surface sends progress notifications.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Progress", "ProgressListener", "ignore_progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """One moment of a use case.

    `stage` is a short stable word (`connect`, `plan`, `run`, `repair`, `compile`, `admit`, `publish`);
    `message` says in words what is happening.
    """

    stage: str
    message: str
    candidates: int = 0
    """Candidates evaluated so far, 0 outside of a search."""
    calls: int = 0
    """Upstream calls so far."""
    best: float | None = None
    """Best score so far in [0, 1], None outside of a search."""
    generation: int | None = None
    """Of a population, None where there is none."""
    intensity: float | None = None
    """Chance of exploring in [0, 1], None where there is no population."""
    faults_left: int | None = None
    """Of the best so far, None outside of a search."""


class ProgressListener(Protocol):
    """Receives progress; is called from the event loop, returns at once, and never raises."""

    def __call__(self, progress: Progress, /) -> None: ...


def ignore_progress(progress: Progress, /) -> None:
    """Show nothing."""
    del progress

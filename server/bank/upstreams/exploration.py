"""What is asked of an exploration: a value that a listing can name without loading what explores."""

from __future__ import annotations

from dataclasses import dataclass, field

from server.exploration.options import ExplorationOptions

__all__ = ["Exploration"]


@dataclass(frozen=True, slots=True)
class Exploration:
    """What is to be explored: a server, how, and which of its tools (None: all that may be)."""

    server: str
    options: ExplorationOptions = field(default_factory=ExplorationOptions)
    only: frozenset[str] | None = None
    learn: bool = True
    """Whether skills are made of the tasks."""

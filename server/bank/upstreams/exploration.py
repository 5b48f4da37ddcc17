"""What is asked of an exploration: a value that a listing can name without loading what explores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from server.exploration.options import ExplorationOptions

if TYPE_CHECKING:
    from server.exploration.tasks import ExploredTask

__all__ = ["Exploration"]


@dataclass(frozen=True, slots=True)
class Exploration:
    """What is to be explored: a server, how, and which of its tools (None: all that may be)."""

    server: str
    options: ExplorationOptions = field(default_factory=ExplorationOptions)
    only: frozenset[str] | None = None
    learn: bool = True
    """Whether skills are made of the tasks."""
    entities: Mapping[str, str] = field(default_factory=dict[str, str])
    """What each tool is about, by its name; tools that are not named are about nothing in particular."""
    reserved: int = 0
    """Held-out instances of each task that learning never sees, the last ones: for whoever measures it."""
    made: tuple[ExploredTask, ...] = ()
    """Tasks that there are already; near-duplicates of them are not made again."""

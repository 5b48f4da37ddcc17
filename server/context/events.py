"""The event log of one task: what was asked, thought, called and answered, in order, never edited.

A result has a name (`r1`, `r2`, …) under which later steps read it, whole or by pointer, whether or not
it is still shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "Decision",
    "Event",
    "EventLog",
    "Experience",
    "Instruction",
    "ModelTurn",
    "Note",
    "Plan",
    "Problem",
    "Recalled",
    "Result",
    "Selection",
    "Task",
]

Decision = Literal["keep", "compress", "drop"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """The rules and tools that stand first, byte for byte the same in every request."""

    text: str


@dataclass(frozen=True, slots=True)
class Task:
    """The task in a person's words, with its inputs."""

    text: str


@dataclass(frozen=True, slots=True)
class Experience:
    """A rule of thumb from the bank, told before the first step. `unit` names where it is kept."""

    unit: str
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What the model set out to do. The last one holds."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """What the model said in one step: a thought, and what it does."""

    action: str
    """The step without its thought, as the model wrote it or as it was read."""
    thought: str = ""
    reads: frozenset[str] = frozenset()
    """Names of the results that it refers to."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered."""

    name: str
    text: str
    """As shown in full."""
    size: int
    """Characters of the whole value, of which `text` may be a preview."""
    keys: tuple[str, ...] = ()
    """Of an object, what can be read of it."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A result that the model asked to see again."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A step that failed or could not be taken, with the remedy. Never dropped."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """Anything else that the driver tells the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Selection:
    """What the model decided of earlier results when it was asked to tidy up."""

    decisions: tuple[tuple[str, Decision], ...]
    summaries: tuple[tuple[str, str], ...] = ()
    """Its own words for those it compresses."""


Event = Instruction | Task | Experience | Plan | ModelTurn | Result | Recalled | Problem | Note | Selection


@dataclass
class EventLog:
    """The events of a task. It only grows."""

    _events: list[Event] = field(default_factory=list[Event])

    def add(self, event: Event) -> None:
        """Append an event."""
        self._events.append(event)

    @property
    def events(self) -> tuple[Event, ...]:
        """All of them, oldest first."""
        return tuple(self._events)

    def results(self) -> Iterator[Result]:
        """Yield the results, oldest first."""
        return (event for event in self._events if isinstance(event, Result))

    def next_name(self) -> str:
        """Return the name of the next result."""
        return f"r{sum(1 for _ in self.results()) + 1}"

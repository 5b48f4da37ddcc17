"""What a use case is asked for, as values: built by the command line and the MCP surface alike.

The answers are `server.reports`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from catalog.config import ModelSpec
from catalog.tools import ToolId
from server.reports import Route
from server.verification import Checks

if TYPE_CHECKING:
    from server.driving.options import DriveOptions
    from server.evolution.options import SearchOptions

__all__ = ["Budget", "RepairRequest", "SaveCodeRequest", "SaveRequest", "SolveRequest"]


def _default_search() -> SearchOptions:
    # A server that only lists and calls never searches, so it does not load what does.
    from server.evolution.options import SearchOptions

    return SearchOptions()


@dataclass(frozen=True, slots=True)
class Budget:
    """What a search may spend; whichever is spent first ends it.

    Zero of anything but tokens means that nothing is tried: the original is checked and returned.
    """

    seconds: float = 60.0
    calls: int = 200
    """Upstream calls; answers from memory are not counted."""
    candidates: int = 400
    tokens: int = 60_000
    """Of a model, prompts and answers together; zero means that no model is asked."""

    def after(self, seconds: float) -> Budget:
        """Return what is left of it once so many seconds were spent."""
        return replace(self, seconds=max(0.0, self.seconds - seconds))

    def __post_init__(self) -> None:
        if not (self.seconds >= 0 and self.calls >= 0 and self.candidates >= 0 and self.tokens >= 0):
            raise ValueError("a budget cannot be negative")


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """How a failing workflow is to be repaired, and what counts as right."""

    task: str | None = None
    """The task in a person's words, None when none was given."""
    inputs: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    checks: Checks = field(default_factory=Checks)
    budget: Budget = Budget()
    save: str | None = None
    """Name of the skill to compile and admit on success, None to keep nothing."""
    allow: tuple[str, ...] = ()
    """`SERVER/TOOL` patterns of tools that are not free and may run once without asking."""
    model: ModelSpec | None = None
    """For every role of this run, None: as configured."""
    examples: tuple[Mapping[str, JsonValue], ...] = ()
    """Other inputs known to be valid, on which a saved skill is tried. The search never sees them."""
    search: SearchOptions = field(default_factory=_default_search)
    """Strategy, seed and constants of the search."""
    record: Path | None = None
    """File in which every candidate is written down as it is evaluated, None: nowhere."""
    resume: Path | None = None
    """Record of an earlier search that is gone on with, None: begin anew."""
    judge: bool = False
    """Whether a model scores candidates that ran, within the budget of tokens; it orders them, no more."""


@dataclass(frozen=True, slots=True)
class SolveRequest:
    """How a task in words is to be solved, and what counts as right."""

    inputs: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    checks: Checks = field(default_factory=Checks)
    budget: Budget = Budget()
    save: str | None = None
    """Name of the skill to compile and admit on success, None to let admission choose."""
    route: Route | None = None
    """The route to take, None to choose by what the bank knows."""
    model: ModelSpec | None = None
    """For every role of this run, None: as configured."""
    allow: tuple[str, ...] = ()
    """`SERVER/TOOL` patterns of tools that are not free and may run once without asking."""
    answer: bool = False
    """Whether the outputs are to be put into words."""
    judge: bool = False
    """Whether a model is to score the run; advice, never proof."""
    experiences: tuple[str, ...] = ()
    """Rules of thumb for a model that plans: each says when and what."""
    skills: tuple[str, ...] = ()
    """Compact views of skills that are like the task, for a model that plans."""
    drive: DriveOptions | None = None
    """How a model is driven step by step, None: it plans."""


@dataclass(frozen=True, slots=True)
class SaveRequest:
    """What was worked out already and is to be kept as a skill."""

    name: str
    """Of the skill."""
    recording: str | None = None
    """Conversation whose calls are compiled. Neither this nor `trace`: what was done last."""
    trace: str | None = None
    """Run that is compiled."""
    calls: tuple[int, ...] = ()
    """Numbers of the conversation's calls that belong to the skill, from 1; empty: all of them."""
    task: str | None = None
    """The task in a person's words; the values it says become inputs."""
    inputs: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Values that become inputs, by the names they shall have."""
    examples: tuple[Mapping[str, JsonValue], ...] = ()
    """Other inputs known to be valid, on which the skill is tried."""


@dataclass(frozen=True, slots=True)
class SaveCodeRequest:
    """A Python function that is to become a skill."""

    name: str
    """Of the skill."""
    source: str
    """Text of a module."""
    tests: str
    """Text of its tests: asserts of the form `assert f(…) == …`, or a JSON list."""
    entry: str | None = None
    """The function that is called, None: the last one that is not private."""
    tools: Mapping[str, ToolId] = field(default_factory=dict[str, ToolId])
    """By the name it calls them under, the tools it is granted; empty: it is pure."""
    task: str | None = None
    """The task in a person's words, None when none was given."""

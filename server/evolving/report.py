"""What evolving answers, as data: the stable keys of `skillbank evolve SERVER --json`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from server.exploration.tasks import ExploredTask

__all__ = ["EvolveReport", "RoundReport", "TaskStanding"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RoundReport(_Record):
    """What one round brought."""

    number: int
    explored: dict[str, int] = Field(default_factory=dict[str, int])
    """Tasks with assertions that exploring made, by server."""
    problems: dict[str, str] = Field(default_factory=dict[str, str])
    """Servers that could not be explored, with why."""
    picked_user: int = 0
    picked_synthetic: int = 0
    attempts: int = 0
    solved: int = 0
    by_skill: int = 0
    """Solved attempts that a skill made, without a plan."""
    judged: int = 0
    """Attempts that a model told of by the reference, since no check can tell their answers."""
    stopped_by_world: int = 0
    """Attempts that say nothing: the server or a person stood in the way."""
    taught: tuple[str, ...] = ()
    """Tasks whose reference was learned from, since attempts at them failed."""
    not_taught: dict[str, str] = Field(default_factory=dict[str, str])
    """Tasks that could not be, with why."""
    skills: tuple[str, ...] = ()
    """Skills that are in use at its end and were not at its beginning."""
    lessons: int = 0
    """Lessons more than at its beginning; fewer where some were dropped."""
    examined: int = 0
    """Instances never practised and never taught that were tried at the round's end."""
    examined_right: int = 0
    calls: int = 0
    seconds: float = 0.0


class TaskStanding(_Record):
    """One task at the end."""

    id: str
    task: str
    is_synthetic: bool
    attempts: int
    right: int
    estimate: float
    """Estimated success in (0, 1)."""
    examined: bool | None
    """Whether the instance kept for examining came right; None: it was not tried, or there is none."""


class EvolveReport(_Record):
    """What all rounds came to."""

    servers: tuple[str, ...]
    rounds: tuple[RoundReport, ...]
    tasks: tuple[TaskStanding, ...] = ()
    made: tuple[ExploredTask, ...] = ()
    """Tasks that exploring made, those included that only a judge can tell."""
    mix: float
    """Share of user tasks that was asked for."""
    calls: int
    budget_calls: int
    seconds: float
    stopped: str | None = None
    """Why it ended early, None where all rounds were held."""
    files: dict[str, str] = Field(default_factory=dict[str, str])
    """What was written, by what it is."""

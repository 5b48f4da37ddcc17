"""What an exploration answers, as data: the stable keys of `skillbank explore SERVER --json`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from server.exploration.coverage import Coverage
from server.exploration.health.findings import HealthReport
from server.exploration.tasks import ExploredTask

__all__ = ["ExplorationPlan", "ExplorationReport", "ExploredSkill", "PlannedTool", "Taught"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlannedTool(_Record):
    """A tool that may be called, and why."""

    name: str
    effect: str
    reason: str


class ExplorationPlan(_Record):
    """What an exploration would do, shown before it does anything."""

    server: str
    command: str
    """What is started, placeholders as written."""
    budget_calls: int
    calls_per_second: float
    reset: str
    tools: tuple[PlannedTool, ...]
    withheld: dict[str, str] = Field(default_factory=dict[str, str])
    """Tools that are never called, with the reason."""
    model: str | None = None
    """Who proposes calls and words tasks, None: nobody, all of it is deterministic."""
    style: str = ""
    """How a model is to word tasks."""
    learns: bool = True
    """Whether skills are made, which runs tasks again beyond the budget."""


class ExploredSkill(_Record):
    """A skill that came of a task, by the normal admission."""

    name: str
    state: str
    reason: str
    task: str


class Taught(_Record):
    """What learning one explored task came to."""

    task: str
    skill: ExploredSkill | None = None
    lessons: int = 0
    calls: int = 0
    """That its reference made; what admission replays is not among them."""
    reason: str = ""
    """Why nothing was learned, empty when it was."""


class ExplorationReport(_Record):
    """What an exploration came to."""

    server: str
    coverage: Coverage
    health: HealthReport
    tasks: tuple[ExploredTask, ...] = ()
    drafts: int = 0
    dropped: dict[str, int] = Field(default_factory=dict[str, int])
    """Drafts that became no task, by reason."""
    skills: tuple[ExploredSkill, ...] = ()
    refused: tuple[ExploredSkill, ...] = ()
    """Skills that admission left in `shadow`, with why: such as a task whose inputs change nothing."""
    lessons: int = 0
    """Experience units that the tasks' runs gave or confirmed."""
    calls: int = 0
    budget_calls: int = 0
    seconds: float = 0.0
    stopped: str | None = None
    unreachable: str = ""
    """Why nothing of the server could be called, empty where it could."""
    withheld: str = ""
    """Why no tool of it may be called, with what would change that; empty where one may."""
    model: str | None = None
    model_problem: str | None = None
    files: dict[str, str] = Field(default_factory=dict[str, str])
    """What was written, by what it is."""

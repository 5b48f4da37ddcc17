"""What the demo came to, as data: the stable keys of `skillbank demo --json`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, JsonValue

from server.demo.stories import Mistake
from server.reports import ServerReport
from skills_store.skill import AdmissionVerdict, SkillState
from skills_store.trace import Status
from skills_store.workflow.edits import Edit
from skills_store.workflow.faults import Fault

__all__ = ["Called", "Connect", "DemoReport", "Skipped", "StoryReport"]


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Called(_Report):
    """How a client's call of a finished skill went, on inputs nothing had seen before."""

    arguments: dict[str, JsonValue]
    result: dict[str, JsonValue] | None
    assertions: tuple[str, ...]
    right: bool
    """Whether the skill was listed, answered, and the answer fulfils every assertion."""
    problem: str = ""
    """What was not right, empty when it was."""
    seconds: float = 0.0


class StoryReport(_Report):
    """One story: from the broken workflow to a tool that a client called."""

    name: str
    title: str
    task: str
    servers: tuple[str, ...]
    inputs: dict[str, JsonValue]
    assertions: tuple[str, ...]
    mistakes: tuple[Mistake, ...]
    broken: dict[str, JsonValue]
    faults: tuple[Fault, ...]
    """What checking found without running anything."""
    said: tuple[Fault, ...]
    """What servers answered on the way from the broken workflow to the repaired one."""
    edits: tuple[Edit, ...]
    diff: str
    workflow: dict[str, JsonValue]
    status: Status
    left: tuple[Fault, ...]
    """What is still wrong, empty when verified."""
    outputs: dict[str, JsonValue] | None
    calls: int
    candidates: int
    seconds: float
    """For repair, compilation and admission together."""
    verdict: AdmissionVerdict | None
    skill: str | None
    skill_state: SkillState | None
    skill_reason: str
    called: Called | None = None
    """None until a client tried."""

    @property
    def right(self) -> bool:
        """Whether everything went as it must."""
        is_admitted = self.status == "verified" and self.skill_state == "active"
        return is_admitted and self.called is not None and self.called.right


class Skipped(_Report):
    """A story that could not be told here."""

    name: str
    reason: str


class Connect(_Report):
    """How a person connects a client of their own."""

    command: str
    snippet: dict[str, JsonValue]
    note: str
    """Which configuration that serves, and how to get one."""


class DemoReport(_Report):
    """Answer of `demo`."""

    servers: tuple[ServerReport, ...]
    stories: tuple[StoryReport, ...]
    skipped: tuple[Skipped, ...]
    tools: tuple[str, ...]
    """Every tool that a client saw in `tools/list` of our own server."""
    connect: Connect
    problems: tuple[str, ...]
    """Why it is not ok, empty when it is."""
    seconds: float
    ok: bool

"""What the compile benchmark found, as data; the tables are `server.bench.compile_table`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from server.bench.tau_second import TauCause
from skills_store.skill import Skill, SkillState

__all__ = [
    "Attempt",
    "CompileBenchReport",
    "FamilyReport",
    "GateCase",
    "GateReport",
    "SelectionReport",
    "SelectionRow",
    "TauCase",
    "TauReport",
    "Way",
]

Way = Literal["one run", "two runs", "equality alone", "trace2mcp"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Attempt(_Model):
    """One way of compiling one family, against its ground truth."""

    way: Way
    compiled: bool
    state: SkillState | None = None
    """What the skill was admitted as; None where nothing is admitted by this way."""
    detail: str = ""
    """Why it is in its state, or why nothing was compiled."""
    inputs_exact: bool = False
    links_exact: bool = False
    over: int = 0
    said_constants: int = 0
    under: int = 0
    wrong_links: int = 0
    places: int = 0
    right: bool | None = None
    """Whether its answer on the third instance is the recorded one; None: the world stood in the way."""
    why_not_right: str = ""


class FamilyReport(_Model):
    """One family by every way."""

    family: str
    half: Literal["tuned", "apart"]
    kinds: tuple[str, ...]
    servers: tuple[str, ...]
    calls: int
    """Calls of its three sessions together."""
    attempts: tuple[Attempt, ...]
    skill: Skill | None = None
    """The skill after two runs, as selection and the gate use it; None: none was kept."""


class TauCase(_Model):
    """One pair of tasks of the same calls, of which the second was held out."""

    domain: str
    task: str
    held_out: str | None
    calls: int
    compiled: bool
    state: SkillState | None
    detail: str
    reproduced: bool | None
    """Whether the skill on the first task's inputs leaves the database as the reference run did."""
    right: bool | None
    """Whether it does on the second task's; None: there is no second task of these calls."""
    cause: TauCause | None = None
    """Why it does not on the second task's."""
    missed: TauCause | None = None
    """Why it does not on the first task's."""


class TauReport(_Model):
    """The reference runs of τ²-bench as a client's recorded sessions."""

    sessions: int
    skipped: int
    """Reference runs of fewer than two calls that succeed."""
    cases: tuple[TauCase, ...]


class SelectionRow(_Model):
    """What routing and finding make of tasks beside some number of distractor skills."""

    distractors: int
    tasks: int
    """Tasks that one skill is the right one for: third instances of its family."""
    direct_right: int
    direct_wrong: int
    abstained: int
    found_first: int
    """Tasks whose skill is the first that searching finds."""
    found_in_five: int
    strange: int
    """Tasks that no skill is the right one for."""
    strange_direct: int
    """Of those, how many were sent to a skill all the same: must be 0."""
    milliseconds: float
    """Processor time in which 95 of 100 tasks are routed and searched for; 0.0 for fewer than two."""


class SelectionReport(_Model):
    """Routing and finding with distractors."""

    rows: tuple[SelectionRow, ...]
    source: str
    """What the distractors are."""


class GateCase(_Model):
    """One bad candidate, and what the gate made of it."""

    kind: str
    skill: str
    detail: str
    state: SkillState
    reason: str


class GateReport(_Model):
    """Seeded bad candidates at the gate."""

    seed: int
    cases: tuple[GateCase, ...]
    unplaced: int
    """Planned candidates for which no skill had a place."""
    sound: int
    """Skills that the candidates were made of."""

    @property
    def became_active(self) -> int:
        """Return how many bad candidates the gate let through: must be 0."""
        return sum(case.state == "active" for case in self.cases)


class CompileBenchReport(_Model):
    """The whole run: every call of families and of τ²-bench went to a real tool server."""

    bench: Literal["compile"] = "compile"
    quick: bool
    seed: int
    versions: dict[str, str]
    servers: tuple[str, ...]
    traces: int
    families: tuple[FamilyReport, ...]
    tau: TauReport | None
    selection: SelectionReport | None
    gate: GateReport | None
    notes: tuple[str, ...]
    """What could not be measured, and why."""
    seconds: float

"""What the bank answers on its skills, as data: lists, one whole, moves, the review queue, tests."""

from __future__ import annotations

from pydantic import Field

from catalog.effects import Effect
from catalog.search import SearchMethod
from server.reports.base import Report
from skills_store.lifecycle import Actor
from skills_store.skill import AdmissionCheck, AdmissionVerdict, Skill, SkillState

__all__ = [
    "DeletedReport",
    "ExportReport",
    "ForgottenReport",
    "ImportReport",
    "MoveReport",
    "NeededTool",
    "PlanningSaved",
    "ReviewItem",
    "ReviewReport",
    "RunCost",
    "SavedReport",
    "ShownSkill",
    "SkillReport",
    "SkillsReport",
    "Standing",
    "TestOutcome",
    "TestReport",
    "UseReport",
]


class SkillReport(Report):
    """One skill in a listing."""

    name: str
    version: int
    state: SkillState
    reason: str = ""
    description: str = ""
    tool_name: str | None = None
    """Name it is published under, None when it is not published."""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    uses: int = 0
    successes: int = 0
    pinned: int | None = None
    """The version that a person pinned it to, None when it is free."""
    score: float | None = None
    """Retrieval score in [0, 1], None in a plain listing."""
    reasons: tuple[str, ...] = ()


class SkillsReport(Report):
    """Answer of `skills list` and `find_skills`, ordered by name or by score."""

    skills: tuple[SkillReport, ...]
    method: SearchMethod | None = None
    """What a search compared, None in a plain listing."""
    note: str = ""
    """Why only words were compared; empty when meanings were too."""
    confusable: tuple[str, ...] = ()
    """The first hits when they fit about alike, so that none of them is clearly meant; else empty."""


class SavedReport(Report):
    """Answer of `skills save` and `save_skill`."""

    skill: SkillReport | None
    """None when nothing was kept."""
    reason: str
    """Why it is in its state, or why nothing was kept."""
    calls: int
    """Successful calls that it was compiled from."""
    verdict: AdmissionVerdict | None = None


class ExportReport(Report):
    """Answer of `export`."""

    name: str
    version: int
    format: str
    digest: str
    """Of what travels; equal in the bank that takes it in."""
    files: dict[str, bytes] = Field(exclude=True)
    """By path below the folder they are written to."""
    written: tuple[str, ...] = ()


class ImportReport(Report):
    """Answer of `import`."""

    skill: SkillReport
    digest: str
    calls: tuple[str, ...] = ()
    """Versions of other skills that came with it."""


class MoveReport(Report):
    """One move of a skill version from state to state."""

    before: SkillState | None
    """None when the version was added."""
    after: SkillState
    by: Actor
    reason: str
    at: float
    """Unix seconds."""


class NeededTool(Report):
    """A tool that a skill calls."""

    server: str
    tool: str
    effect: Effect
    """Its class now."""
    configured: bool
    """Whether its server is."""
    holds: bool | None
    """Whether it is as it was when the skill was verified; None: its server never listed its tools."""


class RunCost(Report):
    """What runs cost of which a trace is kept."""

    runs: int
    calls: int
    seconds: float
    median: float
    """Seconds of the middle one."""


class PlanningSaved(Report):
    """What uses of a skill saved of planning, against the runs of its family planned from scratch."""

    runs: int
    """Planned runs that it was learned from."""
    tokens_a_run: float
    seconds_a_run: float
    tokens: int
    """Over all uses that came out right."""
    seconds: float


class UseReport(Report):
    """How a skill did in use, over all its versions."""

    uses: int
    successes: int
    world_faults: int
    """Failures that the world is to blame for."""
    likely_at_least: float
    """Lower end of the 95 % interval of its success rate, 0 without evidence."""
    cost: RunCost | None
    """None when no trace of a use is kept."""
    round_trips_saved: int
    """Calls that a client had to make one by one otherwise, over the kept uses that came out right."""
    planning: PlanningSaved | None
    """None where it was learned from nothing that was planned from scratch: then this is not known."""


class Standing(Report):
    """How a skill version stands."""

    in_use: int
    """The version in use."""
    pinned: int | None
    """The version a person pinned it to, None when it is free."""
    published: bool
    """Whether clients see the version in use as a tool."""
    moves: tuple[MoveReport, ...]
    """The latest moves of this version, the oldest first."""
    tools: tuple[NeededTool, ...]
    skills: tuple[str, ...] = ()
    """Skills it calls, as `name@version`."""
    learned: RunCost | None
    """What the runs it was made from cost, None when no trace of them is kept."""
    admission_seconds: float
    """What replaying it took when it was judged."""
    use: UseReport


class ShownSkill(Skill):
    """Answer of `skills show`: a skill version with how it stands."""

    standing: Standing


class DeletedReport(Report):
    """Answer of `skills delete`: what is gone for good."""

    name: str
    versions: int
    uses: int


class ReviewItem(Report):
    """One proposed skill version that waits for a person."""

    name: str
    version: int
    reason: str
    """Why it waits."""
    description: str
    replaces: int | None = None
    """The version in use that it would take the place of, None when there is none."""
    diff: str
    """What it changes of that version, else the whole workflow as lines that are new."""
    inputs_added: tuple[str, ...] = ()
    inputs_removed: tuple[str, ...] = ()
    failed: tuple[AdmissionCheck, ...] = ()
    """Checks that it did not pass."""
    tests: tuple[str, ...] = ()


class ReviewReport(Report):
    """Answer of `review`, ordered by name and version."""

    waiting: tuple[ReviewItem, ...]


class ForgottenReport(Report):
    """Answer of `record prune`."""

    forgotten: dict[str, int]
    """How many calls were dropped, by recording."""


class TestOutcome(Report):
    """One replay test run again."""

    __test__ = False
    name: str
    passed: bool
    detail: str = ""
    seconds: float = 0.0


class TestReport(Report):
    """Answer of `skills test`."""

    __test__ = False
    name: str
    version: int
    passed: bool
    tests: tuple[TestOutcome, ...]

"""The answer of `skillbank audit`: how each skill in use stands, what was done, and how the bank grows."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from skills_store.skill import SkillState

__all__ = [
    "AuditReport",
    "BudgetReport",
    "ContrastReport",
    "GrowthReport",
    "MergeSuggestion",
    "RateReport",
    "RetentionReport",
    "SavedPerUse",
    "SkillStanding",
    "StepTaken",
]


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RateReport(_Report):
    """A success rate with its 95 % interval; the world's faults left out."""

    right: int
    of: int
    low: float
    high: float


class SavedPerUse(_Report):
    """The mean saved by one use, with its 95 % interval; negative where the skill costs more."""

    mean: float
    low: float
    high: float


class ContrastReport(_Report):
    """A skill beside its absence, since it came into its state."""

    guided: RateReport
    withheld: RateReport
    before: RateReport
    """Episodes of its family before it was there; they size the bets and decide nothing."""
    delta: float | None
    """Difference of rates within strata, None before both arms have something."""
    evidence: float
    """That it harms: a step is taken at `needed`."""
    needed: float
    """One over the error rate."""
    paper_delta: float | None
    """Difference by the paper's counts, None below them."""
    paper_would_suppress: bool
    """What the paper's rule says; nothing follows from it."""


class SkillStanding(_Report):
    """How one skill stands."""

    name: str
    version: int
    state: SkillState
    utility: float
    """Smoothed success rate, 0.5 without uses."""
    at_least: float
    """Lower end of its 95 % interval."""
    unasked: RateReport
    """Uses that the bank chose."""
    asked: RateReport
    """Uses that somebody asked for by name; they decide nothing."""
    faults: dict[str, int]
    """How its latest uses failed, by class."""
    contrast: ContrastReport
    tokens_saved: SavedPerUse | None
    """None without two costs of either kind to compare; the same for calls and seconds."""
    calls_saved: SavedPerUse | None
    seconds_saved: SavedPerUse | None
    suspicion: str
    """What speaks against it, empty when nothing does."""
    due: str
    """The step that is due, with its reason; empty when none is."""
    held: bool
    """Whether a person wrote or pinned it, so that only a person moves it."""
    not_compared: str
    """Why it is never withheld, empty where it is."""
    audited_at: float | None
    """Unix seconds of the last audit, None: never."""
    unused_days: float
    notes: tuple[str, ...] = ()
    """`unused`, `marginal`: worth a person's look."""


class StepTaken(_Report):
    """Something the audit did."""

    skill: str
    version: int
    step: str
    reason: str
    undo: str
    """The command that takes it back, empty where there is nothing to take back."""


class MergeSuggestion(_Report):
    """Two skills that could be one."""

    keep: str
    merge: str
    why: str


class GrowthReport(_Report):
    """How much there is, and what came of late."""

    skills: int
    versions: int
    by_state: dict[str, int]
    uses: int
    traces: int
    recorded_calls: int
    episodes: int
    audits: int
    bytes: int
    versions_in_30_days: int
    skills_in_30_days: int


class RetentionReport(_Report):
    """What was forgotten because it was too old."""

    runs: int = 0
    recorded_calls: int = 0
    drives: int = 0


class BudgetReport(_Report):
    """How much of the bank's budget the active skills take."""

    active: int
    most_active: int
    """0: no bound."""
    megabytes: float
    most_megabytes: float
    to_guidance: tuple[str, ...] = ()
    """Skills that were, or in a dry run would be, kept as guidance only, the least useful first."""


class AuditReport(_Report):
    """Answer of `audit`."""

    dry_run: bool
    skills: tuple[SkillStanding, ...]
    taken: tuple[StepTaken, ...]
    merge: tuple[MergeSuggestion, ...]
    growth: GrowthReport
    retention: RetentionReport = Field(default_factory=RetentionReport)
    budget: BudgetReport

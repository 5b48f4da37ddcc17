"""What repairing and solving answer, as data: candidates, judges, drives, the run in the end."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from server.planning.escalation import Level, LevelReport
from server.reports.base import Report
from server.reports.runs import NotRepeated
from skills_store.skill import AdmissionVerdict, SkillState
from skills_store.trace import Status, Step, Verification
from skills_store.workflow.edits import Edit
from skills_store.workflow.faults import Fault

__all__ = [
    "AnswerReport",
    "CandidateRecord",
    "DriveReport",
    "JudgeReport",
    "MessageRecord",
    "RepairReport",
    "Route",
    "SnapshotRecord",
    "SpanRecord",
]


Route = Literal["direct", "seeded", "dynamic"]


class CandidateRecord(Report):
    """One candidate of a search: where it came from and what became of it."""

    id: str
    """`content_hash` of the workflow."""
    parent: str | None
    edits: tuple[str, ...]
    """Readable edits against the parent."""
    faults: tuple[Fault, ...] = ()
    score: float
    """In [0, 1], by whom `scored_by` says."""
    scored_by: Literal["judge", "rules"] = "rules"
    status: Literal["static_faults", "failed", "executed", "verified"]
    static_ok: bool = False
    executed_ok: bool = False
    verified: bool = False
    """Whether somebody's check said that it was right."""
    calls: int = 0
    strategy: str = ""
    mode: str = ""
    """How it came to be: base, ladder, explore, exploit, cross, meta, retry or tidy."""
    by: str = ""
    """Name of the proposer, empty where none was asked."""
    generation: int = 0
    growth: float = 0.0
    intensity: float = 0.0
    tokens: int = 0
    """Of a model, spent on its proposal."""


class AnswerReport(Report):
    """Outputs put into words, with what the words rest on."""

    text: str
    nodes: tuple[str, ...] = ()
    """Ids of the nodes it rests on, all of them executed."""
    by: Literal["model", "table"]
    """Whether a model wrote it, or it is the outputs as a table."""
    problems: tuple[str, ...] = ()
    """What in it is not grounded: numbers that no output or input has, nodes that are not there."""


class JudgeReport(Report):
    """What a model thinks of a run: six scores from 1 to 10. Advice; nothing is admitted on it alone."""

    scores: dict[str, float] = Field(default_factory=dict[str, float])
    """Mean of the readings by sub-score; empty when there were too few."""
    axes: dict[str, float] = Field(default_factory=dict[str, float])
    """Mean of the two sub-scores of each axis."""
    score: float | None = None
    """Mean of the six in [0, 1], None when there were too few readings: never a default."""
    disagreement: dict[str, float] = Field(default_factory=dict[str, float])
    """Largest less smallest reading by sub-score."""
    readings: int = 0
    """Readings that could be used."""
    asked: int = 0
    model: str = ""
    reasons: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Why readings are missing, or why there is no score."""
    tokens: int = 0


class SpanRecord(Report):
    """Part of a message that an experience unit put there, in characters."""

    start: int
    end: int
    unit: str


class MessageRecord(Report):
    """One message that a driven model was shown, and who wrote it."""

    role: Literal["system", "user", "assistant"]
    text: str
    author: Literal["instruction", "user", "model", "tool", "driver"]
    spans: tuple[SpanRecord, ...] = ()


class SnapshotRecord(Report):
    """One answer of a driven model with all it was shown."""

    messages: tuple[MessageRecord, ...]
    reply: str
    step: int | None = None
    """Number of the step that the reply is, from 1; None where it only tidied the context."""
    trainable: bool = True


class DriveReport(Report):
    """How a model was driven through a task."""

    template: Literal["causal", "reasoned", "window", "self"]
    steps: int
    ended: str
    """finished, or what ended it: steps, seconds, tokens, context, loop, unreadable, model."""
    model_calls: int
    tokens: int
    prompt_budget: int
    """Tokens that a prompt may have."""
    fits: bool
    """Whether every prompt did; what must stay is shown even where it does not."""
    estimates_tokens: bool
    """Whether tokens were estimated, since the model's tokenizer could not be asked."""
    tools: tuple[dict[str, JsonValue], ...] = ()
    """What it could call, as `{name, description, inputSchema}`."""
    snapshots: tuple[SnapshotRecord, ...] = ()


class RepairReport(Report):
    """Answer of `repair` and `solve`."""

    status: Status
    outputs: dict[str, JsonValue] | None
    workflow: dict[str, JsonValue]
    """The best workflow found, verified or not."""
    edits: tuple[Edit, ...] = ()
    faults: tuple[Fault, ...] = ()
    """What is left wrong with the best workflow."""
    initial_faults: tuple[Fault, ...] = ()
    """What was wrong with the original."""
    calls: int = 0
    candidates: int = 0
    tokens: int = 0
    seconds: float = 0.0
    skill: str | None = None
    """Name of the skill compiled or used, None when there is none."""
    skill_state: SkillState | None = None
    skill_reason: str = ""
    """Why the skill is in that state, or why there is none; empty when none was asked for."""
    verdict: AdmissionVerdict | None = None
    route: Route | None = None
    route_reasons: tuple[str, ...] = ()
    slot_calls: int = 0
    """Calls of free tools that looked for inputs the task leaves open; they are among `calls`."""
    diff: str = ""
    lineage: tuple[CandidateRecord, ...] = ()
    """The first candidates in the order of the search, and all that led to the reported one."""
    candidate: str | None = None
    """Id of the reported one in the lineage, None when nothing was evaluated."""
    trace: tuple[Step, ...] = ()
    trace_id: str | None = None
    not_repeated: tuple[NotRepeated, ...] = ()
    verifications: tuple[Verification, ...] = ()
    budget_spent: str | None = None
    """Which budget ended the search, None when it ended by itself."""
    model: str | None = None
    """The model that was to plan, None when there is none."""
    model_problem: str | None = None
    """What kept the model from answering, None when nothing did; the planner without one took over."""
    solved_by: Level | None = None
    """The level at which a plan came out right, None when none did or no model was asked."""
    levels: tuple[LevelReport, ...] = ()
    """What each level that was reached cost; empty without a model."""
    answer: AnswerReport | None = None
    """The outputs in words, None when nobody asked for them or there are none."""
    judgement: JudgeReport | None = None
    """What a judge thinks of the run, None when nobody asked for one."""
    drive: DriveReport | None = None
    """How the model was driven, None where it was not."""

"""What each use case answers, as data: the stable keys of `--json` and of structured content.

Rendering for a terminal belongs to `server.cli`, for MCP to `server.surface`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from catalog.effects import Effect, Reset
from catalog.labels import Label
from catalog.search import SearchMethod
from catalog.tools import ToolId
from server.planning.escalation import Level, LevelReport
from skills_store.lifecycle import Actor
from skills_store.skill import AdmissionCheck, AdmissionVerdict, Skill, SkillState
from skills_store.trace import Status, Step, Verification
from skills_store.workflow.edits import Edit
from skills_store.workflow.faults import Fault

__all__ = [
    "AnswerReport",
    "ApprovalReport",
    "ApprovalsReport",
    "CallTrouble",
    "CandidateRecord",
    "CheckReport",
    "DeletedReport",
    "DoctorReport",
    "EffectsReport",
    "ErrorReport",
    "ForgottenReport",
    "JudgeReport",
    "LabelsReport",
    "MoveReport",
    "NeededTool",
    "NotRepeated",
    "PlanningSaved",
    "RecordedCallReport",
    "RecordingReport",
    "RecordingsReport",
    "RepairReport",
    "ReviewItem",
    "ReviewReport",
    "Route",
    "RunCost",
    "RunReport",
    "SavedReport",
    "ServerReport",
    "ServerTool",
    "ShownSkill",
    "SkillReport",
    "SkillsReport",
    "Standing",
    "TestReport",
    "ToolEffect",
    "ToolHit",
    "ToolLabels",
    "ToolsReport",
    "UseReport",
    "exit_code",
]

Route = Literal["direct", "seeded", "dynamic"]


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class ErrorDetail(_Report):
    """Why a command could not be carried out."""

    kind: str
    message: str
    pointer: str | None = None


class ErrorReport(_Report):
    """`{"error": {"kind", "message", "pointer"?}}`."""

    error: ErrorDetail


class ApprovalReport(_Report):
    """One standing consent to calls that are not free."""

    id: str
    """What revokes it: SERVER/TOOL of the configuration, else the id of a remembered one."""
    server: str
    tool: str
    """A name, or a pattern of the configuration."""
    arguments: dict[str, JsonValue] | None = None
    """Patterns that the arguments must fit, None: whatever they are."""
    source: Literal["configuration", "remembered"]
    given_at: float | None = None
    """Unix seconds, None where nobody knows."""
    holds: bool = True
    """False where the tool has changed since, so that it is asked about again."""


class ApprovalsReport(_Report):
    """Answer of `effects approvals`, `effects approve` and `effects revoke`."""

    approvals: tuple[ApprovalReport, ...]


class CheckReport(_Report):
    """Answer of `check`: every static fault with its place."""

    faults: tuple[Fault, ...]
    warnings: tuple[str, ...] = ()


class NotRepeated(_Report):
    """A call that was held back, with the rule and how to allow it."""

    node: str | None
    tool: ToolId
    effect: Effect
    reason: str
    allow: str
    """The command that would allow it."""


class RunReport(_Report):
    """Answer of `run`."""

    status: Status
    outputs: dict[str, JsonValue] | None
    faults: tuple[Fault, ...] = ()
    calls: int = 0
    seconds: float = 0.0
    trace: tuple[Step, ...] = ()
    trace_id: str | None = None
    not_repeated: tuple[NotRepeated, ...] = ()
    verifications: tuple[Verification, ...] = ()


class CandidateRecord(_Report):
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


class AnswerReport(_Report):
    """Outputs put into words, with what the words rest on."""

    text: str
    nodes: tuple[str, ...] = ()
    """Ids of the nodes it rests on, all of them executed."""
    by: Literal["model", "table"]
    """Whether a model wrote it, or it is the outputs as a table."""
    problems: tuple[str, ...] = ()
    """What in it is not grounded: numbers that no output or input has, nodes that are not there."""


class JudgeReport(_Report):
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


class SpanRecord(_Report):
    """Part of a message that an experience unit put there, in characters."""

    start: int
    end: int
    unit: str


class MessageRecord(_Report):
    """One message that a driven model was shown, and who wrote it."""

    role: Literal["system", "user", "assistant"]
    text: str
    author: Literal["instruction", "user", "model", "tool", "driver"]
    spans: tuple[SpanRecord, ...] = ()


class SnapshotRecord(_Report):
    """One answer of a driven model with all it was shown."""

    messages: tuple[MessageRecord, ...]
    reply: str
    step: int | None = None
    """Number of the step that the reply is, from 1; None where it only tidied the context."""
    trainable: bool = True


class DriveReport(_Report):
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


class RepairReport(_Report):
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


class SkillReport(_Report):
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


class SkillsReport(_Report):
    """Answer of `skills list` and `find_skills`, ordered by name or by score."""

    skills: tuple[SkillReport, ...]
    method: SearchMethod | None = None
    """What a search compared, None in a plain listing."""
    note: str = ""
    """Why only words were compared; empty when meanings were too."""
    confusable: tuple[str, ...] = ()
    """The first hits when they fit about alike, so that none of them is clearly meant; else empty."""


class SavedReport(_Report):
    """Answer of `skills save` and `save_skill`."""

    skill: SkillReport | None
    """None when nothing was kept."""
    reason: str
    """Why it is in its state, or why nothing was kept."""
    calls: int
    """Successful calls that it was compiled from."""
    verdict: AdmissionVerdict | None = None


class ExportReport(_Report):
    """Answer of `export`."""

    name: str
    version: int
    format: str
    digest: str
    """Of what travels; equal in the bank that takes it in."""
    files: dict[str, bytes] = Field(exclude=True)
    """By path below the folder they are written to."""
    written: tuple[str, ...] = ()


class ImportReport(_Report):
    """Answer of `import`."""

    skill: SkillReport
    digest: str
    calls: tuple[str, ...] = ()
    """Versions of other skills that came with it."""


class MoveReport(_Report):
    """One move of a skill version from state to state."""

    before: SkillState | None
    """None when the version was added."""
    after: SkillState
    by: Actor
    reason: str
    at: float
    """Unix seconds."""


class NeededTool(_Report):
    """A tool that a skill calls."""

    server: str
    tool: str
    effect: Effect
    """Its class now."""
    configured: bool
    """Whether its server is."""
    holds: bool | None
    """Whether it is as it was when the skill was verified; None: its server never listed its tools."""


class RunCost(_Report):
    """What runs cost of which a trace is kept."""

    runs: int
    calls: int
    seconds: float
    median: float
    """Seconds of the middle one."""


class PlanningSaved(_Report):
    """What uses of a skill saved of planning, against the runs of its family planned from scratch."""

    runs: int
    """Planned runs that it was learned from."""
    tokens_a_run: float
    seconds_a_run: float
    tokens: int
    """Over all uses that came out right."""
    seconds: float


class UseReport(_Report):
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


class Standing(_Report):
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


class DeletedReport(_Report):
    """Answer of `skills delete`: what is gone for good."""

    name: str
    versions: int
    uses: int


class RecordedCallReport(_Report):
    """One relayed call of a conversation."""

    number: int
    tool: str
    arguments: dict[str, JsonValue]
    outcome: str
    detail: str = ""
    """What failed; empty where nothing did."""
    trace_id: str
    seconds: float


class RecordingReport(_Report):
    """One conversation whose calls were kept, as `record list` and `record show` tell it."""

    name: str
    calls: int
    started_at: float
    """Unix seconds, of its first call."""
    last_at: float
    """Unix seconds, of its last call."""
    steps: tuple[RecordedCallReport, ...] = ()
    """Empty in a listing."""


class RecordingsReport(_Report):
    """Answer of `record list`, the newest first."""

    recordings: tuple[RecordingReport, ...]


class ReviewItem(_Report):
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


class ReviewReport(_Report):
    """Answer of `review`, ordered by name and version."""

    waiting: tuple[ReviewItem, ...]


class ForgottenReport(_Report):
    """Answer of `record prune`."""

    forgotten: dict[str, int]
    """How many calls were dropped, by recording."""


class TestOutcome(_Report):
    """One replay test run again."""

    __test__ = False
    name: str
    passed: bool
    detail: str = ""
    seconds: float = 0.0


class TestReport(_Report):
    """Answer of `skills test`."""

    __test__ = False
    name: str
    version: int
    passed: bool
    tests: tuple[TestOutcome, ...]


class CallTrouble(_Report):
    """One call that failed by its server, from the traces that are kept."""

    tool: str
    kind: str
    message: str
    at: float
    """Unix seconds."""
    is_last: bool
    """Whether no later call of the server is known."""


class ServerTool(_Report):
    """One usable tool of a server."""

    name: str
    title: str | None
    description: str
    effect: Effect
    contract_hash: str


class ServerReport(_Report):
    """One configured tool server as `doctor` found it."""

    name: str
    status: Literal["ok", "problems", "unreachable", "idle"]
    """`idle`: not started yet, which `doctor` never leaves a server at."""
    transport: str
    era: str | None = None
    """Negotiated protocol revision, None when unreachable."""
    tools: int = 0
    seconds: float = 0.0
    problems: tuple[str, ...] = ()
    quarantined: dict[str, str] = Field(default_factory=dict[str, str])
    """Tools it lists that are never called, with the reason."""
    strict_hosts: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """Tools that a strict host would refuse if it met them without us, with what it refuses."""
    annotated: int = 0
    """Tools that say anything of their effects."""
    last_errors: tuple[CallTrouble, ...] = ()
    """The latest calls that failed by the server, the latest first."""
    changes: tuple[str, ...] = ()
    """What changed about its tools while this process looked, oldest first."""
    reset: Reset = Reset.NONE
    classified: int = 0
    """Tools whose effect class is not `unknown`."""
    circuit: Literal["closed", "open", "half_open"] = "closed"
    """Whether calls are sent: `open` they fail at once, `half_open` one is tried."""
    retry_seconds: float | None = None
    """How long until it is tried again, None while the circuit is closed."""


class LocalModelReport(_Report):
    """How a configured local model does on this machine, at its present load."""

    name: str
    url: str
    prompt_tokens_per_second: float
    generated_tokens_per_second: float
    slots: int
    """Alternatives that one request may ask for."""
    context_tokens: int
    shared: bool
    """Whether `model serve` keeps it running; else it was started for this measurement."""


class ModelReport(_Report):
    """How one model is that plays a role."""

    roles: tuple[str, ...]
    model: str
    """As configured; holds no key."""
    usable: bool
    offers: str
    """What it enforces of a structured answer, and how; empty where that is not known."""
    context_tokens: int | None = None
    problem: str | None = None
    """What keeps it from being used, None when nothing does."""


class DoctorReport(_Report):
    """Answer of `doctor`."""

    servers: tuple[ServerReport, ...]
    models: tuple[ModelReport, ...] = ()
    """Those that play a role; empty: there is none, and plans are made without."""
    config: str | None = None
    store: str | None = None
    local_models: tuple[LocalModelReport, ...] = ()
    problems: tuple[str, ...] = ()


class ToolEffect(_Report):
    """The effect class of one tool and where it comes from."""

    server: str
    tool: str
    effect: Effect
    reason: str


class EffectsReport(_Report):
    """Answer of `effects list` and the proposal of `add` and `init`."""

    effects: tuple[ToolEffect, ...]
    reset: dict[str, Reset] = Field(default_factory=dict[str, Reset])
    reset_checks: dict[str, str] = Field(default_factory=dict[str, str])
    """By server: what came of the last trial of its reset mode, in a sentence."""


class ToolLabels(_Report):
    """What one tool does with information."""

    server: str
    tool: str
    labels: dict[Label, str]
    """Each with what it follows from; empty: no flow to or from it is looked at."""


class LabelsReport(_Report):
    """Answer of `effects labels`, ordered by server and tool."""

    tools: tuple[ToolLabels, ...]
    flows: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """Granted flows: for a source, the sinks its data may go to."""


class ToolHit(_Report):
    """One tool found for a query."""

    server: str
    tool: str
    description: str
    score: float
    input_schema: dict[str, JsonValue]
    output_schema: dict[str, JsonValue] | None = None
    effect: Effect = Effect.UNKNOWN
    goal: str | None = None
    """The part of a long request that it was found for, None for the whole of it."""
    reasons: tuple[str, ...] = ()


class ToolsReport(_Report):
    """Answer of `find_tools`, best first; of a long request the best of each part first."""

    tools: tuple[ToolHit, ...]
    method: SearchMethod
    """What was compared: meanings and words, or words alone."""
    note: str = ""
    """Why only words were compared; empty when meanings were too."""


def exit_code(status: Status, faults: tuple[Fault, ...] = ()) -> int:
    """Return the process exit code of a status (`CONTRACTS`, Statuses and exits)."""
    match status:
        case "verified" | "succeeded":
            return 0
        case "needs_approval":
            return 3
        case "cancelled":
            return 130
        case "failed" | "unverified":
            only_world = bool(faults) and all(fault.evidence == "world" for fault in faults)
            return 4 if only_world else 1

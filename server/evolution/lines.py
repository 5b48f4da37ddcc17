"""The lines of a search's record: what each holds, and a candidate made into one and back.

Secrets are replaced before a line is made. A value too large for a trace is kept by digest, as there.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind, RanUpstream
from catalog.tools import ToolId
from server.evolution.candidate import CandidateStatus, Evaluation, Fitness, Made, Mode, Record
from server.execution.recording import Recorder
from server.verification import Verdict
from skills_store.trace import Status, Trace, Verification
from skills_store.workflow.edits import Edit
from skills_store.workflow.faults import Fault
from skills_store.workflow.hashing import shape_hash

__all__ = [
    "CallLine",
    "CandidateLine",
    "FruitlessLine",
    "Line",
    "SearchLine",
    "candidate_line",
    "evaluation_of",
    "line_adapter",
    "made_from",
    "made_of",
    "outcome_of",
    "outcome_value",
]

VERSION = 1


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SearchLine(_Line):
    """The first line: what is searched for, so that a record of something else is never gone on with."""

    kind: Literal["search"] = "search"
    version: int = VERSION
    base: str
    """`content_hash` of the workflow."""
    workflow: dict[str, JsonValue]
    task: str | None = None
    inputs: str
    """Digest of the inputs."""
    checks: str
    """Digest of what counts as right; the literals themselves are not kept."""
    strategy: str
    seed: int
    started_at: float = 0.0
    """Unix seconds."""


class _MadeLine(_Line):
    number: int
    strategy: str
    mode: Mode
    by: str = ""
    parent: str | None = None
    generation: int = 0
    growth: float = 0.0
    intensity: float = 0.0
    tokens: int = 0


class CandidateLine(_MadeLine):
    """One evaluated candidate, infeasible or not."""

    kind: Literal["candidate"] = "candidate"
    id: str
    """`content_hash`."""
    shape: str
    """`shape_hash`: candidates of one structure have the same."""
    edits: tuple[Edit, ...]
    """From the base; the last `new` of them from its parent."""
    new: int
    cost: float
    status: CandidateStatus
    static_ok: bool
    executed_ok: bool
    verified: bool
    score: float
    scored_by: Literal["judge", "rules"]
    judge: float | None = None
    fitness: dict[str, bool | int | float]
    faults: tuple[Fault, ...] = ()
    calls: int
    unmet: float
    verdict: Status | None = None
    verifications: tuple[Verification, ...] = ()
    result: dict[str, JsonValue] | None = None
    outputs: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    trace: Trace | None = None


class FruitlessLine(_MadeLine):
    """An order that no new candidate came of: every proposal was refused or known, or there was none."""

    kind: Literal["refused"] = "refused"
    problems: tuple[str, ...] = ()


class CallLine(_Line):
    """A call that is not free: written before it is sent, and again with what came of it."""

    kind: Literal["call"] = "call"
    node: str
    tool: ToolId
    arguments: str
    """Digest: what is kept of them must be equal, and may be secret."""
    items: tuple[int, ...] = ()
    outcome: dict[str, JsonValue] | None = None
    """None: it is about to be sent, and may have run when nothing follows."""


Line = Annotated[SearchLine | CandidateLine | FruitlessLine | CallLine, Field(discriminator="kind")]
line_adapter: TypeAdapter[Line] = TypeAdapter(Line)


def candidate_line(record: Record, recorder: Recorder) -> CandidateLine:
    """Return the line of a candidate, secrets replaced."""
    candidate, found, made = record.candidate, record.evaluation, record.made
    return CandidateLine.model_validate(
        {
            **_made(made, candidate.parent),
            "id": candidate.id,
            "shape": shape_hash(candidate.workflow),
            "edits": [recorder.redact(edit.model_dump(mode="json")) for edit in candidate.edits],
            "new": len(candidate.last),
            "cost": candidate.cost,
            "status": found.status,
            "static_ok": found.static_ok,
            "executed_ok": found.executed_ok,
            "verified": found.verified,
            "score": found.score,
            "scored_by": found.scored_by,
            "judge": found.judge,
            "fitness": asdict(found.fitness),
            "faults": tuple(recorder.fault(fault) for fault in found.faults),
            "calls": found.calls,
            "unmet": found.unmet,
            "verdict": found.verdict.status if found.verdict else None,
            "verifications": found.verdict.verifications if found.verdict else (),
            "result": None if found.result is None else recorder.values(found.result),
            "outputs": recorder.values(found.outputs),
            "trace": found.trace,
        }
    )


def evaluation_of(line: CandidateLine) -> Evaluation:
    """Return what became of a recorded candidate."""
    verdict = Verdict(line.verdict, line.faults, line.verifications) if line.verdict else None
    return Evaluation(
        status=line.status,
        faults=line.faults,
        fitness=Fitness(**line.fitness),  # pyright: ignore[reportArgumentType]
        verdict=verdict,
        trace=line.trace,
        outputs=line.outputs,
        calls=line.calls,
        unmet=line.unmet,
        result=line.result,
        judge=line.judge,
    )


def _made(made: Made, parent: str | None) -> dict[str, object]:
    return {**asdict(made), "parent": parent}


def made_of(made: Made, parent: str | None) -> FruitlessLine:
    """Return the line of an order that nothing came of, its problems left out."""
    return FruitlessLine.model_validate(_made(made, parent))


def made_from(line: CandidateLine | FruitlessLine) -> Made:
    """Return how a recorded candidate was made."""
    return Made(**{name: getattr(line, name) for name in Made.__dataclass_fields__})


def outcome_value(outcome: CallOutcome, recorder: Recorder) -> dict[str, JsonValue]:
    """Return what came of a call as JSON, secrets replaced."""
    if isinstance(outcome, CallSuccess):
        return {"output": recorder.redact(outcome.output), "ran": "yes"}
    return {
        "failure": outcome.kind.value,
        "message": str(recorder.redact(outcome.message)),
        "ran": outcome.ran.value,
    }


def outcome_of(value: dict[str, JsonValue] | None) -> CallOutcome:
    """Return what came of a recorded call; of one that was on its way, that nobody knows."""
    if value is None:
        message = "it was on its way when the search ended, and may have had its effect"
        return CallFailure(FailureKind.TIMEOUT, message, 0.0, RanUpstream.UNSURE)
    if "failure" in value:
        kind, ran = FailureKind(str(value["failure"])), RanUpstream(str(value["ran"]))
        return CallFailure(kind, str(value.get("message", "")), 0.0, ran)
    return CallSuccess(value.get("output"), [], 0.0)

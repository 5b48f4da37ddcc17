"""Candidates: a base workflow plus ordered edits, and what evaluating one showed.

Paper: EvoFlux (Candidate, BuildCandidate; facts §1.1, §1.3). Differs: identity is the canonical
hash; fitness is a vector, so that deleting a failing node gains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from server.verification import Verdict
from skills_store.trace import Trace
from skills_store.workflow.edits import Edit
from skills_store.workflow.faults import Fault
from skills_store.workflow.model import Workflow

__all__ = [
    "Candidate",
    "CandidateStatus",
    "Evaluation",
    "Fitness",
    "Made",
    "Mode",
    "Record",
    "fittest",
    "rank_of",
]

CandidateStatus = Literal["static_faults", "failed", "executed", "verified"]
Mode = Literal["base", "ladder", "explore", "exploit", "cross", "meta", "retry", "tidy"]
"""How a candidate came to be. `exploit` answers evidence, `explore` draws, `cross` takes over another
survivor's edits, `meta` is a plan from elsewhere."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One workflow of the search. `edits` lead from the base to it, `last` of them from its parent."""

    id: str
    """`content_hash` of the workflow."""
    workflow: Workflow
    edits: tuple[Edit, ...] = ()
    last: tuple[Edit, ...] = ()
    parent: str | None = None
    cost: float = 0.0
    """Sum of the costs of its proposals."""
    depth: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Fitness:
    """Compared field by field; more is better.

    Paper: EvoFlux (feasibility, then a score). Differs: a vector, so that no amount of form outweighs an
    output. Inputs come second since an answer that no longer depends on an input may be right by chance.
    """

    verified: bool = False
    keeps_inputs: bool = False
    """Whether every input that reached an output of the base still does; else work may be skipped."""
    outputs_produced: float = 0.0
    """Share of the declared outputs that tools produced."""
    executed: float = 0.0
    """Share of the nodes those outputs need that ran well; of as many as the base's outputs need, if
    those are more, so that deleting a failing node gains nothing."""
    checks_passed: float = 0.0
    """Share of the caller's checks that hold, 0 when outputs are missing."""
    rule_score: float = 0.0
    """Mean of valid tool names, schema compliance, execution success, dependencies respected and planned
    nodes executed; in [0, 1]."""
    judged: float = 0.0
    """Mean of a judge's six scores in [0, 1]; 0 without one."""
    fewer_calls: int = 0
    """Calls the run needed, answers from memory included, negated."""
    fewer_nodes: int = 0
    """Planned nodes, negated."""

    @property
    def progress(self) -> float:
        """How far a candidate is in one number in [0, 1]: what growth is measured by."""
        return (self.outputs_produced + self.executed + self.checks_passed + self.rule_score) / 4


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What became of one candidate. `trace` is None when nothing could be run."""

    status: CandidateStatus
    faults: tuple[Fault, ...]
    fitness: Fitness
    verdict: Verdict | None
    trace: Trace | None
    outputs: dict[str, JsonValue]
    """Full node outputs by id."""
    calls: int
    unmet: float
    """How far from done: nodes not yet run well, missing outputs, the failed check; 0 when verified."""
    result: dict[str, JsonValue] | None = None
    """Declared outputs in full, None unless the run got that far."""
    judge: float | None = None
    """Mean of a judge's scores in [0, 1], None where none was asked or could answer."""

    @property
    def static_ok(self) -> bool:
        """Whether it has no static fault."""
        return self.status != "static_faults"

    @property
    def executed_ok(self) -> bool:
        """Whether it ran to its outputs without a fault, right or not."""
        return self.status in ("executed", "verified")

    @property
    def verified(self) -> bool:
        """Whether somebody's check said that it was right."""
        return self.status == "verified" and self.verdict is not None and self.verdict.is_verified

    @property
    def score(self) -> float:
        """The reported score in [0, 1]: a judge's where there is one, 0 when infeasible; else the rules'."""
        if self.judge is None:
            return self.fitness.rule_score
        return self.judge if self.static_ok else 0.0

    @property
    def scored_by(self) -> Literal["judge", "rules"]:
        """Whose the reported score is."""
        return "rules" if self.judge is None else "judge"


@dataclass(frozen=True, slots=True)
class Made:
    """How one candidate was made, and what that cost apart from its calls."""

    number: int = 0
    """Of the order it answers, within its strategy."""
    strategy: str = ""
    mode: Mode = "base"
    by: str = ""
    """Name of the proposer, empty where none was needed."""
    generation: int = 0
    growth: float = 0.0
    intensity: float = 0.0
    tokens: int = 0
    """Of a model, spent on its proposal, failed attempts included."""


@dataclass(frozen=True, slots=True)
class Record:
    """One evaluated candidate."""

    candidate: Candidate
    evaluation: Evaluation
    made: Made = Made()


def rank_of(record: Record, place: int) -> tuple[Fitness, float, int]:
    """Return what the better of two records has more of: fitness, cheaper edits, an earlier place."""
    return record.evaluation.fitness, -record.candidate.cost, -place


def fittest(records: Sequence[Record]) -> Record:
    """Return the best record.

    Raises:
        ValueError: there is none yet.
    """
    if not records:
        raise ValueError("no candidate was evaluated yet")
    return records[max(range(len(records)), key=lambda place: rank_of(records[place], place))]

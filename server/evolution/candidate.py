"""Candidates: a base workflow plus ordered edits, and what evaluating one showed.

Paper: EvoFlux (Candidate, BuildCandidate; facts §1.1, §1.3). Differs: identity is the canonical
hash; fitness is a vector, so that deleting a failing node gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from server.verification import Verdict
from skills_store.trace import Trace
from skills_store.workflow.edits import Edit
from skills_store.workflow.faults import Fault
from skills_store.workflow.model import Workflow

__all__ = ["Candidate", "Evaluation", "Fitness"]

CandidateStatus = Literal["static_faults", "failed", "executed", "verified"]


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
    """Compared field by field; more is better."""

    verified: bool
    keeps_inputs: bool
    """Whether every input that reached an output of the base still does: else work may be skipped."""
    checks_passed: float
    """Share of the caller's checks that hold, 0 when outputs are missing."""
    outputs_produced: float
    """Share of the declared outputs that tools produced."""
    executed: float
    """Share of the nodes those outputs need that ran well."""
    rule_score: float
    """Mean of valid tool names, schema compliance, execution success; in [0, 1]."""


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

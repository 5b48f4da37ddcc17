"""From what all gates found to the state a candidate has earned: the worst finding decides.

Paper: FlowEvo (gate): fresh replay, perturbation replay, safety scan, trivial-solution check;
    what fails one is kept as shadow with its reasons.
Differs: duplicates and the interface are gates too; nothing passes vacuously; a candidate that
    is merely short of evidence waits as `proposed`, one that is useful but not trusted to run is
    `context_only`; `shadow` is left for what is shown to be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from skills_store.admission.finding import Finding, approval
from skills_store.admission.running_gates import function, trivial
from skills_store.admission.static_gates import duplicate, interface, safety
from skills_store.evidence import Evidence
from skills_store.skill import AdmissionVerdict, SkillState

__all__ = ["MINIMUM_TRACES", "is_refuted", "judge_admission"]

MINIMUM_TRACES = 2

_FROM_WORST: tuple[SkillState, ...] = ("shadow", "context_only", "proposed")


def judge_admission(evidence: Evidence) -> AdmissionVerdict:
    """Return the state a candidate earned, the reason, and every check with its inputs.

    The worst finding decides: `shadow` when something is shown to be wrong, `context_only` when
    it holds only in part or on a judge's word, `proposed` when evidence or a person is awaited.
    A skill a person wrote is never set aside by the system: it stays `proposed` instead.
    """
    findings = (
        *duplicate(evidence),
        *interface(evidence),
        *function(evidence),
        *safety(evidence),
        *trivial(evidence),
    )
    state, reason = _decided(findings) or _awaited(evidence)
    if evidence.equals is not None:
        reason = f"{reason}; it does what {evidence.equals} does"
    if evidence.skill.origin == "user" and state != "active":
        state = "proposed"
    return AdmissionVerdict(state=state, reason=reason, checks=tuple(f.to_check() for f in findings))


def is_refuted(verdict: AdmissionVerdict) -> bool:
    """Return whether runs showed a candidate to be wrong, rather than short of evidence."""
    return any(
        check.gate in ("function", "trivial")
        and check.leaves in ("shadow", "context_only")
        and check.name != "no_frozen_literals"
        for check in verdict.checks
    )


def _decided(findings: Sequence[Finding]) -> tuple[SkillState, str] | None:
    for state in _FROM_WORST:
        details = [finding.detail for finding in findings if finding.leaves == state]
        if details:
            return state, "; ".join(details)
    return None


def _awaited(evidence: Evidence) -> tuple[SkillState, str]:
    """Return the state of a candidate that passed every gate (`CONTRACTS`, Skill states).

    Paper: FlowEvo (admission): whatever passes the gate is active.
    Differs: it publishes itself only in mode `auto`, and only after two distinct verified runs or
        an explicit save; otherwise a person decides.
    """
    if evidence.learning != "auto":
        mode = f"all gates passed; learning mode is {evidence.learning}"
        return "proposed", f"{mode}: a person approves with {approval(evidence.skill)}"
    if evidence.explicit_save:
        return "active", "all gates passed; saved explicitly"
    count = evidence.distinct_verified_traces
    if count >= MINIMUM_TRACES:
        return "active", f"all gates passed; {count} distinct verified runs"
    return "proposed", (
        f"all gates passed; {count} of {MINIMUM_TRACES} distinct verified runs:"
        f" another one, an explicit save or a person's {approval(evidence.skill)} is awaited"
    )

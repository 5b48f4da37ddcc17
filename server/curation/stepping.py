"""Which step follows for a skill in use from what is known of it: one at a time, each with its reason.

Audited when something speaks against it, then restricted to guidance, then suppressed, then retired.
Taking a step is `server.bank.curation.curating`; the numbers are `skills_store.contrast`.

Paper: FlowEvo (lifecycle): suppress at a utility below 0.35 or after two failures in a row, prune what
    is suppressed after two failed audits.
Differs: two failures in a row lead to an audit, not out of use; a step against a skill takes a failed
    audit or a sequential test with a stated error rate; what a person wrote or pinned is only told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skills_store.contrast import Contrast
from skills_store.episodes import Audit
from skills_store.skill import Skill, SkillState

__all__ = ["RETIRED_AFTER", "Step", "Watch", "next_step", "suspicion", "told"]

RETIRED_AFTER = 2
"""Failed audits after which a suppressed skill is retired."""
_FAILURES_IN_A_ROW = 2

StepKind = Literal["audit", "restrict", "suppress", "retire"]
_TO: dict[StepKind, SkillState] = {
    "restrict": "context_only",
    "suppress": "suppressed",
    "retire": "retired",
}


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done about a skill, and why."""

    kind: StepKind
    reason: str

    @property
    def to(self) -> SkillState | None:
        """The state it leads to, None where none moves."""
        return _TO.get(self.kind)


@dataclass(frozen=True, slots=True)
class Watch:
    """All that is known of one skill version since it came into its state."""

    skill: Skill
    contrast: Contrast
    audits: tuple[Audit, ...] = ()
    """The newest first; only those that ran its tests."""
    uses_since_audit: int = 0
    """That say something about it."""
    failures_in_a_row: int = 0
    """Latest uses that failed, those before a passed audit left out."""
    fails_with: str = ""
    """Classes of the faults it failed with, in words."""
    is_held: bool = False
    """Whether a person wrote or pinned it, so that only a person moves it."""
    audit_every: int = 20
    """Uses after which it is audited anyway; 0: never."""


def next_step(watch: Watch) -> Step | None:
    """Return the one step that is due, None when there is none."""
    match watch.skill.state:
        case "active":
            return _down(watch, "restrict") or _audit(watch)
        case "context_only":
            return _down(watch, "suppress") or _audit(watch)
        case "suppressed":
            failed = [audit for audit in watch.audits if audit.passed is False]
            if len(failed) >= RETIRED_AFTER and not watch.is_held:
                why = f"{len(failed)} audits failed since it was suppressed: {failed[0].detail}"
                return Step("retire", why)
            return None
        case _:
            return None


def suspicion(watch: Watch) -> str:
    """Return what speaks against a skill, which is no proof; empty when nothing does."""
    if watch.failures_in_a_row >= _FAILURES_IN_A_ROW:
        kinds = f" ({watch.fails_with})" if watch.fails_with else ""
        return f"its last {watch.failures_in_a_row} uses failed{kinds}"
    if watch.contrast.is_suspicious and watch.contrast.evidence > 1:
        return f"it seems to do worse than its absence: {told(watch.contrast)}"
    return ""


def told(contrast: Contrast) -> str:
    """Return a contrast in a sentence."""
    guided, control = contrast.guided, contrast.control
    return (
        f"right in {guided.successes} of {guided.uses} with it and in {control.successes} of {control.uses}"
        f" without it (evidence {contrast.most_evidence:.3g}, {1 / contrast.error_rate:.3g} needed at an"
        f" error rate of {contrast.error_rate:g})"
    )


def _down(watch: Watch, kind: StepKind) -> Step | None:
    """Return the step out of a state, where there is proof for it."""
    if watch.is_held:
        return None
    if watch.contrast.is_worse:
        return Step(kind, f"it does worse than its absence: {told(watch.contrast)}")
    if watch.audits and watch.audits[0].passed is False:
        return Step(kind, f"its audit failed: {watch.audits[0].detail}")
    return None


def _audit(watch: Watch) -> Step | None:
    if watch.uses_since_audit and (why := suspicion(watch)):
        return Step("audit", why)
    if watch.audit_every and watch.uses_since_audit >= watch.audit_every:
        return Step("audit", f"it was used {watch.uses_since_audit} times since it was last looked at")
    return None

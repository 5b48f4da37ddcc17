"""What became of one task: with a skill, without it on purpose, or without any; and what that cost.

Episodes are the raw numbers of curation. A trial is an episode for which a coin decided whether the
skill was used; what trials say is `contrast`, what a skill saves is `worth`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["EPISODES_KEPT", "Arm", "Audit", "AuditKind", "Outcome", "StoreSizes", "TaskEpisode"]

EPISODES_KEPT = 20_000
"""Episodes a store keeps; adding one more drops the oldest."""

Arm = Literal["guided", "withheld"]
Outcome = Literal["right", "wrong", "world"]
"""`world`: what stood in the way says nothing of how the task was gone about."""
AuditKind = Literal["audit", "repair"]


@dataclass(frozen=True, slots=True)
class TaskEpisode:
    """One task that was solved, or not.

    Raises:
        ValueError: it has an arm and no skill, or a share that no coin has.
    """

    task: str
    """In words, secrets taken out."""
    route: str
    """`direct`, `seeded` or `dynamic`."""
    outcome: Outcome
    at: float
    """Unix seconds."""
    tokens: int = 0
    calls: int = 0
    seconds: float = 0.0
    stratum: str = ""
    """Episodes are compared within one: how the skill would have been used, and whether a check looked on."""
    skill: str | None = None
    """The skill used or withheld, None when none was meant."""
    version: int | None = None
    arm: Arm | None = None
    """None: no coin was thrown, so the episode is no trial."""
    share: float = 0.0
    """With which probability the coin withheld the skill, in (0, 1) for a trial."""
    trace: str | None = None

    def __post_init__(self) -> None:
        if self.arm is not None and (self.skill is None or not 0 < self.share < 1):
            raise ValueError("a trial has a skill, and a share between 0 and 1")


@dataclass(frozen=True, slots=True)
class Audit:
    """A skill's own tests run again where nobody waited, or a try to repair it."""

    skill: str
    version: int
    kind: AuditKind
    passed: bool | None
    """None: no test could be run, by the world's fault or the effect policy's."""
    detail: str
    at: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class StoreSizes:
    """How much is kept."""

    skills: int
    versions: int
    uses: int
    traces: int
    """Those of runs; calls that clients made by hand are apart."""
    recorded_calls: int
    episodes: int
    audits: int
    bytes: int
    """Of the file, 0 where there is none."""

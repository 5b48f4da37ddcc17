"""What was found out about a candidate skill before it is judged. Values only.

Gathering it (replaying, varying inputs, looking for duplicates) belongs to `server.compilation`;
judging it is `admission`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from catalog.canonical import JsonValue
from catalog.effects import Effect, Reset
from catalog.tools import ToolId
from skills_store.skill import Skill
from skills_store.trace import Verification
from skills_store.workflow.faults import Fault

__all__ = ["Evidence", "InterfaceFindings", "Learning", "ReplayResult", "UsedTool", "VariedRun"]

Learning = Literal["auto", "propose", "off"]


@dataclass(frozen=True, slots=True)
class InterfaceFindings:
    """What reading the candidate found, without running it. Empty means nothing is wrong."""

    schema_lint: tuple[str, ...] = ()
    """What strict hosts would refuse in its signature."""
    faults: tuple[Fault, ...] = ()
    """Static faults of its workflow against the snapshot it is pinned to."""
    unpinned: tuple[ToolId, ...] = ()
    """Tools it calls without a pin on their contract."""
    flows: tuple[str, ...] = ()
    """Where its data goes and should not, each as one sentence."""
    calls_itself: bool = False
    """Whether it would call itself, by its own nodes or through skills or our own server."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """One replay test run again.

    Raises:
        ValueError: it passed without having been possible.
    """

    test: str
    """Name of the replay test."""
    inputs: Mapping[str, JsonValue]
    passed: bool
    detail: str = ""
    """What differed, or why it could not be run."""
    seconds: float = 0.0
    isolated: bool = False
    """Whether every resettable server ran in a process of its own."""
    possible: bool = True
    """False when it can never run again. One that a world fault stopped is left out instead."""

    def __post_init__(self) -> None:
        if self.passed and not self.possible:
            raise ValueError(f"replay of {self.test} cannot have passed without being possible")


@dataclass(frozen=True, slots=True)
class VariedRun:
    """The candidate run on inputs other than those it was made from."""

    inputs: Mapping[str, JsonValue]
    changed: tuple[str, ...]
    """Names of the inputs that differ from the original."""
    succeeded: bool
    outputs_changed: bool = False
    """Whether an output differs from the original's, volatile parts left out."""
    check_passed: bool | None = None
    """What the candidate's own checks say, None when none applies to other inputs."""
    detail: str = ""
    known_valid: bool = True
    """Whether such inputs are known to be valid; where they are made up, a failure tells of them alone."""

    @property
    def is_good(self) -> bool:
        """Whether it ran and nothing says its answer is wrong."""
        return self.succeeded and self.check_passed is not False


@dataclass(frozen=True, slots=True)
class UsedTool:
    """A tool the candidate calls, as the operator classed it at the time."""

    tool: ToolId
    effect: Effect
    reset: Reset = Reset.NONE

    @property
    def may_repeat(self) -> bool:
        """Whether running it again leaves nothing behind."""
        return self.effect.is_free or self.reset is not Reset.NONE


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of a candidate.

    Raises:
        ValueError: the skill is no candidate: its state is not `proposed`.
    """

    skill: Skill
    learning: Learning
    tools: tuple[UsedTool, ...]
    interface: InterfaceFindings = field(default_factory=InterfaceFindings)
    duplicate_of: str | None = None
    """Name of a stored skill with the same workflow, None when it is new."""
    equals: str | None = None
    """Name of a stored skill with another workflow that gives the same on the tests of both, or None."""
    replays: tuple[ReplayResult, ...] = ()
    varied: tuple[VariedRun, ...] = ()
    frozen_literals: tuple[str, ...] = ()
    """Values that the task states and the workflow still holds as constants, readable."""
    undecided: str = ""
    """Why another reading of its run holds as well, and what would decide; empty when it is the only one."""
    unsaid: tuple[str, ...] = ()
    """Inputs that nobody named, no task says, and that had one value in all runs: constants, perhaps."""
    verifications: tuple[Verification, ...] = ()
    """What was said of the runs it was made from."""
    distinct_verified_traces: int = 0
    """Verified runs it was made from, on different inputs or tasks."""
    explicit_save: bool = False
    """Whether a person asked for this run to be kept, and so vouches for it."""

    def __post_init__(self) -> None:
        if self.skill.state != "proposed":
            raise ValueError(f"{self.skill.name} is {self.skill.state}: only what is proposed is judged")

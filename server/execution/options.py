"""How a workflow is run, apart from what it is: bounds, observers, and where large values go."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from server.execution.spill import Redact, Spill, unredacted
from server.progress import ProgressListener, ignore_progress
from server.sandbox.sandbox import Sandbox
from skills_store.workflow.model import Workflow

__all__ = ["MAX_FOR_EACH", "MAX_SKILL_DEPTH", "RunOptions", "SkillResolver", "no_skills"]

MAX_FOR_EACH = 100
"""Items of one mapped node."""

MAX_SKILL_DEPTH = 5
"""Skills inside each other; the workflow itself is depth 0."""

SkillResolver = Callable[[str, int], Workflow | None]
"""From name and version of a skill to its workflow, None when there is no such version."""


def no_skills(name: str, version: int) -> Workflow | None:
    """Return None: no skill is known."""
    del name, version


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Everything about a run that is not its workflow, inputs, caller or catalog."""

    task: str | None = None
    """The task in a person's words, for the trace."""
    route: str | None = None
    """Which way the task went, for the trace; None: it was not solved but run."""
    route_reasons: tuple[str, ...] = ()
    listener: ProgressListener = ignore_progress
    timeout_seconds: float | None = None
    """Per call, where the node has none of its own; None: the server's."""
    concurrency: int = 8
    """Calls on their way at once, over all nodes."""
    skills: SkillResolver = no_skills
    clock: Callable[[], float] = time.time
    """Unix seconds."""
    id: str | None = None
    """Of the trace; None: a random one."""
    redact: Redact = unredacted
    """Takes secrets out of everything the trace holds."""
    sandbox: Sandbox | None = None
    """What runs the code of skills; None: nothing does, and such a node fails."""
    spill: Spill | None = None
    """Where values too large for the trace are kept whole; None: nowhere."""

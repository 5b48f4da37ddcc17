"""The ladder of a solve: what is tried after what, and what each rung cost.

Paper: FlowEvo (adaptive escalation; facts §3: one pass, two candidates at 0.5, evolution, one
reflection). Differs: the deterministic repairs, which cost no token, come before a second question;
evolution is the existing search over typed edits; a rung is left out where its budget is spent.
Climbing it is `server.bank.episode.escalating`.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

from skills_store.trace import Status

__all__ = ["LEVELS", "MODEL_LEVELS", "Level", "LevelReport"]

Level = Literal["plan", "repair", "sample", "evolve", "reflect"]
"""One plan at temperature 0; its deterministic repair; two plans at 0.5; search; one reflection."""
LEVELS: tuple[Level, ...] = get_args(Level)
MODEL_LEVELS: frozenset[Level] = frozenset({"plan", "sample", "reflect"})
"""Levels that ask a model."""


class LevelReport(BaseModel):
    """What one level did and cost."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    level: Level
    status: Status | None = None
    """Of the best workflow after it, None while there is none."""
    plans: int = 0
    """Plans the model gave that could be read."""
    tokens: int = 0
    """Prompt and answer together."""
    calls: int = 0
    candidates: int = 0
    seconds: float = 0.0
    cost_usd: float | None = None
    """None where no model was asked or its price is not known."""
    note: str = ""
    """Why it was left out, or what stood in its way; empty when nothing did."""

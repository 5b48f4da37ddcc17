"""The ways in which the planning benchmark asks for a plan."""

from __future__ import annotations

from dataclasses import dataclass

from server.planning.catalog_view import WHOLE_CATALOG_TOKENS
from server.planning.model_planner import Way

__all__ = ["CONDITIONS", "Condition"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One way: how the answer is constrained, and how much of the catalog is shown."""

    name: str
    way: Way
    whole_up_to: int = WHOLE_CATALOG_TOKENS
    """Tokens of catalog up to which every tool is shown."""


CONDITIONS: tuple[Condition, ...] = (
    Condition("constrained", "constrained"),
    Condition("free", "free"),
    Condition("two-stage", "two_stage"),
    Condition("constrained, retrieved tools only", "constrained", whole_up_to=0),
)

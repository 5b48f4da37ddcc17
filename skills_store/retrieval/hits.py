"""What a search finds: hits with their reasons, what is known beside the words, which hits are confusable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from skills_store.skill import Skill
from skills_store.utility import UseCounts

__all__ = ["SAME_PATTERN", "Circumstances", "SkillHit", "confusable"]

SAME_PATTERN: Final = 0.85
"""Likeness of two tasks, values aside, from which on they have the same pattern."""
_MARGIN: Final = 0.05
"""By how much the best hit must be ahead of the next to be clearly the one that is meant."""


@dataclass(frozen=True, slots=True)
class SkillHit:
    """A skill that a query found."""

    skill: Skill
    score: float
    """In (0, 1]."""
    reasons: tuple[str, ...]
    """Which words stand where, how the inputs fit, how its uses went, what speaks against it."""
    alike: float = 0.0
    """How much its own task and the query say the same, values aside, in [0, 1]."""


def _nothing(skill: Skill) -> float:  # noqa: ARG001  (the shape of what may be known)
    return 0.0


def _unused(name: str) -> UseCounts:  # noqa: ARG001
    return UseCounts()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of skills beside their words; each is asked of the likeliest only."""

    near: Mapping[str, float] = field(default_factory=dict[str, float])
    """How near a skill's meaning is to the task's, by name."""
    alike: Callable[[Skill], float] = _nothing
    """How much a skill's own task says the same, values aside. Those with the same pattern come first,
    and nothing after them scores higher."""
    risk: Callable[[Skill], float] = _nothing
    """How much speaks against a skill, in [0, 1)."""
    uses: Callable[[str], UseCounts] = _unused
    """Uses of a skill by its name."""


def confusable(hits: Sequence[SkillHit]) -> tuple[str, ...]:
    """Return the names of the first hits when they fit about alike, empty when one is clearly ahead.

    Paper: FlowEvo (routing; ambiguity margin 0.5 of a total near 5). Differs: 0.05 of a score in (0, 1].
    """
    alike = [
        hit.skill.name
        for hit in hits
        if hits[0].score - hit.score < _MARGIN
        and (hit.alike >= SAME_PATTERN) == (hits[0].alike >= SAME_PATTERN)
    ]
    return tuple(alike) if len(alike) > 1 else ()

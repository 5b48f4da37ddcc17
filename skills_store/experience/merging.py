"""Which lessons are one: alike in words, or in meaning where an embedder is at hand, about the same tools.

Paper: AgentEvolver through ReMe (cosine above 0.5 against the store and the batch; facts §4.3).
Differs: tools and fault have to be the same too, and without an embedder word sets are compared
(Jaccard of at least 0.5); the newer evidence is added to the older unit, so that its counts stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skills_store.experience.unit import ExperienceUnit

__all__ = ["ALIKE", "Likeness", "jaccard", "merged", "near_unit", "of_same_matter"]

ALIKE = 0.5
_EVIDENCE = 20

Likeness = Callable[[ExperienceUnit, ExperienceUnit], float]
"""How alike two units are, in [0, 1]."""


def jaccard(one: ExperienceUnit, other: ExperienceUnit) -> float:
    """Return the share of words that two units have in common, in [0, 1]."""
    ours, theirs = one.word_set, other.word_set
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else 1.0


def of_same_matter(unit: ExperienceUnit, kept: Sequence[ExperienceUnit]) -> list[ExperienceUnit]:
    """Return the kept units of the same kind about the same tools and fault: what may be one with it."""
    return [
        other
        for other in kept
        if (other.kind, other.tools, other.fault, other.instead_of)
        == (unit.kind, unit.tools, unit.fault, unit.instead_of)
    ]


def near_unit(
    unit: ExperienceUnit, kept: Sequence[ExperienceUnit], likeness: Likeness = jaccard
) -> ExperienceUnit | None:
    """Return the kept unit that says the same, None where none does."""
    alike = [(likeness(unit, other), other) for other in of_same_matter(unit, kept)]
    best = max(alike, key=lambda pair: pair[0], default=None)
    return best[1] if best is not None and (best[0] >= ALIKE or best[1].id == unit.id) else None


def merged(old: ExperienceUnit, new: ExperienceUnit) -> ExperienceUnit:
    """Return an older unit with the evidence of a newer one; more of it makes it more certain."""
    evidence = tuple(dict.fromkeys((*old.evidence, *new.evidence)))[-_EVIDENCE:]
    grown = len(evidence) > len(old.evidence)
    confidence = old.confidence + (1 - old.confidence) * 0.25 if grown else old.confidence
    return old.model_copy(
        update={
            "evidence": evidence,
            "confidence": confidence,
            "expires_at": max(old.expires_at, new.expires_at),
        }
    )

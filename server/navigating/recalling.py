"""Which lessons fit a task, and whether this attempt at it uses them: a share does not, by a fixed pattern.

Paper: AgentEvolver (top 3; a share η of rollouts sees experience, η 0.5; facts §4.3). Differs: which
attempts go without is a pattern over a unit's own attempts and not a coin, so that every unit is
compared with its absence after the same number of tasks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.similarity import words
from catalog.tools import ToolId
from server.navigating.writing import situation_of
from skills_store.experience.unit import ExperienceUnit
from skills_store.workflow.model import Workflow

__all__ = ["ETA", "TOP_UNITS", "Guide", "guide_for", "is_guided", "preferring"]

TOP_UNITS = 3
ETA = 0.5
"""Share of attempts that use experience."""
_LEAST = 0.34
"""Share of a unit's words that a task has to say, weighed by how rare they are."""


@dataclass(frozen=True, slots=True)
class Guide:
    """The units that fit a task, best first, and whether this attempt follows them."""

    units: tuple[ExperienceUnit, ...] = ()
    guided: bool = False

    @property
    def followed(self) -> tuple[ExperienceUnit, ...]:
        """The units this attempt uses."""
        return self.units if self.guided else ()


def is_guided(attempts: int, eta: float = ETA) -> bool:
    """Return whether the attempt after so many others uses experience: evenly spread, the first one does.

    Raises:
        ValueError: the share is not in [0, 1].
    """
    if not 0 <= eta <= 1:
        raise ValueError(f"a share of attempts is in [0, 1], not {eta}")
    return math.ceil((attempts + 1) * eta) > math.ceil(attempts * eta)


def guide_for(
    task: str,
    units: Sequence[ExperienceUnit],
    known: frozenset[ToolId],
    now: float,
    nearness: Mapping[str, float] | None = None,
) -> Guide:
    """Return what experience says of a task.

    Args:
        task: in words.
        units: all that are kept.
        known: tools there are; a unit about another one fits nothing.
        now: Unix seconds.
        nearness: by unit, how near it is in meaning, in [0, 1]; None: words alone are compared.
    """
    said = frozenset(words(situation_of(task)))
    alive = [unit for unit in units if unit.is_alive(now) and known.issuperset(unit.tools)]
    rarity = _rarity(alive)
    scored = [(_fit(said, unit, rarity, nearness or {}), unit) for unit in alive]
    fitting = sorted((pair for pair in scored if pair[0] >= _LEAST), key=lambda pair: _order(*pair))
    chosen = tuple(unit for _, unit in fitting[:TOP_UNITS])
    return Guide(chosen, bool(chosen) and is_guided(chosen[0].tally.attempts))


def _order(fit: float, unit: ExperienceUnit) -> tuple[float, str]:
    return -(fit + 0.2 * unit.confidence + 0.2 * (unit.tally.contrast or 0.0)), unit.id


def _rarity(units: Sequence[ExperienceUnit]) -> Mapping[str, float]:
    said = [set(words(unit.when_to_use)) for unit in units]
    every = {word for one in said for word in one}
    return {word: math.log(1 + len(said) / sum(word in one for one in said)) for word in every}


def _fit(
    said: frozenset[str], unit: ExperienceUnit, rarity: Mapping[str, float], near: Mapping[str, float]
) -> float:
    own = set(words(unit.when_to_use))
    union = sum(rarity.get(word, 1.0) for word in own | said)
    shared = sum(rarity.get(word, 1.0) for word in own & said) / union if union else 0.0
    return max(shared, near.get(unit.id, 0.0))


def preferring(plans: Sequence[Workflow], units: Sequence[ExperienceUnit]) -> list[Workflow]:
    """Return plans with those first that call what experience says, and those last that it warns of."""

    def place(plan: Workflow) -> float:
        called = tuple(node.tool for node in plan.nodes if node.tool is not None)
        score = 0.0
        for unit in units:
            match unit.kind:
                case "success":
                    score -= float(tuple(dict.fromkeys(called)) == unit.tools)
                case "comparison":
                    score += float(unit.instead_of in called) - float(unit.tools[0] in called)
                case "failure":
                    score += 0.5 * float(unit.tools[0] in called)
        return score

    return sorted(plans, key=place)

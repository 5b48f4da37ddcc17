"""Whether a skill is left out of an episode on purpose, so that it can be compared with its absence.

Never where somebody asked for it, where it is a person's, or where doing without it may cost a
write. The coin and what it is worth are `skills_store.contrast`.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.effects import EffectTable
from skills_store.contrast import Contrast, is_withheld, share_for
from skills_store.episodes import Arm
from skills_store.skill import Skill

__all__ = ["Draw", "draw", "why_not_compared"]


@dataclass(frozen=True, slots=True)
class Draw:
    """How the coin fell for one episode of a skill. `arm` is None where no coin was thrown."""

    skill: Skill
    arm: Arm | None = None
    share: float = 0.0
    stratum: str = ""

    @property
    def is_withheld(self) -> bool:
        """Whether the episode does without the skill."""
        return self.arm == "withheld"

    @property
    def reason(self) -> str:
        """Why the skill is left out, for whoever reads the report."""
        named = f"{self.skill.name}@{self.skill.version}"
        return (
            f"{named} is left out of this one to compare it with its absence ({self.share:.0%} of episodes)"
        )


def why_not_compared(skill: Skill, effects: EffectTable, *, is_pinned: bool) -> str:
    """Return why a skill is never withheld, empty when it may be."""
    if skill.origin == "user":
        return "a person wrote it"
    if is_pinned:
        return "a person pinned it"
    if skill.state not in ("active", "context_only"):
        return f"it is {skill.state}"
    costly = [str(pin.tool) for pin in skill.pins if not effects.effect(pin.tool).is_free]
    return f"doing without it may cost a write ({costly[0]})" if costly else ""


def draw(skill: Skill, contrast: Contrast, number: int, task: str, share: float, stratum: str) -> Draw:
    """Throw the coin for one eligible episode.

    Args:
        skill: that would be used.
        contrast: what is known of it so far.
        number: of trials it has had.
        task: in words.
        share: configured, 0 to withhold never.
        stratum: with which other episodes this one is compared.
    """
    chance = share_for(contrast, share)
    if chance <= 0:
        return Draw(skill)
    is_out = is_withheld(skill.name, skill.version, number, task, chance)
    return Draw(skill, "withheld" if is_out else "guided", chance, stratum)

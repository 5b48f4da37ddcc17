"""An experience unit and what its uses say of it: values only.

Paper: AgentEvolver (self-navigating, §3.2; facts §4.3: `when_to_use`, `content`, utility over frequency,
5 and 0.5). Differs: attempts without the unit are counted beside those with it, and where both are
known that contrast decides, so that a hard family of tasks does not cost a useful unit its place.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from catalog.canonical import digest
from catalog.similarity import words
from catalog.tools import ToolId

__all__ = ["LIFETIME_SECONDS", "ExperienceKind", "ExperienceUnit", "Tally", "unit_id"]

ExperienceKind = Literal["success", "failure", "comparison"]

LIFETIME_SECONDS = 90 * 86_400.0
"""After so long without new evidence a unit is forgotten: servers change."""
_OFTEN = 5
_USEFUL = 0.5
_LEAST_GUIDED = 5
_LEAST_UNGUIDED = 3
_MARGIN = 0.1


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Tally(_Record):
    """Attempts at tasks a unit fits; those that the world stopped are in none of the counts."""

    guided: int = Field(default=0, ge=0)
    """With the unit shown or followed."""
    guided_right: int = Field(default=0, ge=0)
    helped: int = Field(default=0, ge=0)
    """Guided ones that were right and in which a tool of the unit made a good step."""
    unguided: int = Field(default=0, ge=0)
    """Without any experience, by the fixed pattern."""
    unguided_right: int = Field(default=0, ge=0)

    @property
    def attempts(self) -> int:
        return self.guided + self.unguided

    @property
    def contrast(self) -> float | None:
        """Success with the unit minus success without, in [-1, 1]; None while too little is known."""
        if self.guided < _LEAST_GUIDED or self.unguided < _LEAST_UNGUIDED:
            return None
        return self.guided_right / self.guided - self.unguided_right / self.unguided


class ExperienceUnit(_Record):
    """One lesson. Its text is made of the caller's words, names of tools and classes of faults alone."""

    id: str
    kind: ExperienceKind
    when_to_use: str = Field(min_length=1, max_length=400)
    content: str = Field(min_length=1, max_length=600)
    tools: tuple[ToolId, ...] = Field(min_length=1, max_length=12)
    """What it says to call, in order; for a failure what it warns of."""
    instead_of: ToolId | None = None
    """For a comparison that swapped a tool: the one that failed."""
    fault: str | None = None
    """Class of the fault it is about, None for a success."""
    evidence: tuple[str, ...] = Field(default=(), max_length=20)
    """Ids of traces, the newest last."""
    confidence: float = Field(default=0.5, ge=0.0, le=1.0)
    tally: Tally = Tally()
    written_by: Literal["template", "model"] = "template"
    created_at: float = 0.0
    """Unix seconds."""
    expires_at: float = 0.0
    """Unix seconds; new evidence moves it on."""

    @property
    def text(self) -> str:
        """The unit as a prompt shows it, on one line."""
        return f"When to use: {self.when_to_use} Content: {self.content}"

    def is_alive(self, now: float) -> bool:
        """Return whether it is to be kept: not expired, and not shown to be of no use."""
        if now >= self.expires_at:
            return False
        contrast = self.tally.contrast
        if contrast is not None:
            return contrast > -_MARGIN and (contrast >= _MARGIN or not self._is_useless)
        return not self._is_useless

    @property
    def _is_useless(self) -> bool:
        tally = self.tally
        return tally.guided >= _OFTEN and tally.helped / tally.guided < _USEFUL

    def seen(self, *, guided: bool, right: bool, helped: bool) -> ExperienceUnit:
        """Return the unit with one more attempt counted."""
        add = {"guided": guided, "guided_right": guided and right, "helped": guided and helped}
        add |= {"unguided": not guided, "unguided_right": not guided and right}
        counts = self.tally.model_dump()
        tally = Tally.model_validate({name: counts[name] + int(more) for name, more in add.items()})
        return self.model_copy(update={"tally": tally})

    @property
    def word_set(self) -> frozenset[str]:
        """What is compared between units: the words of when and what, and the tools' names."""
        names = " ".join(tool.tool for tool in self.tools)
        return frozenset(words(f"{self.when_to_use} {self.content} {names}"))


def unit_id(kind: ExperienceKind, when_to_use: str, tools: tuple[ToolId, ...], fault: str | None) -> str:
    """Return the identity of a lesson: the same lesson learned again is the same unit."""
    said = {
        "kind": kind,
        "when": sorted(words(when_to_use)),
        "tools": [str(t) for t in tools],
        "fault": fault,
    }
    return digest(said).split(":")[-1][:12]

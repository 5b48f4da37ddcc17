"""What the commands on experience answer, as data: the stable keys of `skillbank experience … --json`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from skills_store.experience.unit import ExperienceUnit

__all__ = ["DroppedReport", "ExperienceReport", "UnitReport"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class UnitReport(_Record):
    """One unit, and what its attempts say of it."""

    unit: ExperienceUnit
    contrast: float | None
    """Success with it minus success without it, in [-1, 1]; None while too few attempts are known."""


class ExperienceReport(_Record):
    """All units that are kept, the most used first."""

    units: tuple[UnitReport, ...]


class DroppedReport(_Record):
    """Units that were forgotten."""

    dropped: tuple[str, ...]

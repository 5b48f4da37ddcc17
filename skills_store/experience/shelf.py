"""The storage port of experience units, with what a store in memory keeps; one principal's are its own."""

from __future__ import annotations

from threading import RLock
from typing import Protocol

from skills_store.experience.unit import ExperienceUnit

__all__ = ["UNITS_KEPT", "ExperienceStore", "MemoryExperiences"]

UNITS_KEPT = 1_000
"""Units of one principal; adding one more drops the one that expires first."""


class ExperienceStore(Protocol):
    """The experience of one principal."""

    def put(self, unit: ExperienceUnit) -> None:
        """Keep a unit in place of one of the same id."""
        ...

    def count(self, unit_id: str, *, guided: bool, right: bool, helped: bool) -> ExperienceUnit | None:
        """Count one attempt and return the unit as it is then; None where it is gone."""
        ...

    def units(self) -> list[ExperienceUnit]:
        """Return all that are kept, the oldest first."""
        ...

    def drop(self, unit_id: str) -> bool:
        """Forget one; False where there is none of this id."""
        ...


class MemoryExperiences:
    """Units that live as long as their process."""

    def __init__(self) -> None:
        self._kept: dict[str, ExperienceUnit] = {}
        self._lock = RLock()

    def put(self, unit: ExperienceUnit) -> None:
        with self._lock:
            self._kept[unit.id] = unit
            while len(self._kept) > UNITS_KEPT:
                del self._kept[min(self._kept.values(), key=lambda kept: (kept.expires_at, kept.id)).id]

    def count(self, unit_id: str, *, guided: bool, right: bool, helped: bool) -> ExperienceUnit | None:
        with self._lock:
            kept = self._kept.get(unit_id)
            if kept is None:
                return None
            self._kept[unit_id] = kept.seen(guided=guided, right=right, helped=helped)
            return self._kept[unit_id]

    def units(self) -> list[ExperienceUnit]:
        with self._lock:
            return sorted(self._kept.values(), key=lambda unit: (unit.created_at, unit.id))

    def drop(self, unit_id: str) -> bool:
        with self._lock:
            return self._kept.pop(unit_id, None) is not None

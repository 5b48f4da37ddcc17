"""Looking at what was learned, and forgetting of it what a person does not want."""

from __future__ import annotations

from collections.abc import Sequence

from server.bank.context import Context
from server.bank.errors import UnknownExperience
from server.reports.experience import DroppedReport, ExperienceReport, UnitReport
from skills_store.experience.unit import ExperienceUnit

__all__ = ["drop_experience", "list_experience", "show_experience"]


def list_experience(context: Context) -> ExperienceReport:
    """Return the principal's units, those with most attempts first."""
    units = context.store.experiences(context.principal).units()
    ordered = sorted(units, key=lambda unit: (-unit.tally.attempts, unit.id))
    return ExperienceReport(units=tuple(map(_told, ordered)))


def show_experience(unit_id: str, context: Context) -> UnitReport:
    """Return one unit.

    Raises:
        UnknownExperience: none has this id.
    """
    for unit in context.store.experiences(context.principal).units():
        if unit.id == unit_id:
            return _told(unit)
    raise _unknown(unit_id)


def drop_experience(unit_ids: Sequence[str], context: Context) -> DroppedReport:
    """Forget units, all of them where none is named.

    Raises:
        UnknownExperience: one of them is not kept; nothing was forgotten.
    """
    shelf = context.store.experiences(context.principal)
    kept = [unit.id for unit in shelf.units()]
    for unit_id in unit_ids:
        if unit_id not in kept:
            raise _unknown(unit_id)
    return DroppedReport(dropped=tuple(unit_id for unit_id in unit_ids or kept if shelf.drop(unit_id)))


def _told(unit: ExperienceUnit) -> UnitReport:
    return UnitReport(unit=unit, contrast=unit.tally.contrast)


def _unknown(unit_id: str) -> UnknownExperience:
    return UnknownExperience(f"no experience {unit_id!r} is kept: `skillbank experience list` shows what is")

"""Keeping what a run teaches: each lesson once, in a model's words where there is one, the dead ones gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from server.backends.errors import BackendError
from server.bank.context import Context
from server.navigating.wording import say_better
from server.navigating.writing import Lesson, units_of
from server.planning.conversation import MeteredBackend, converse
from server.progress import Progress
from skills_store.experience.merging import Likeness, jaccard, merged, near_unit, of_same_matter
from skills_store.experience.unit import ExperienceUnit
from skills_store.trace import Trace

__all__ = ["keep_lesson", "keep_units"]

_TOKENS = 2_000
"""Of a model, for wording one lesson."""


async def keep_lesson(lesson: Lesson, context: Context) -> list[ExperienceUnit]:
    """Keep what a run teaches, each lesson once: what says the same as a kept one is its evidence."""
    lesson = replace(lesson, task=str(context.redact(lesson.task)))
    return await keep_units(units_of(lesson, context.clock()), context, lesson.trace)


async def keep_units(
    units: Iterable[ExperienceUnit], context: Context, trace: Trace | None = None
) -> list[ExperienceUnit]:
    """Keep units, each once, and forget those that are dead.

    Args:
        units: new ones.
        context: the bank.
        trace: that they are of, so that a model may word them without quoting it; None: none does.
    """
    now, shelf = context.clock(), context.store.experiences(context.principal)
    kept = shelf.units()
    for unit in kept:
        if not unit.is_alive(now):
            shelf.drop(unit.id)
    learned: list[ExperienceUnit] = []
    for unit in units:
        alive = [one for one in {one.id: one for one in (*kept, *learned)}.values() if one.is_alive(now)]
        near = near_unit(unit, alive, await _likeness(unit, alive, context))
        if near is not None:
            learned.append(merged(near, unit))
        else:
            learned.append(unit if trace is None else await _worded(unit, trace, context))
        shelf.put(learned[-1])
    return learned


async def _likeness(unit: ExperienceUnit, kept: Sequence[ExperienceUnit], context: Context) -> Likeness:
    """Return what compares a new unit with those kept: words, and meaning where a model of it is loaded."""
    others = [other.when_to_use for other in of_same_matter(unit, kept)]
    near = await context.finder.compare(unit.when_to_use, others) or {}
    return lambda mine, other: max(jaccard(mine, other), near.get(other.when_to_use, 0.0))


async def _worded(unit: ExperienceUnit, trace: Trace, context: Context) -> ExperienceUnit:
    """Return a new lesson in a model's words, where one is configured for that and what it says is sound."""
    if "explorer" not in context.models.configured:  # not the model that plans: each run would ask it
        return unit
    try:
        backend = await context.models.backend("explorer")
        return (
            unit
            if backend is None
            else await converse(MeteredBackend(backend, _TOKENS), say_better(unit, trace))
        )
    except BackendError as error:
        context.progress(Progress("learn", f"a lesson stays as the template words it: {error}"))
        return unit

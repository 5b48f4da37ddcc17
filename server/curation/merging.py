"""Which skills could be one: near-duplicates among those in use, with the reason, for a person to judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from server.planning.router import example_of
from server.planning.task_reading import pattern_of
from server.reports.audit import MergeSuggestion
from skills_store.skill import Skill

__all__ = ["merge_suggestions"]

_ALIKE = 0.85
_MOST = 50


def merge_suggestions(skills: Sequence[Skill]) -> list[MergeSuggestion]:
    """Return pairs of skills that make the same calls, or answer the same tasks, the older one to be kept."""
    found = [suggestion for one, two in _pairs(skills) if (suggestion := _suggestion(one, two)) is not None]
    return found[:_MOST]


def _pairs(skills: Sequence[Skill]) -> Iterator[tuple[Skill, Skill]]:
    """Yield the pairs that call the same tools; others are not compared."""
    by_tools: dict[frozenset[str], list[Skill]] = {}
    for skill in skills:
        by_tools.setdefault(frozenset(str(pin.tool) for pin in skill.pins), []).append(skill)
    for group in by_tools.values():
        yield from combinations(sorted(group, key=lambda skill: (skill.created_at, skill.name)), 2)


def _suggestion(one: Skill, two: Skill) -> MergeSuggestion | None:
    if one.shape_hash == two.shape_hash:
        return MergeSuggestion(
            keep=one.name, merge=two.name, why="they make the same calls with other constants"
        )
    tasks = (one.provenance.task, two.provenance.task)
    if tasks[0] and tasks[1] and pattern_of(tasks[0], example_of(one)).likeness(tasks[1]) >= _ALIKE:
        return MergeSuggestion(
            keep=one.name, merge=two.name, why="their tasks say the same with other values"
        )
    return None

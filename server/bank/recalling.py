"""What the bank knows for a task: the skills that fit it, what speaks against each, how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from catalog.search import EVERYTHING, Scope, SearchMethod
from server.bank.context import Context
from server.planning.router import Trust
from skills_store.doubts import USES_LOOKED_AT, Doubts, doubts_of
from skills_store.retrieval import Circumstances, SkillHit, confusable
from skills_store.skill import Skill
from skills_store.utility import success_rate

__all__ = ["Recalled", "cleared_at", "doubts_about", "recall", "trust_in"]

_AUDITS_READ = 20
_POOL_PER_HIT = 4
"""Skills whose meaning is compared for each hit that is wanted; uses and inputs then order them."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """The skills that fit a task, best first."""

    hits: Sequence[SkillHit]
    method: SearchMethod
    note: str
    """Why words alone were compared, empty when meanings were too."""
    confusable: tuple[str, ...]
    """Names of the first hits when they fit about alike, so that none is clearly meant; else empty."""


async def recall(task: str, limit: int, context: Context, scope: Scope = EVERYTHING) -> Recalled:
    """Return the active skills, and those kept as guidance, that fit a task, best first.

    Args:
        task: in words.
        limit: most hits.
        context: the bank.
        scope: what the asking principal may know of.
    """
    near, method, note = await _meaning(task, _POOL_PER_HIT * limit, context, scope)
    beside = Circumstances(
        near,
        partial(context.task_patterns().likeness, task),
        lambda skill: doubts_about(skill, context).risk,
        context.store.use_counts,
    )
    hits = context.skill_index().search(task, limit, beside, scope.skills)
    return Recalled(hits, method, note, confusable(hits))


async def _meaning(
    task: str, limit: int, context: Context, scope: Scope
) -> tuple[Mapping[str, float], SearchMethod, str]:
    """Return how near skills are in meaning, by what they were compared, and why by words alone."""
    tools, skills = tuple(context.known()), context.findable_skills()
    findings = await context.finder.meanings(task, limit, tools, skills, scope)
    if findings is None:
        return {}, "lexical", context.finder.note
    near = {hit.entry.owner: hit.near for hit in findings.found.hits if hit.near is not None}
    return near, findings.found.method, findings.note


def doubts_about(skill: Skill, context: Context) -> Doubts:
    """Return what speaks against a skill, by its latest uses and what was said of them."""
    uses = context.store.uses(skill.name, USES_LOOKED_AT)
    return doubts_of(uses, skill.version, context.store.trace, context.clock(), cleared_at(skill, context))


def cleared_at(skill: Skill, context: Context) -> float:
    """Return when a version last passed an audit, in Unix seconds; minus infinity when it never did."""
    audits = context.store.audits(skill.name, _AUDITS_READ)
    return max((a.at for a in audits if a.version == skill.version and a.passed), default=-math.inf)


def trust_in(skill: Skill, context: Context) -> Trust:
    """Return how far use has shown that a skill can be run unasked."""
    doubts = doubts_about(skill, context)
    rate = success_rate(context.store.use_counts(skill.name))
    return Trust(max(0.0, rate - doubts.risk), doubts.veto)

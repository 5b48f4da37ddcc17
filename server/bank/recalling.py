"""What the bank knows for a task: the skills that fit it, what speaks against each, how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from pydantic import JsonValue

from catalog.search import EVERYTHING, Scope, SearchMethod
from server.bank.context import Context
from server.planning.router import Direct, Trust
from server.planning.task_pieces import look
from skills_store.doubts import USES_LOOKED_AT, Doubts, doubts_of
from skills_store.retrieval import Circumstances, SkillHit, confusable
from skills_store.skill import Skill
from skills_store.trace import Trace
from skills_store.utility import Use, success_rate

__all__ = [
    "Recalled",
    "cleared_at",
    "doubts_about",
    "is_given_new_words",
    "recall",
    "trust_in",
    "was_right_with",
]

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


def was_right_with(direct: Direct, context: Context) -> bool | None:
    """Return whether a skill was right or wrong the last time it was given the words it would be given now.

    Numbers do not count, since a family varies them. A tool that refused the words once is enough, a
    check that said no has to do so twice: a check may be wrong.

    Paper: FlowEvo (negative preconditions; facts §3.2): where a skill must not be used is kept with it.
    Differs: it is read from its kept runs, each time, and an audit that passes ends it.

    Returns:
        None where nothing is known, or the skill takes no words.
    """
    skill, words = direct.skill, _words(direct.inputs)
    if not words:
        return None
    since = cleared_at(skill, context)
    alike = [
        (use, trace)
        for use in context.store.uses(skill.name, USES_LOOKED_AT)
        if use.version == skill.version and not use.world_fault and use.route != "seeded" and use.at > since
        if (trace := context.store.trace(use.trace) if use.trace else None) is not None
        if _words(trace.inputs) == words
    ]
    failed = list(takewhile(lambda one: not one[0].succeeded, alike))
    if len(failed) > 1 or any(_was_refused(*one) for one in failed):
        return False
    is_tested = any(_words(test.inputs) == words for test in skill.tests)
    return True if is_tested or any(use.succeeded for use, _ in alike) else None


def is_given_new_words(direct: Direct, context: Context) -> bool:
    """Return whether a skill would be given words of which nothing is known."""
    return bool(_words(direct.inputs)) and was_right_with(direct, context) is None


def _words(inputs: Mapping[str, JsonValue]) -> dict[str, str]:
    texts = {name: look(value) for name, value in inputs.items() if isinstance(value, str)}
    return {name: said for name, said in texts.items() if any(letter.isalpha() for letter in said)}


def _was_refused(use: Use, trace: Trace) -> bool:
    """Return whether something else than a check failed."""
    own = [fault.kind for fault in trace.faults if fault.evidence == "workflow"]
    return not use.succeeded and any(kind != "check_failed" for kind in own)

"""The search index over skills, in memory: what covers most of a task, reranked by fit, use and risk."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Final

from skills_store.retrieval.hits import SAME_PATTERN, Circumstances, SkillHit
from skills_store.retrieval.query import Query, read_query
from skills_store.retrieval.skill_text import SkillText, fit_of, places, skill_text
from skills_store.skill import Skill, SkillState
from skills_store.utility import UseCounts, success_rate

__all__ = ["NOT_RECALLED", "SkillIndex"]

NOT_RECALLED: Final[frozenset[SkillState]] = frozenset({"shadow", "suppressed", "rejected", "retired"})
"""States whose skills nobody is led to by searching."""

_UNHEARD: Final = 0.5
"""Share of its weight that a word counts against a skill when no skill has it: likely a value."""
_FIT: Final = 0.15
_UTILITY: Final = 0.15
_MEANT: Final = 0.35
"""Nearness of meaning from which on it counts as coverage, whatever words are used."""
_RISK: Final = 0.5
"""Part of a score that what speaks against a skill can take."""
_POOL: Final = 40
_POOL_PER_HIT: Final = 4
"""Entries that are reranked, by coverage alone, for each hit that is wanted."""


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A skill that may be a hit, and all that its place among them depends on."""

    entry: SkillText
    score: float
    likeness: float
    fit: float | None
    uses: UseCounts
    risk: float = 0.0

    @property
    def is_patterned(self) -> bool:
        return self.likeness >= SAME_PATTERN

    def place(self) -> tuple[bool, float, str]:
        """Return what orders hits: the same pattern first, then the score, then the name."""
        return not self.is_patterned, -self.score, self.entry.skill.name

    def against(self, risk: float) -> _Weighed:
        """Return it less what speaks against it."""
        return replace(self, score=self.score * (1 - _RISK * risk), risk=risk)


class SkillIndex:
    """A search index over skills, one version of each name, that follows them as they change.

    Args:
        skills: heads, in any state; those `NOT_RECALLED` are left out.

    Paper: FlowEvo (retrieval): recall by overlap of family, signature and pattern, then rerank by
        compatibility and utility, less what past failures make of its risk.
    Differs: no benchmark or family labels exist here; compatibility is whether the query holds
        values for the inputs, utility is the smoothed rate; both scale the overlap, so that a
        skill nothing in the query speaks of is never a hit. Equal patterns rank first outright.
    """

    def __init__(self, skills: Iterable[Skill] = ()) -> None:
        self._entries: dict[str, SkillText] = {}
        self._postings: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self.update(skills)

    def update(self, skills: Iterable[Skill]) -> None:
        """Make these the skills; what is the same object as before is not read again."""
        wanted = {skill.name: skill for skill in skills if skill.state not in NOT_RECALLED}
        for name in [name for name, entry in self._entries.items() if wanted.get(name) is not entry.skill]:
            entry = self._entries.pop(name)
            for word in entry.weights:
                del self._postings[word][name]
        for name, skill in wanted.items():
            if name not in self._entries:
                entry = self._entries[name] = skill_text(skill)
                for word, weight in entry.weights.items():
                    self._postings[word][name] = weight

    def search(
        self,
        query: str,
        limit: int = 10,
        beside: Circumstances | None = None,
        allowed: frozenset[str] | None = None,
    ) -> list[SkillHit]:
        """Return the skills that fit a task best, best first, equal ones ordered by name.

        Args:
            query: the task.
            limit: most hits.
            beside: what is known of skills beside their words; None: nothing.
            allowed: names of the skills that may be found; others do not count either. None: all.
        """
        beside = beside or Circumstances()
        asked = read_query(query)
        meant = {name: share for name, share in beside.near.items() if share >= _MEANT}
        covered = self._coverage(asked, allowed)
        for name, share in meant.items():
            if name in self._entries and (allowed is None or name in allowed):
                covered[name] = max(covered.get(name, 0.0), share)
        pool = [self._entries[name] for name in _best(covered, max(_POOL_PER_HIT * limit, _POOL))]
        weighed = [self._weighed(entry, covered[entry.skill.name], asked, beside) for entry in pool]
        order = sorted(weighed, key=_Weighed.place)[: 2 * limit]
        kept = sorted((one.against(beside.risk(one.entry.skill)) for one in order), key=_Weighed.place)
        hits: list[SkillHit] = []
        for one in kept[:limit]:
            score = min(one.score, hits[-1].score if hits else 1.0)
            same = (f"same task pattern: {one.likeness:.2f}",) if one.is_patterned else ()
            against = (f"what speaks against it: {one.risk:.2f}",) if one.risk else ()
            told = (*same, *_told(one, asked, meant), *against)
            hits.append(SkillHit(one.entry.skill, score, told, one.likeness))
        return hits

    def _weighed(self, entry: SkillText, coverage: float, query: Query, beside: Circumstances) -> _Weighed:
        skill = entry.skill
        likeness, uses = beside.alike(skill), beside.uses(skill.name)
        if likeness >= SAME_PATTERN:
            coverage = max(coverage, likeness)
        if skill.name in (query.text, "_".join(query.terms)):
            coverage = 1.0
        fit, rate = fit_of(entry, query), success_rate(uses)
        trust = 1 - _FIT - _UTILITY + _FIT * (1.0 if fit is None else fit) + _UTILITY * rate
        return _Weighed(entry, coverage * trust, likeness, fit, uses)

    def _coverage(self, query: Query, allowed: frozenset[str] | None) -> dict[str, float]:
        """Return the share of the query each skill covers, rare words weighing more."""
        total = len(self._entries) if allowed is None else len(allowed & self._entries.keys())
        whole = 0.0
        covered: defaultdict[str, float] = defaultdict(float)
        for term in query.terms:
            postings = self._postings.get(term, {})
            if allowed is not None:
                postings = {name: weight for name, weight in postings.items() if name in allowed}
            rarity = math.log(1 + total / (len(postings) or 1))
            whole += rarity if postings else _UNHEARD * rarity
            for name, weight in postings.items():
                covered[name] += rarity * weight
        return {name: share / whole for name, share in covered.items()}


def _best(covered: Mapping[str, float], count: int) -> list[str]:
    """Return the names that cover most, equal ones in order."""
    if len(covered) > count:
        least = nlargest(count, covered.values())[-1]
        covered = {name: share for name, share in covered.items() if share >= least}
    return sorted(covered, key=lambda name: (-covered[name], name))[:count]


def _told(one: _Weighed, query: Query, meant: Mapping[str, float]) -> Iterator[str]:
    name = one.entry.skill.name
    if name in meant:
        yield f"meaning: {meant[name]:.2f}"
    yield from places(one.entry, query)
    yield from _circumstances(one)


def _circumstances(one: _Weighed) -> Iterator[str]:
    if one.fit is not None:
        yield f"values for {one.fit:.0%} of its required inputs are in the query"
    if one.uses.judged:
        yield f"{one.uses.successes} of {one.uses.judged} uses succeeded"
    if one.entry.skill.state != "active":
        yield f"it is {one.entry.skill.state}"

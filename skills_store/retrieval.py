"""Finds skills for a task in words: an inverted index over the heads, in memory.

A score says how much of what the query asks for a skill covers, so that it means the same in a
bank of one skill and of thousands; bm25 does not, a word that half of a bank has counts nothing
there. Whether a hit is run, shown to a planner or left alone belongs to the router.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from typing import Final

from catalog.canonical import JsonValue
from catalog.search import Entry
from catalog.search.entries import parameter_texts, spread
from catalog.similarity import words
from catalog.tools import JsonSchema
from catalog.vocabulary import STOP_WORDS
from skills_store.skill import Skill, SkillState
from skills_store.utility import UseCounts, success_rate

__all__ = [
    "NOT_RECALLED",
    "SAME_PATTERN",
    "Circumstances",
    "SkillHit",
    "SkillIndex",
    "confusable",
    "skill_entry",
]

NOT_RECALLED: Final[frozenset[SkillState]] = frozenset({"shadow", "suppressed", "rejected", "retired"})
"""States whose skills nobody is led to by searching."""

_FIELDS: Final[dict[str, float]] = {
    "name": 1.0,
    "task": 1.0,
    "tags": 0.8,
    "description": 0.7,
    "guidance": 0.7,
    "inputs": 0.6,
}
"""Where a word may stand, and what share of it counts as covered there."""

_UNHEARD: Final = 0.5
"""Share of its weight that a word counts against a skill when no skill has it: likely a value."""
_FIT: Final = 0.15
_UTILITY: Final = 0.15
_MEANT: Final = 0.35
"""Nearness of meaning from which on it counts as coverage, whatever words are used."""
SAME_PATTERN: Final = 0.85
"""Likeness of two tasks, values aside, from which on they have the same pattern."""
_RISK: Final = 0.5
"""Part of a score that what speaks against a skill can take."""
_MARGIN: Final = 0.05
"""By how much the best hit must be ahead of the next to be clearly the one that is meant."""
_POOL: Final = 40
_POOL_PER_HIT: Final = 4
"""Entries that are reranked, by coverage alone, for each hit that is wanted."""
_LONGEST_QUERY: Final = 4_000
_MOST_TERMS: Final = 64

_WORD: Final = re.compile(r"\w+")
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?\b")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|`[^`]*`|(?<!\w)'[^']*'(?!\w)|\bhttps?://\S+")


@dataclass(frozen=True, slots=True)
class SkillHit:
    """A skill that a query found."""

    skill: Skill
    score: float
    """In (0, 1]."""
    reasons: tuple[str, ...]
    """Which words stand where, how the inputs fit, how its uses went, what speaks against it."""
    alike: float = 0.0
    """How much its own task and the query say the same, values aside, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class _Query:
    """A task in words, with the values in it told apart."""

    text: str
    terms: tuple[str, ...]
    numbers: int
    quoted: int


def _nothing(skill: Skill) -> float:  # noqa: ARG001  (the shape of what may be known)
    return 0.0


def _unused(name: str) -> UseCounts:  # noqa: ARG001
    return UseCounts()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of skills beside their words; each is asked of the likeliest only."""

    near: Mapping[str, float] = field(default_factory=dict[str, float])
    """How near a skill's meaning is to the task's, by name."""
    alike: Callable[[Skill], float] = _nothing
    """How much a skill's own task says the same, values aside. Those with the same pattern come first,
    and nothing after them scores higher."""
    risk: Callable[[Skill], float] = _nothing
    """How much speaks against a skill, in [0, 1)."""
    uses: Callable[[str], UseCounts] = _unused
    """Uses of a skill by its name."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A skill with the words that tell it and those that were values when it was made."""

    skill: Skill
    fields: Mapping[str, frozenset[str]]
    values: frozenset[str]
    weights: Mapping[str, float]
    """By word: what having it counts."""
    own: frozenset[str]
    """Words that are the skill's, and no values."""


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A skill that may be a hit, and all that its place among them depends on."""

    entry: _Entry
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
        self._entries: dict[str, _Entry] = {}
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
                entry = self._entries[name] = _entry(skill)
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
        asked = _query(query)
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

    def _weighed(self, entry: _Entry, coverage: float, query: _Query, beside: Circumstances) -> _Weighed:
        skill = entry.skill
        likeness, uses = beside.alike(skill), beside.uses(skill.name)
        if likeness >= SAME_PATTERN:
            coverage = max(coverage, likeness)
        if skill.name in (query.text, "_".join(query.terms)):
            coverage = 1.0
        fit, rate = _fit(entry, query), success_rate(uses)
        trust = 1 - _FIT - _UTILITY + _FIT * (1.0 if fit is None else fit) + _UTILITY * rate
        return _Weighed(entry, coverage * trust, likeness, fit, uses)

    def _coverage(self, query: _Query, allowed: frozenset[str] | None) -> dict[str, float]:
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


def _told(one: _Weighed, query: _Query, meant: Mapping[str, float]) -> Iterator[str]:
    name = one.entry.skill.name
    if name in meant:
        yield f"meaning: {meant[name]:.2f}"
    yield from _places(one.entry, query)
    yield from _circumstances(one)


def confusable(hits: Sequence[SkillHit]) -> tuple[str, ...]:
    """Return the names of the first hits when they fit about alike, empty when one is clearly ahead.

    Paper: FlowEvo (routing; ambiguity margin 0.5 of a total near 5). Differs: 0.05 of a score in (0, 1].
    """
    alike = [
        hit.skill.name
        for hit in hits
        if hits[0].score - hit.score < _MARGIN
        and (hit.alike >= SAME_PATTERN) == (hits[0].alike >= SAME_PATTERN)
    ]
    return tuple(alike) if len(alike) > 1 else ()


def skill_entry(skill: Skill) -> Entry:
    """Return what the index over tools and skills sees of a skill."""
    names, described, values = parameter_texts(skill.signature.input_schema)
    told = (skill.description, skill.provenance.task or "", skill.guidance.when_to_use, " ".join(skill.tags))
    return Entry(
        key=f"skill:{skill.name}",
        kind="skill",
        owner=skill.name,
        names=frozenset({skill.name, skill.name.replace("_", " ")}),
        name=spread(skill.name),
        title=skill.title or "",
        description=". ".join(text.rstrip(". ") for text in told if text)[:_LONGEST_QUERY],
        parameters=f"{names} {described}".strip(),
        values=values,
    )


def _query(text: str) -> _Query:
    text = text[:_LONGEST_QUERY]
    quoted = len(_QUOTED.findall(text))
    bare = _QUOTED.sub(" ", text)
    numbers = len(_NUMBER.findall(bare))
    terms = _telling(_NUMBER.sub(" ", bare)) or _telling(_NUMBER.sub(" ", text))
    return _Query(text.strip(), terms[:_MOST_TERMS], numbers, quoted)


def _telling(text: str) -> tuple[str, ...]:
    """Return the different words of a text that tell something, in order."""
    found = dict.fromkeys(word for token in _WORD.findall(text) for word in words(token))
    return tuple(word for word in found if word not in STOP_WORDS)


def _entry(skill: Skill) -> _Entry:
    values = frozenset(word for test in skill.tests for word in _value_words([*test.inputs.values()]))
    named = frozenset(_telling(f"{skill.name} {skill.title or ''}"))
    texts = {
        "task": skill.provenance.task or "",
        "tags": " ".join(skill.tags),
        "description": skill.description,
        "guidance": skill.guidance.when_to_use,
        "inputs": " ".join(_input_texts(skill)),
    }
    fields = {field: frozenset(_telling(text)) for field, text in texts.items()}
    fields["task"] -= {word for word in fields["task"] if word.isdecimal()} | (values - named)
    stands = {"name": named, **fields}
    own = frozenset[str]().union(*stands.values()) - values
    return _Entry(skill, stands, values, _weights(stands), own)


def _weights(fields: Mapping[str, frozenset[str]]) -> dict[str, float]:
    best: dict[str, float] = {}
    for place, share in _FIELDS.items():
        for word in fields[place]:
            best[word] = max(share, best.get(word, 0.0))
    return best


def _value_words(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield from _telling(value[:_LONGEST_QUERY])
        case list():
            for item in value:
                yield from _value_words(item)
        case dict():
            for item in value.values():
                yield from _value_words(item)
        case _:
            return


def _inputs(skill: Skill) -> Iterator[tuple[str, JsonSchema]]:
    properties = skill.signature.input_schema.get("properties")
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        if isinstance(schema, dict):
            yield name, schema


def _input_texts(skill: Skill) -> Iterator[str]:
    for name, schema in _inputs(skill):
        yield name
        if isinstance(description := schema.get("description"), str):
            yield description
        yield from _allowed(schema)


def _allowed(schema: JsonSchema) -> list[str]:
    listed = schema.get("enum")
    return [value for value in listed if isinstance(value, str)] if isinstance(listed, list) else []


def _fit(entry: _Entry, query: _Query) -> float | None:
    """Return the share of required inputs the query seems to hold a value for, None without any.

    Numbers go to numeric inputs; quoted text and words that are not the skill's own to texts.
    """
    required = entry.skill.signature.input_schema.get("required")
    needed = [s for name, s in _inputs(entry.skill) if isinstance(required, list) and name in required]
    if not needed:
        return None
    texts = query.quoted + sum(term not in entry.own for term in query.terms)
    numbers, held = query.numbers, 0
    for schema in needed:
        if allowed := _allowed(schema):
            held += any(_stands_in(value, query) for value in allowed)
        elif schema.get("type") in ("number", "integer"):
            held += numbers > 0
            numbers -= 1
        else:
            held += texts > 0
            texts -= 1
    return held / len(needed)


def _stands_in(value: str, query: _Query) -> bool:
    told = set(_telling(value))
    return bool(told) and told <= set(query.terms)


def _places(entry: _Entry, query: _Query) -> Iterator[str]:
    for place in _FIELDS:
        if shared := [term for term in query.terms if term in entry.fields[place]]:
            yield f"{place}: {', '.join(shared)}"


def _circumstances(one: _Weighed) -> Iterator[str]:
    if one.fit is not None:
        yield f"values for {one.fit:.0%} of its required inputs are in the query"
    if one.uses.judged:
        yield f"{one.uses.successes} of {one.uses.judged} uses succeeded"
    if one.entry.skill.state != "active":
        yield f"it is {one.entry.skill.state}"

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
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from catalog.canonical import JsonValue
from catalog.search import Entry
from catalog.search.entries import parameter_texts, spread
from catalog.similarity import words
from catalog.tools import JsonSchema
from catalog.vocabulary import STOP_WORDS
from skills_store.skill import Skill, SkillState
from skills_store.utility import UseCounts, success_rate

__all__ = ["NOT_RECALLED", "SAME_PATTERN", "SkillHit", "SkillIndex", "confusable", "skill_entry"]

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


@dataclass(frozen=True, slots=True)
class _Entry:
    """A skill with the words that tell it and those that were values when it was made."""

    skill: Skill
    fields: Mapping[str, frozenset[str]]
    values: frozenset[str]
    rate: float


class SkillIndex:
    """A search index over a fixed set of skills, one version of each name.

    Args:
        skills: heads, in any state; those `NOT_RECALLED` are left out.
        uses: counts by name; a skill without an entry has not been used.

    Paper: FlowEvo (retrieval): recall by overlap of family, signature and pattern, then rerank by
        compatibility and utility, less what past failures make of its risk.
    Differs: no benchmark or family labels exist here; compatibility is whether the query holds
        values for the inputs, utility is the smoothed rate; both scale the overlap, so that a
        skill nothing in the query speaks of is never a hit. Equal patterns rank first outright.
    """

    def __init__(self, skills: Iterable[Skill], uses: Mapping[str, UseCounts] | None = None) -> None:
        counts = uses or {}
        recalled = sorted((s for s in skills if s.state not in NOT_RECALLED), key=lambda s: s.name)
        self._entries = [_entry(skill, counts.get(skill.name, UseCounts())) for skill in recalled]
        self._rows = {entry.skill.name: row for row, entry in enumerate(self._entries)}
        self._uses = counts
        self._postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for row, entry in enumerate(self._entries):
            for word, weight in _weights(entry).items():
                self._postings[word].append((row, weight))

    def search(
        self,
        query: str,
        limit: int = 10,
        near: Mapping[str, float] | None = None,
        alike: Callable[[Skill], float] | None = None,
        risk: Callable[[Skill], float] | None = None,
    ) -> list[SkillHit]:
        """Return the skills that fit a task best, best first, equal ones ordered by name.

        Args:
            query: the task.
            limit: most hits.
            near: how near each skill's meaning is to the task's, by name; None: not known.
            alike: how much a skill's own task says the same, values aside; asked of the likeliest only.
                Those with the same pattern come first, and nothing after them scores higher.
            risk: how much speaks against a skill, in [0, 1); asked of the likeliest only.
        """
        asked = _query(query)
        meant = {name: share for name, share in (near or {}).items() if share >= _MEANT}
        covered = self._coverage(asked)
        for name, share in meant.items():
            if (row := self._rows.get(name)) is not None:
                covered[row] = max(covered.get(row, 0.0), share)
        pool = nsmallest(max(_POOL_PER_HIT * limit, _POOL), covered, key=lambda row: (-covered[row], row))
        likeness = {row: alike(self._entries[row].skill) if alike else 0.0 for row in pool}
        patterned = {row: share for row, share in likeness.items() if share >= SAME_PATTERN}
        scored = {row: self._score(row, max(covered[row], patterned.get(row, 0.0)), asked) for row in pool}
        order = sorted(pool, key=lambda row: (row not in patterned, -scored[row], row))[: 2 * limit]
        risks = {row: risk(self._entries[row].skill) if risk else 0.0 for row in order}
        kept = {row: scored[row] * (1 - _RISK * risks[row]) for row in order}
        hits: list[SkillHit] = []
        for row in sorted(order, key=lambda row: (row not in patterned, -kept[row], row))[:limit]:
            score = min(kept[row], hits[-1].score if hits else 1.0)
            same = (f"same task pattern: {patterned[row]:.2f}",) if row in patterned else ()
            against = (f"what speaks against it: {risks[row]:.2f}",) if risks[row] else ()
            reasons = (*same, *self._reasons(row, asked, meant), *against)
            hits.append(SkillHit(self._entries[row].skill, score, reasons, likeness[row]))
        return hits

    def _score(self, row: int, coverage: float, query: _Query) -> float:
        entry = self._entries[row]
        if entry.skill.name in (query.text, "_".join(query.terms)):
            coverage = 1.0
        fit = _fit(entry, query)
        trust = 1 - _FIT - _UTILITY + _FIT * (1.0 if fit is None else fit) + _UTILITY * entry.rate
        return coverage * trust

    def _coverage(self, query: _Query) -> dict[int, float]:
        """Return the share of the query each entry covers, rare words weighing more."""
        total = len(self._entries)
        whole = 0.0
        covered: defaultdict[int, float] = defaultdict(float)
        for term in query.terms:
            postings = self._postings.get(term, [])
            rarity = math.log(1 + total / (len(postings) or 1))
            whole += rarity if postings else _UNHEARD * rarity
            for row, weight in postings:
                covered[row] += rarity * weight
        return {row: share / whole for row, share in covered.items()}

    def _reasons(self, row: int, query: _Query, meant: Mapping[str, float]) -> tuple[str, ...]:
        entry = self._entries[row]
        name = entry.skill.name
        by_meaning = (f"meaning: {meant[name]:.2f}",) if name in meant else ()
        return (
            *by_meaning,
            *_places(entry, query),
            *_circumstances(entry, query, self._uses.get(entry.skill.name)),
        )


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


def _entry(skill: Skill, uses: UseCounts) -> _Entry:
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
    return _Entry(skill, {"name": named, **fields}, values, success_rate(uses))


def _weights(entry: _Entry) -> dict[str, float]:
    best: dict[str, float] = {}
    for field, share in _FIELDS.items():
        for word in entry.fields[field]:
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
    own = frozenset[str]().union(*entry.fields.values()) - entry.values
    texts = query.quoted + sum(term not in own for term in query.terms)
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
    for field in _FIELDS:
        if shared := [term for term in query.terms if term in entry.fields[field]]:
            yield f"{field}: {', '.join(shared)}"


def _circumstances(entry: _Entry, query: _Query, uses: UseCounts | None) -> Iterator[str]:
    fit = _fit(entry, query)
    if fit is not None:
        yield f"values for {fit:.0%} of its required inputs are in the query"
    if uses is not None and uses.judged:
        yield f"{uses.successes} of {uses.judged} uses succeeded"
    if entry.skill.state != "active":
        yield f"it is {entry.skill.state}"

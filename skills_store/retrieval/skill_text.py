"""What a skill says for those who search: its words by where they stand, and which inputs a task fills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from catalog.canonical import JsonValue
from catalog.search import Entry
from catalog.search.entries import parameter_texts, spread
from catalog.tools import JsonSchema
from skills_store.retrieval.query import LONGEST_TEXT, Query, telling
from skills_store.skill import Skill

__all__ = ["FIELDS", "SkillText", "fit_of", "places", "skill_entry", "skill_text"]

FIELDS: Final[dict[str, float]] = {
    "name": 1.0,
    "task": 1.0,
    "tags": 0.8,
    "description": 0.7,
    "guidance": 0.7,
    "inputs": 0.6,
}
"""Where a word may stand, and what share of it counts as covered there."""


@dataclass(frozen=True, slots=True)
class SkillText:
    """A skill with the words that tell it and those that were values when it was made."""

    skill: Skill
    fields: Mapping[str, frozenset[str]]
    values: frozenset[str]
    weights: Mapping[str, float]
    """By word: what having it counts."""
    own: frozenset[str]
    """Words that are the skill's, and no values."""


def skill_text(skill: Skill) -> SkillText:
    values = frozenset(word for test in skill.tests for word in _value_words([*test.inputs.values()]))
    named = frozenset(telling(f"{skill.name} {skill.title or ''}"))
    texts = {
        "task": skill.provenance.task or "",
        "tags": " ".join(skill.tags),
        "description": skill.description,
        "guidance": skill.guidance.when_to_use,
        "inputs": " ".join(_input_texts(skill)),
    }
    fields = {field: frozenset(telling(text)) for field, text in texts.items()}
    fields["task"] -= {word for word in fields["task"] if word.isdecimal()} | (values - named)
    stands = {"name": named, **fields}
    own = frozenset[str]().union(*stands.values()) - values
    return SkillText(skill, stands, values, _weights(stands), own)


def _weights(fields: Mapping[str, frozenset[str]]) -> dict[str, float]:
    best: dict[str, float] = {}
    for place, share in FIELDS.items():
        for word in fields[place]:
            best[word] = max(share, best.get(word, 0.0))
    return best


def _value_words(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield from telling(value[:LONGEST_TEXT])
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


def fit_of(entry: SkillText, query: Query) -> float | None:
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


def _stands_in(value: str, query: Query) -> bool:
    told = set(telling(value))
    return bool(told) and told <= set(query.terms)


def places(entry: SkillText, query: Query) -> Iterator[str]:
    for place in FIELDS:
        if shared := [term for term in query.terms if term in entry.fields[place]]:
            yield f"{place}: {', '.join(shared)}"


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
        description=". ".join(text.rstrip(". ") for text in told if text)[:LONGEST_TEXT],
        parameters=f"{names} {described}".strip(),
        values=values,
    )

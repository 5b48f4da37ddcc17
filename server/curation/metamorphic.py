"""Relations that must hold between inputs and outputs of a function on any inputs, by what it is for.

Paper: FlowEvo (gate 2, `same_family_perturbation_replay`): metamorphic variants per pattern: sort,
    count, predicate, search, numeric.
Differs: a pattern is taken only where the name or the prose says it and every test shows it; its
    relation then has to hold on all other inputs; functions without one are varied by type alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, assert_never

from pydantic import JsonValue

from catalog.canonical import canonical_json
from server.curation.variation import Variant
from skills_store.skill import ReplayTest, Skill
from skills_store.workflow.model import Code

__all__ = ["Pattern", "broken_relation", "code_of", "pattern_of", "pattern_variants"]

Pattern = Literal["sort", "count", "predicate", "search", "numeric"]

_WORDS: Mapping[Pattern, frozenset[str]] = {
    "sort": frozenset({"sort", "sorts", "sorted", "sorting", "order", "ordered", "rank", "ranked"}),
    "count": frozenset({"count", "counts", "counting", "occurrences", "frequency", "many"}),
    "predicate": frozenset({"is", "has", "can", "whether", "check", "checks", "any", "all", "contains"}),
    "search": frozenset({"find", "finds", "search", "index", "first", "last", "lookup", "locate"}),
    "numeric": frozenset({"sum", "mean", "median", "average", "area", "distance", "convert", "compute"}),
}
_RESULT = "result"


def code_of(skill: Skill) -> Code | None:
    """Return the function that a skill is, None where it is a graph."""
    nodes = skill.workflow.nodes
    return nodes[0].code if len(nodes) == 1 else None


def pattern_of(skill: Skill) -> Pattern | None:
    """Return what a function is for, None where nothing says so or a test speaks against it."""
    code = code_of(skill)
    if code is None or not skill.tests:
        return None
    said = set(re.findall(r"[a-z]+", f"{code.entry} {skill.description}".lower().replace("_", " ")))
    for pattern, words in _WORDS.items():
        if words & said and not any(_broken(pattern, test.inputs, test.outputs) for test in skill.tests):
            return pattern
    return None


def broken_relation(skill: Skill, inputs: Mapping[str, JsonValue], outputs: Mapping[str, JsonValue]) -> str:
    """Return how a run on other inputs breaks what every test shows, empty where it does not."""
    pattern = pattern_of(skill)
    return "" if pattern is None else _broken(pattern, inputs, outputs)


def _broken(pattern: Pattern, inputs: Mapping[str, JsonValue], outputs: Mapping[str, JsonValue]) -> str:
    value = outputs.get(_RESULT)
    match pattern:
        case "sort":
            taken = any(_is_rearranged(value, given) for given in inputs.values())
            return "" if taken else "it sorts, and its result is not its input rearranged"
        case "count":
            is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            return "" if is_count else "it counts, and its result is no number from 0 on"
        case "predicate":
            return "" if isinstance(value, bool) else "it answers yes or no, and its result is neither"
        case "search":
            found = value is None or any(_is_found(value, given) for given in inputs.values())
            return "" if found else "it searches, and its result is neither an element, nor a place, nor none"
        case "numeric":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return "" if is_number else "it computes, and its result is no number"
        case _:
            assert_never(pattern)


def _is_rearranged(value: JsonValue, given: JsonValue) -> bool:
    if not (isinstance(value, list) and isinstance(given, list)):
        return False
    return sorted(map(canonical_json, value)) == sorted(map(canonical_json, given))


def _is_found(value: JsonValue, given: JsonValue) -> bool:
    if isinstance(given, list | str):
        is_place = isinstance(value, int) and not isinstance(value, bool) and -1 <= value <= len(given)
        return is_place or (isinstance(given, list) and value in given) or _is_part(value, given)
    return False


def _is_part(value: JsonValue, given: JsonValue) -> bool:
    return isinstance(value, str) and isinstance(given, str) and value in given


def pattern_variants(skill: Skill, original: ReplayTest) -> list[Variant]:
    """Return inputs that say most about a function of its pattern; empty without one."""
    if pattern_of(skill) not in ("sort", "count", "search"):
        return []
    found: list[Variant] = []
    for name, value in original.inputs.items():
        if isinstance(value, list) and value:
            found += [_with(original, name, other) for other in _rearrangements(value) if other != value]
    return found


def _rearrangements(value: Sequence[JsonValue]) -> list[list[JsonValue]]:
    items = [*value]
    return [items[::-1], [*items, items[0]], items[:1], [*items[1:], items[0]]]


def _with(original: ReplayTest, name: str, value: list[JsonValue]) -> Variant:
    return Variant({**original.inputs, name: value}, (name,))

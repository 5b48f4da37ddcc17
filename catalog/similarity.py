"""How alike two names or two texts are, by meaning first and by letters last.

Pure and fast enough to compare every argument of a catalog with every other; the words it
knows are in `catalog.vocabulary`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from catalog.vocabulary import GLUED, OPPOSITES, STOP_WORDS, SYNONYMS, WEAK_WORDS

__all__ = ["name_similarity", "synonyms", "text_similarity", "words"]

_SYNONYM: Final = 0.85
_PARTIAL: Final = 0.95
"""Ceiling of names that agree word by word through synonyms."""
_SPELLING: Final = 0.9
_OPPOSED: Final = 0.3
_ABBREVIATION: Final = 0.8

_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+")
_TEXT_WORD: Final = re.compile(r"\w+")


@lru_cache(maxsize=16384)
def words(identifier: str) -> tuple[str, ...]:
    """Return the words of a name: split at case, digits and separators, lowered, stemmed."""
    found: list[str] = []
    for part in _WORD.findall(identifier):
        stem = _stem(part.lower())
        found.extend(GLUED.get(stem, (stem,)))
    return tuple(found)


def _stem(word: str) -> str:
    """Return the word without the ending of a plural."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1]


def _groups() -> dict[tuple[str, ...], frozenset[int]]:
    found: dict[tuple[str, ...], set[int]] = {}
    for number, group in enumerate(SYNONYMS):
        for phrase in group.split(","):
            found.setdefault(words(phrase), set()).add(number)
    return {phrase: frozenset(numbers) for phrase, numbers in found.items()}


_GROUPS: Final = _groups()
_OPPOSITES: Final = frozenset(
    pair for one, other in OPPOSITES for pair in ((_stem(one), _stem(other)), (_stem(other), _stem(one)))
)


@lru_cache(maxsize=8192)
def synonyms(word: str) -> tuple[str, ...]:
    """Return the single words that may stand for a word, those of its narrowest groups first."""
    stem = _stem(word.lower())
    groups = sorted(_GROUPS.get((stem,), ()), key=lambda number: (SYNONYMS[number].count(","), number))
    found = (phrase[0] for number in groups for phrase in _members(number) if len(phrase) == 1)
    return tuple(dict.fromkeys(other for other in found if other != stem))


def _members(group: int) -> list[tuple[str, ...]]:
    return [words(phrase) for phrase in SYNONYMS[group].split(",")]


@lru_cache(maxsize=65536)
def name_similarity(one: str, other: str) -> float:
    """Return how likely two names mean the same, in [0, 1]; symmetric.

    1.0 for the same words, 0.85 to 0.95 for known synonyms, less for shared words, least for
    shared letters. Opposites such as `from_unit` and `to_unit` score low whatever they share.
    """
    ours, theirs = sorted((words(one), words(other)))
    if one == other or (ours and ours == theirs) or ("".join(ours) and "".join(ours) == "".join(theirs)):
        return 1.0
    if not ours or not theirs:
        return 0.0
    if _are_opposed(ours, theirs):
        return _OPPOSED * _overlap(ours, theirs)
    if _share_group(ours, theirs):
        return _SYNONYM + 0.1 * _overlap(ours, theirs)
    return max(_overlap(ours, theirs), _spelling(" ".join(ours), " ".join(theirs)))


def _share_group(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return not _GROUPS.get(one, frozenset()).isdisjoint(_GROUPS.get(other, frozenset()))


def _are_opposed(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    ours = [word for word in one if word not in other]
    theirs = [word for word in other if word not in one]
    return any((a, b) in _OPPOSITES for a in ours for b in theirs)


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Return the share of meaning that both names have word by word."""
    pairs = sorted(
        ((_word_similarity(a, b), i, j) for i, a in enumerate(one) for j, b in enumerate(other)),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    left, right, shared = set(range(len(one))), set(range(len(other))), 0.0
    for score, i, j in pairs:
        if score > 0 and i in left and j in right:
            left.discard(i)
            right.discard(j)
            shared += score * (_weight(one[i]) + _weight(other[j]))
    return _PARTIAL * shared / sum(_weight(word) for word in (*one, *other))


def _weight(word: str) -> float:
    return 0.4 if word in WEAK_WORDS else 1.0


@lru_cache(maxsize=65536)
def _word_similarity(one: str, other: str) -> float:
    if one == other:
        return 1.0
    if (one, other) in _OPPOSITES:
        return 0.0
    if _share_group((one,), (other,)):
        return _SYNONYM
    short, long = sorted((one, other), key=len)
    if len(short) >= 3 and long.startswith(short):
        return _ABBREVIATION
    spelled = _spelling(one, other)
    return spelled if spelled >= 0.7 else 0.0


def _spelling(one: str, other: str) -> float:
    """Return how alike two spellings are: high only for what could be a slip."""
    if min(len(one), len(other)) < 3:
        return 0.0
    ratio = SequenceMatcher(None, *sorted((one, other)), autojunk=False).ratio()
    return _SPELLING * ratio if ratio >= 0.8 else 0.5 * ratio


@lru_cache(maxsize=8192)
def _meaning(text: str) -> tuple[str, ...]:
    found = (word for token in _TEXT_WORD.findall(text) for word in words(token))
    return tuple(dict.fromkeys(word for word in found if word not in STOP_WORDS))


def text_similarity(one: str, other: str) -> float:
    """Return how much of their meaning two texts share by words and synonyms, in [0, 1]; symmetric."""
    ours, theirs = _meaning(one), _meaning(other)
    if not ours or not theirs:
        return 0.0
    exact = len(set(ours) & set(theirs))
    only_ours = [word for word in ours if word not in theirs]
    only_theirs = [word for word in theirs if word not in ours]
    related = min(_related(only_ours, only_theirs), _related(only_theirs, only_ours))
    return 2 * (exact + 0.7 * related) / (len(ours) + len(theirs))


def _related(some: Sequence[str], others: Sequence[str]) -> int:
    groups = frozenset[int]().union(*(_GROUPS.get((word,), frozenset()) for word in others))
    return sum(1 for word in some if not groups.isdisjoint(_GROUPS.get((word,), frozenset())))

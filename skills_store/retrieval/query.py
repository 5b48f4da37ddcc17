"""A task as it is searched for: its telling words, and how many values stand beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from catalog.similarity import words
from catalog.vocabulary import STOP_WORDS

__all__ = ["LONGEST_TEXT", "Query", "read_query", "telling"]

LONGEST_TEXT: Final = 4_000
"""Characters of a text that are read."""
_MOST_TERMS: Final = 64

_WORD: Final = re.compile(r"\w+")
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?\b")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|`[^`]*`|(?<!\w)'[^']*'(?!\w)|\bhttps?://\S+")


@dataclass(frozen=True, slots=True)
class Query:
    """A task in words, with the values in it told apart."""

    text: str
    terms: tuple[str, ...]
    numbers: int
    quoted: int


def read_query(text: str) -> Query:
    text = text[:LONGEST_TEXT]
    quoted = len(_QUOTED.findall(text))
    bare = _QUOTED.sub(" ", text)
    numbers = len(_NUMBER.findall(bare))
    terms = telling(_NUMBER.sub(" ", bare)) or telling(_NUMBER.sub(" ", text))
    return Query(text.strip(), terms[:_MOST_TERMS], numbers, quoted)


def telling(text: str) -> tuple[str, ...]:
    """Return the different words of a text that tell something, in order."""
    found = dict.fromkeys(word for token in _WORD.findall(text) for word in words(token))
    return tuple(word for word in found if word not in STOP_WORDS)

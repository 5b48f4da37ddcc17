"""Splits a long request into what it asks for, one text each.

Purely by punctuation and words, so that the same request always gives the same parts.
"""

from __future__ import annotations

import re
from typing import Final

from catalog.similarity import words
from catalog.vocabulary import STOP_WORDS

__all__ = ["MOST_GOALS", "sub_goals"]

MOST_GOALS: Final = 8
_LONG: Final = 12
"""Words from which on a request may ask for several things."""
_FEWEST_WORDS: Final = 3
"""Telling words without which a part asks for nothing."""
_VERBS: Final = (
    "add book buy calculate cancel change check compare compute convert copy create delete determine display "
    "download estimate exchange explain extract fetch find generate get give identify list locate look make "
    "modify move open order plan play post predict provide read remove rename retrieve return save search "
    "send set show sort start stop tell update upload use what when where which who how write"
)
_PARTS: Final = re.compile(
    r"(?<=[.!?;])\s+|\n+|\s*[•]\s*|:\s+"
    r"|,?\s+(?:and\s+then|then|after\s+that|afterwards|finally|and\s+also|as\s+well\s+as)\s+"
    rf"|(?:,|\band|,\s+and|,\s+but)\s+(?=(?:also\s+)?(?:{'|'.join(_VERBS.split())})\b)",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w+")


def sub_goals(request: str) -> tuple[str, ...]:
    """Return the parts of a request that each ask for something, at most `MOST_GOALS`.

    A short request, or one of a single part, is returned whole.
    """
    whole = request.strip()
    if len(whole.split()) < _LONG:
        return (whole,)
    parts = (part.strip(" \t,;") for part in _PARTS.split(whole))
    asking = dict.fromkeys(part for part in parts if len(_telling(part)) >= _FEWEST_WORDS)
    return tuple(asking)[:MOST_GOALS] if len(asking) > 1 else (whole,)


def _telling(text: str) -> set[str]:
    return {word for token in _WORD.findall(text) for word in words(token)} - STOP_WORDS

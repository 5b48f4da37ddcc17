"""What inputs, nodes and outputs of a distilled workflow are called."""

from __future__ import annotations

import re

__all__ = ["key_name", "slug"]

_LONGEST_NAME, _MOST_WORDS = 24, 3
"""Of an output that is called as the answer calls it."""


def key_name(key: str) -> str:
    """Return what a place of an answer is called: its key, unless that is a sentence, anybody's perhaps."""
    name = slug(key)
    return name if 0 < len(name) <= _LONGEST_NAME and name.count("_") < _MOST_WORDS else "result"


def slug(text: str) -> str:
    """Return a text as a name of small letters, digits and underscores; empty where it has none of these."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    name = re.sub(r"[^a-z0-9]+", "_", parts.lower()).strip("_")
    return f"n_{name}" if name[:1].isdigit() else name

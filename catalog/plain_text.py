"""Text from strangers made safe for logs, prompts and terminals."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["plain_text"]

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]?")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co"})


def plain_text(text: str, limit: int | None = None) -> str:
    """Return the text without terminal escapes, control, invisible and direction-changing characters.

    Args:
        text: what a tool server said.
        limit: longest result in characters, the cut marked with `…`; None for no limit.
    """
    if limit is not None:
        text = text[: 4 * limit]
    visible = "".join(
        character
        for character in _ESCAPES.sub("", text)
        if character in "\n\t" or unicodedata.category(character) not in _HIDDEN
    ).strip()
    if limit is not None and len(visible) > limit:
        return visible[: limit - 1] + "…"
    return visible

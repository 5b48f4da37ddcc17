"""Values that a description gives as examples."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["said_examples"]

_EXAMPLES: Final = re.compile(
    r"(?:e\.?\s?g\.?|for example|such as|examples?|like|one of|options?|supported|values?|either)\b"
    r"[^'\"`]{0,24}"
    r"((?:['\"`][^'\"`\n]{1,60}['\"`](?:,|\s|or|and|/|\|)*){1,12})",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(
    r"(?:\(|:\s|\bone of:?\s)"
    r"((?:[a-z][\w-]{0,24}\s*[,|/]\s*(?:or |and )?){1,16}[a-z][\w-]{0,24})(?=[).;\n]|\s*$)"
)
_QUOTED: Final = re.compile(r"['\"`]([^'\"`\n]{1,60})['\"`]")
_PLAIN: Final = re.compile(
    r"(?:e\.?\s?g\.?,?|for example,?|such as)\s+([\w./:+-]{1,40}(?:,\s*[\w./:+-]{1,40}){0,5})", re.IGNORECASE
)


def said_examples(text: str) -> list[str]:
    """Return values that a description gives as examples, in its order."""
    listed = [
        part for group in _LISTED.findall(text) for part in re.split(r"\s*[,|/]\s*(?:or |and )?", group)
    ]
    quoted = [value for listed in _EXAMPLES.findall(text) for value in _QUOTED.findall(listed)]
    plain = [value.strip(" .") for listed in _PLAIN.findall(text) for value in listed.split(",")]
    return list(dict.fromkeys(value for value in (*quoted, *listed, *plain) if value))

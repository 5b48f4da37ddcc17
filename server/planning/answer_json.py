"""The JSON in a model's answer: fences, talk around it, thinking before it, commas too many.

Never guesses at meaning. Numbers that JSON does not have (NaN, infinity) and text that cannot be
stored are refused, so that what comes out may go anywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pydantic import JsonValue

__all__ = ["NotJson", "read_json"]

_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*[ \t]*\n?(.*?)```", re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_BARE_REFERENCE = re.compile(r"([:,\[]\s*)(\$[A-Za-z_][\w.\[\]#/]*[\w\]])(?=\s*[,}\]])")
_START = re.compile(r"\A[^{\[]*(?=[{\[])|^(?=[{\[])", re.MULTILINE)
"""Where JSON may begin: the first bracket, or one that begins a line. One further in is only a part."""
_LONGEST = 200_000
_DEEPEST = 40
_MOST_SURPLUS = 6


class NotJson(ValueError):  # noqa: N818
    """There is no JSON object or list in a text; the message says what was wrong first."""


def read_json(text: str) -> JsonValue:
    """Return the first JSON object or list in a text, the whole text and fenced parts before others.

    Raises:
        NotJson: there is none.
    """
    plain = _THINKING.sub("", text[:_LONGEST]).strip()
    if not plain:
        raise NotJson("the answer is empty: answer with one JSON object")
    for part in _parts(plain):
        for version in dict.fromkeys(_versions(part)):
            found = _decoded(version)
            if isinstance(found, dict | list) and _is_sound(found, 0):
                return found
    raise NotJson(f"the answer is not JSON: {_why(plain)}")


def _parts(text: str) -> Iterator[str]:
    """Yield the texts that may be the JSON, most likely first."""
    yield text
    yield from (match[1].strip() for match in _FENCE.finditer(text))
    opened = text.rfind("```")
    if opened >= 0:
        yield re.sub(r"^```[\w-]*", "", text[opened:]).strip()
    yield from (text[match.end() :] for match in _START.finditer(text))


def _versions(part: str) -> Iterator[str]:
    """Yield a text as it is, without commas too many, and with references in quotes."""
    yield part
    trimmed = _TRAILING_COMMA.sub(r"\1", part)
    yield trimmed
    yield _BARE_REFERENCE.sub(r'\1"\2"', trimmed)


def _decoded(text: str) -> JsonValue:
    """Return the JSON value a text begins with, brackets closed once too often left out, or None."""
    if text[:1] not in ("{", "["):
        return None
    for _ in range(_MOST_SURPLUS + 1):
        try:
            return _DECODER.raw_decode(text)[0]
        except json.JSONDecodeError as error:
            if text[error.pos : error.pos + 1] not in ("}", "]"):
                return None
            text = text[: error.pos] + text[error.pos + 1 :]
        except (ValueError, RecursionError):
            return None
    return None


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse, strict=False)


def _is_sound(value: JsonValue, depth: int) -> bool:
    """Return whether a value can be stored and sent: finite, not too deep, no half characters."""
    if depth > _DEEPEST:
        return False
    match value:
        case dict():
            return all(_is_sound(k, depth) and _is_sound(v, depth + 1) for k, v in value.items())
        case list():
            return all(_is_sound(item, depth + 1) for item in value)
        case str():
            return not any("\ud800" <= character <= "\udfff" for character in value)
        case float():
            return value - value == 0
        case _:
            return True


def _why(text: str) -> str:
    """Return the first complaint about a text, with the place."""
    start = min((place for mark in "{[" if (place := text.find(mark)) >= 0), default=-1)
    if start < 0:
        return "it holds no { and no ["
    try:
        _DECODER.raw_decode(text[start:])
    except json.JSONDecodeError as error:
        return f"{error.msg} at character {start + error.pos}"
    except (ValueError, RecursionError) as error:
        return str(error) or "it is nested too deeply"
    return "it holds a number or a character that JSON cannot carry"

"""Puts one server into the text of a JSON configuration, leaving every other letter as it is.

Comments, order, indentation and trailing commas of a file that a person wrote stay; a rewrite of the
whole document would lose them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from catalog.canonical import JsonValue
from catalog.config.document import ConfigDocument, json_spans, parse_document

__all__ = ["with_server_text"]

_INDENT: Final = "  "
_TOKEN: Final = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)
"""What may hold a brace or comma that is none: comments and texts."""


def with_server_text(text: str, path: Path, keys: tuple[str, ...], entry: Mapping[str, JsonValue]) -> str:
    """Return the text with a value put in place under some keys, the last of which names it.

    Args:
        text: of the file as it is; empty where there is none.
        path: names the file in errors.
        keys: from the outside in.
        entry: the value.

    Raises:
        ConfigError: it is no JSON object, a key stands twice, or what should hold the value is no object.
    """
    if not text.strip():
        return f"{json.dumps(_nested(keys, entry), indent=2)}\n"
    document = parse_document(text, path)
    _check_plain(document, keys)
    spans = json_spans(text)
    if keys in spans:
        start, end = spans[keys]
        return f"{text[:start]}{_written(entry, _margin(text, start))}{text[end:]}"
    depth = next(n for n in range(len(keys) - 1, -1, -1) if keys[:n] in spans)
    start, end = spans[keys[:depth]]
    return _inserted(text, start, end, keys[depth], _nested(keys[depth + 1 :], entry))


def _check_plain(document: ConfigDocument, keys: tuple[str, ...]) -> None:
    value: JsonValue = document.data
    for depth, key in enumerate(keys):
        if len(document.lines.get(keys[: depth + 1], ())) > 1:
            raise document.error(f"{key!r} stands twice", keys[: depth + 1])
        if not isinstance(value, dict):
            raise document.error("must be an object", keys[:depth])
        if key not in value:
            return
        value = value[key]


def _nested(keys: tuple[str, ...], value: JsonValue | Mapping[str, JsonValue]) -> JsonValue:
    for key in reversed(keys):
        value = {key: value if not isinstance(value, Mapping) else dict(value)}
    return dict(value) if isinstance(value, Mapping) else value


def _inserted(text: str, start: int, end: int, key: str, value: JsonValue) -> str:
    """Return the text with a member added as the last of the object from `start` to `end`."""
    inside = _TOKEN.sub(_blank, text[start + 1 : end - 1])
    last = len(inside.rstrip())
    margin = _margin(text, start) + _INDENT
    member = f"{json.dumps(key)}: {_written(value, margin)}"
    if not inside.strip():
        kept = text[start + 1 : end - 1].rstrip()
        return f"{text[: start + 1]}{kept}\n{margin}{member}\n{margin[: -len(_INDENT)]}{text[end - 1 :]}"
    at, after = start + 1 + last, start + 1 + len(text[start + 1 : end - 1].rstrip())
    comma = "" if inside.rstrip().endswith(",") else ","
    # Comments behind the last member stay with it.
    return f"{text[:at]}{comma}{text[at:after]}\n{margin}{member}{text[after:]}"


def _blank(match: re.Match[str]) -> str:
    found = match.group()
    return "x" * len(found) if found.startswith('"') else re.sub(r"[^\n]", " ", found)


def _margin(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _written(value: JsonValue | Mapping[str, JsonValue], margin: str) -> str:
    return json.dumps(value, indent=len(_INDENT), ensure_ascii=False).replace("\n", f"\n{margin}")

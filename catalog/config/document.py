"""The text of a configuration file as a document that knows the line of each of its keys.

JSON, JSON with comments and trailing commas (VS Code), and TOML (Codex, for reading). What the
document means belongs to `formats`.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from json.decoder import scanstring  # pyright: ignore[reportUnknownVariableType, reportAttributeAccessIssue]
from pathlib import Path
from typing import Any, cast

from catalog.canonical import JsonValue
from catalog.errors import ConfigError

__all__ = ["ConfigDocument", "KeyPath", "json_spans", "parse_document", "read_document"]

KeyPath = tuple[str | int, ...]

_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')
_SPACE = re.compile(r"\s*")
_SCALAR = re.compile(r"[^\s,\]}]+")


@dataclass(frozen=True)
class ConfigDocument:
    """A parsed configuration file."""

    path: Path
    data: dict[str, JsonValue]
    lines: dict[KeyPath, list[int]] = field(repr=False)
    """1-based lines of each key; a key that stands twice in one object has two."""
    has_comments: bool = False
    """Whether a rewrite would lose something a person wrote."""

    def line_of(self, place: KeyPath) -> int | None:
        """Return the 1-based line of a key, or of the closest key above it that is there."""
        for end in range(len(place), 0, -1):
            if place[:end] in self.lines:
                return self.lines[place[:end]][-1]
        return None

    def below(self, place: tuple[str, ...]) -> ConfigDocument:
        """Return what stands under these keys as a document of its own; empty where nothing does."""
        data: JsonValue = self.data
        for key in place:
            data = data.get(key, {}) if isinstance(data, dict) else {}
        lines = {key[len(place) :]: at for key, at in self.lines.items() if key[: len(place)] == place}
        return replace(self, data=data if isinstance(data, dict) else {}, lines=lines)

    def doubled(self, *places: KeyPath) -> KeyPath | None:
        """Return a key that stands twice directly below one of these places, or None."""
        return next((key for key, at in self.lines.items() if len(at) > 1 and key[:-1] in places), None)

    def error(self, message: str, place: KeyPath = ()) -> ConfigError:
        """Return the error that names file, line and key of a place in this document."""
        key = ".".join(str(part) for part in place) or None
        return ConfigError(message, file=str(self.path), line=self.line_of(place), key=key)


def read_document(path: Path) -> ConfigDocument:
    """Return the document of a file.

    Raises:
        ConfigError: the file cannot be read or is not what its ending says; names file and line.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError("not UTF-8 text", file=str(path), line=line) from error
    return parse_document(text, path)


def parse_document(text: str, path: Path) -> ConfigDocument:
    """Return the document of a text; the ending of `path` says whether it is TOML or JSON.

    Raises:
        ConfigError: names file and line.
    """
    if path.suffix == ".toml":
        return ConfigDocument(path, _parse_toml(text, path), _toml_lines(text))
    blanked = _without_comments(text)
    try:
        data: object = json.loads(blanked)
        lines = json_lines(blanked)
    except json.JSONDecodeError as error:
        raise ConfigError(f"not JSON: {error.msg}", file=str(path), line=error.lineno) from error
    except RecursionError as error:
        raise ConfigError("nested too deeply", file=str(path)) from error
    if not isinstance(data, dict):
        raise ConfigError("the file must hold a JSON object", file=str(path), line=1)
    return ConfigDocument(path, cast("dict[str, JsonValue]", data), lines, has_comments=blanked != text)


def _parse_toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return json.loads(json.dumps(tomllib.loads(text), default=str))
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = int(at.group(1)) if at else None
        raise ConfigError(f"not TOML: {error}", file=str(path), line=line) from error


def _without_comments(text: str) -> str:
    """Return the text with comments and trailing commas replaced by blanks, lines kept."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)

    return _TRAILING_COMMA.sub(blank, _COMMENT.sub(blank, text))


def json_spans(text: str) -> dict[KeyPath, tuple[int, int]]:
    """Return where each value of a valid JSON text, comments allowed, starts and ends; the whole is ().

    Of a key that stands twice the last value counts.
    """
    spans: dict[KeyPath, tuple[int, int]] = {}
    _walk(_without_comments(text), lambda place, at: None, spans.__setitem__)  # noqa: ARG005
    return spans


def json_lines(text: str) -> dict[KeyPath, list[int]]:
    """Return the 1-based lines on which each key and item of a valid JSON text starts.

    A key that stands twice in one object has two lines.
    """
    lines: dict[KeyPath, list[int]] = {}
    breaks = [match.start() for match in re.finditer("\n", text)]

    def note(place: KeyPath, at: int) -> None:
        lines.setdefault(place, []).append(bisect_left(breaks, at) + 1)

    _walk(text, note, lambda place, span: None)  # noqa: ARG005
    return lines


def _walk(
    text: str,
    note: Callable[[KeyPath, int], None],
    span: Callable[[KeyPath, tuple[int, int]], None],
) -> None:
    """Go through a valid JSON text: note where each key and item starts, and where each value is."""

    def skip(at: int) -> int:
        return _SPACE.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess]

    def value(at: int, place: KeyPath) -> int:
        end = inner(at, place)
        span(place, (at, end))
        return end

    def inner(at: int, place: KeyPath) -> int:
        match text[at]:
            case "{":
                return members(skip(at + 1), place)
            case "[":
                return items(skip(at + 1), place)
            case '"':
                return cast("int", scanstring(text, at + 1)[1])
            case _:
                return _SCALAR.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess]

    def members(at: int, place: KeyPath) -> int:
        while text[at] != "}":
            key, end = cast("tuple[str, int]", scanstring(text, at + 1))
            note((*place, key), at)
            at = skip(value(skip(skip(end) + 1), (*place, key)))
            at = skip(at + 1) if text[at] == "," else at
        return at + 1

    def items(at: int, place: KeyPath) -> int:
        index = 0
        while text[at] != "]":
            note((*place, index), at)
            at = skip(value(at, (*place, index)))
            at = skip(at + 1) if text[at] == "," else at
            index += 1
        return at + 1

    value(skip(0), ())


def _toml_lines(text: str) -> dict[KeyPath, list[int]]:
    """Return the lines of table headers and plain keys: enough to point at a server's field."""
    lines: dict[KeyPath, list[int]] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            table = _toml_key(header.group(1))
            lines[table] = [number]
        elif entry := re.match(r"\s*([A-Za-z0-9_.\"'-]+)\s*=", line):
            lines[(*table, *_toml_key(entry.group(1)))] = [number]
    return lines


def _toml_key(dotted: str) -> KeyPath:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))

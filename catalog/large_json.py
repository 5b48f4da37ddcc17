"""Reads a large JSON text in pieces, so that a thread that does it lets the event loop run between them.

The decoder of the standard library reads a text in one go, and nothing else runs until it is done.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, cast

from catalog.canonical import JsonValue

__all__ = ["LARGE_TEXT", "parse_json", "parse_large"]

LARGE_TEXT: Final = 512 * 1024
"""Characters up to which a text is read in one go, which takes a few milliseconds."""

_WINDOW: Final = 128 * 1024
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_SCAN: Final = json.JSONDecoder()


def parse_json(text: str) -> JsonValue:
    """Return the value of a JSON text of any size.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: it is nested too deeply.
    """
    return cast("JsonValue", json.loads(text)) if len(text) <= LARGE_TEXT else parse_large(text)


def parse_large(text: str, window: int = _WINDOW) -> JsonValue:
    """Return the value of a JSON text, never holding the interpreter for more than a small piece of it.

    Args:
        text: all of it.
        window: size in characters of the containers that are read in one piece.

    Raises:
        ValueError: the text is not JSON.
    """
    reading = _Reading(text, window)
    try:
        value, end = reading.value(reading.skip(0))
    except (RecursionError, StopIteration, IndexError) as error:
        raise ValueError(f"not JSON: {type(error).__name__}") from error
    if reading.skip(end) != len(text):
        raise ValueError(f"more than one JSON value: the first ends at character {end}")
    return value


@dataclass
class _Reading:
    """Containers larger than a window are taken apart here; smaller ones the decoder reads whole."""

    text: str
    size: int
    _window: str = ""
    _start: int = 0

    def skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found is not None else at

    def value(self, at: int) -> tuple[JsonValue, int]:
        match self.text[at]:
            case "{":
                return self._object(at)
            case "[":
                return self._array(at)
            case _:
                return cast("tuple[JsonValue, int]", _SCAN.raw_decode(self.text, at))

    def _part(self, at: int) -> tuple[JsonValue, int]:
        if self.text[at] not in "{[":
            return self.value(at)
        if not 0 <= at - self._start < len(self._window):
            self._move(at)
        while True:
            try:
                value, end = cast("tuple[JsonValue, int]", _SCAN.raw_decode(self._window, at - self._start))
            except (ValueError, RecursionError):  # cut off by the window, or broken, which `value` finds
                if self._start == at:
                    return self.value(at)
                self._move(at)
            else:
                return value, self._start + end

    def _move(self, at: int) -> None:
        self._start, self._window = at, self.text[at : at + self.size]

    def _array(self, at: int) -> tuple[JsonValue, int]:
        items: list[JsonValue] = []
        at = self.skip(at + 1)
        if self.text[at] == "]":
            return items, at + 1
        while True:
            item, at = self._part(at)
            items.append(item)
            at = self.skip(at)
            if self.text[at] == "]":
                return items, at + 1
            at = self._after(",", at)

    def _object(self, at: int) -> tuple[JsonValue, int]:
        members: dict[str, JsonValue] = {}
        at = self.skip(at + 1)
        if self.text[at] == "}":
            return members, at + 1
        while True:
            key, at = self.value(at)
            if not isinstance(key, str):
                raise ValueError(f"a key is no string at character {at}")
            members[key], at = self._part(self._after(":", self.skip(at)))
            at = self.skip(at)
            if self.text[at] == "}":
                return members, at + 1
            at = self._after(",", at)

    def _after(self, mark: str, at: int) -> int:
        if self.text[at] != mark:
            raise ValueError(f"{mark!r} is missing at character {at}")
        return self.skip(at + 1)

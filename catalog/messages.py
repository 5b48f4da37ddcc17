"""Reads one line of an upstream as a message, without holding up the event loop for a large one.

A tool list that is nearly JSON is mended, since one definition in it would otherwise hide all
others; any other answer is taken as it is or not at all.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, cast

import anyio.to_thread
import mcp_types as types

from catalog.canonical import JsonValue

__all__ = ["LARGE_BYTES", "MENDED_KEY", "parse_large", "read_message"]

LARGE_BYTES: Final = 512 * 1024
"""Lines up to here are read at once, which takes a few milliseconds."""
MENDED_KEY: Final = "io.skillbank/mended"
"""Key in the `_meta` of a mended tool list: what was wrong with its text."""

_WINDOW: Final = 128 * 1024
_MAX_DEPTH: Final = 250
_LONE_SURROGATE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_SCAN: Final = json.JSONDecoder()


async def read_message(line: bytes) -> types.JSONRPCMessage:
    """Return the message in a line; a large one is read in a thread, piece by piece.

    Raises:
        ValueError: it holds none.
    """
    if len(line) <= LARGE_BYTES:
        return _read(line)
    return await anyio.to_thread.run_sync(_read, line, abandon_on_cancel=True)


def _read(line: bytes) -> types.JSONRPCMessage:
    try:
        if len(line) <= LARGE_BYTES or _has_lone_surrogate(line):
            return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        return _message(parse_large(line.decode()))
    except ValueError:
        mended = _mended_list(line)
        if mended is None:
            raise
        return _message(mended)


def _has_lone_surrogate(line: bytes) -> bool:
    has_any = b"\\ud" in line or b"\\uD" in line  # what most lines have not is looked for first
    return has_any and _LONE_SURROGATE.search(line) is not None


def _message(value: JsonValue) -> types.JSONRPCMessage:
    return types.jsonrpc_message_adapter.validate_python(value, by_name=False)


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


def _mended_list(line: bytes) -> JsonValue:
    """Return a tool list whose text is broken in ways that leave its definitions apart, else None."""
    if b'"tools"' not in line:
        return None
    text = line.decode("utf-8", "replace")
    said = ["it is not UTF-8; what is not was replaced"] if "\ufffd" in text else []
    shallow = _cut_below(text, _MAX_DEPTH)
    if len(shallow) != len(text):
        said.append(f"it is nested deeper than {_MAX_DEPTH} levels; what is below was cut")
    try:
        value = cast("JsonValue", json.loads(shallow))
    except (ValueError, RecursionError):
        return None
    match value:
        case {"result": {"tools": list()} as result}:
            pass
        case _:
            return None
    clean = _without_surrogates(result)
    assert isinstance(clean, dict)
    if clean != result:
        said.append("it holds characters that no text can; they were replaced")
    meta = clean.get("_meta")
    reasons: list[JsonValue] = [*said]
    clean["_meta"] = {**(meta if isinstance(meta, dict) else {}), MENDED_KEY: reasons}
    return {**value, "result": clean}


def _cut_below(text: str, limit: int) -> str:
    """Return the text with null in place of every container deeper than the limit."""
    kept: list[str] = []
    depth, kept_to = 0, 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in ("{", "["):
            depth += 1
            if depth == limit + 1:
                kept += [text[kept_to : token.start()], "null"]
                kept_to = len(text)
        elif mark in ("}", "]"):
            if depth == limit + 1:
                kept_to = token.end()
            depth -= 1
    return "".join([*kept, text[kept_to:]])


def _without_surrogates(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_SURROGATE.sub("\ufffd", key): _without_surrogates(item) for key, item in value.items()}
        case _:
            return value

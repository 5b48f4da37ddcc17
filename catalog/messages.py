"""Reads one line of an upstream as a message, without holding up the event loop for a large one.

A tool list that is nearly JSON is mended, since one definition in it would otherwise hide all
others; any other answer is taken as it is or not at all.
"""

from __future__ import annotations

import json
import re
from typing import Final, cast

import anyio.to_thread
import mcp_types as types

from catalog.canonical import JsonValue
from catalog.large_json import LARGE_TEXT, parse_large

__all__ = ["MENDED_KEY", "read_message"]

MENDED_KEY: Final = "io.skillbank/mended"
"""Key in the `_meta` of a mended tool list: what was wrong with its text."""

_MAX_DEPTH: Final = 250
_LONE_SURROGATE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


async def read_message(line: bytes) -> types.JSONRPCMessage:
    """Return the message in a line; a large one is read in a thread, piece by piece.

    Raises:
        ValueError: it holds none.
    """
    if len(line) <= LARGE_TEXT:
        return _read(line)
    return await anyio.to_thread.run_sync(_read, line, abandon_on_cancel=True)


def _read(line: bytes) -> types.JSONRPCMessage:
    try:
        if len(line) <= LARGE_TEXT or _has_lone_surrogate(line):
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

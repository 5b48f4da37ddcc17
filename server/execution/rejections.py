"""Reads which arguments a server refused out of its own words, where that is safe.

Four dialects name arguments in a form that cannot be mistaken: pydantic's report (FastMCP and the
SDKs built on it), the one-line list of excel-mcp-server, jsonschema's sentences, and zod's issues
as JSON. Whether a name is believed is decided against the call (`server.execution.failures`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from catalog.canonical import JsonValue

__all__ = ["Rejection", "parse_rejections"]

_PYDANTIC_HEADER = re.compile(r"^.*?\b\d+ validation errors? for \S", re.MULTILINE)
_PYDANTIC_ENTRY = re.compile(r"^(?P<place>\S[^\n]*)\n  (?P<text>\S[^\n]*)$", re.MULTILINE)
_PYDANTIC_TYPE = re.compile(r" \[type=(?P<type>\w+)")
_LISTED_HEADER = re.compile(r"Invalid arguments for [\w.-]+:[ \n]")
_LISTED_ENTRY = re.compile(r"^(?:- )?(?P<place>[A-Za-z_][\w.\[\]-]*): (?P<text>[^\n]+)$", re.MULTILINE)
_QUOTED = re.compile(r"'([^']+)'")
_REQUIRED_PROPERTY = re.compile(r"'([^']+)' is a required property")
_ADDITIONAL = re.compile(r"Additional properties are not allowed \(([^)]*) (?:was|were) unexpected\)")
_ZOD_HEADER = re.compile(r"Invalid arguments for tool [\w.-]+:\s*(?=\[)")

_PYDANTIC_KINDS = {
    "missing": "missing",
    "missing_argument": "missing",
    "extra_forbidden": "unexpected",
    "unexpected_keyword_argument": "unexpected",
}


@dataclass(frozen=True, slots=True)
class Rejection:
    """One argument a server named as wrong. `allowed` is what it says instead, when it does."""

    kind: Literal["missing", "unexpected", "invalid"]
    argument: str
    message: str
    allowed: tuple[str, ...] = ()


def parse_rejections(message: str) -> list[Rejection]:
    """Return the arguments a failure message names, empty when it names none safely."""
    for dialect in (_zod, _pydantic, _listed, _jsonschema):
        if found := list(dict.fromkeys(dialect(message))):
            return found
    return []


def _pydantic(message: str) -> Iterator[Rejection]:
    header = _PYDANTIC_HEADER.search(message)
    if header is None:
        return
    for entry in _PYDANTIC_ENTRY.finditer(message, header.end()):
        text = entry["text"]
        kind = _PYDANTIC_TYPE.search(text)
        said = text[: kind.start()] if kind else text
        yield _at(entry["place"], _pydantic_kind(kind["type"] if kind else "", said), said)


def _pydantic_kind(code: str, text: str) -> str:
    if code:
        return _PYDANTIC_KINDS.get(code, "invalid")
    if text in ("Missing required argument", "Field required"):
        return "missing"
    return "unexpected" if text.startswith(("Unexpected keyword argument", "Extra inputs")) else "invalid"


def _listed(message: str) -> Iterator[Rejection]:
    header = _LISTED_HEADER.search(message)
    if header is None:
        return
    for entry in _LISTED_ENTRY.finditer(message[header.end() :]):
        text = entry["text"]
        if text.startswith("unknown field"):
            yield _at(entry["place"], "unexpected", text, tuple(_QUOTED.findall(text)))
        else:
            yield _at(entry["place"], "missing" if text == "required" else "invalid", text)


def _jsonschema(message: str) -> Iterator[Rejection]:
    for name in _REQUIRED_PROPERTY.findall(message):
        yield Rejection("missing", name, f"{name!r} is a required property")
    for names in _ADDITIONAL.findall(message):
        for name in _QUOTED.findall(names):
            yield Rejection("unexpected", name, f"{name!r} was unexpected")


def _zod(message: str) -> Iterator[Rejection]:
    header = _ZOD_HEADER.search(message)
    if header is None:
        return
    try:
        issues, _ = json.JSONDecoder().raw_decode(message, header.end())
    except (ValueError, RecursionError):
        return  # cut short by the server: nothing in it can be trusted to be whole
    for issue in cast("list[JsonValue]", issues):
        if isinstance(issue, dict):
            yield from _zod_issue(issue)


def _zod_issue(issue: dict[str, JsonValue]) -> Iterator[Rejection]:
    text, path, keys = str(issue.get("message", "")), issue.get("path"), issue.get("keys")
    if issue.get("code") == "unrecognized_keys" and isinstance(keys, list) and not path:
        for key in keys:
            yield Rejection("unexpected", str(key), text)
    elif isinstance(path, list) and path:
        absent = issue.get("received") == "undefined" or "received undefined" in text
        yield _at(".".join(map(str, path)), "missing" if absent else "invalid", text)


def _at(place: str, kind: str, text: str, allowed: tuple[str, ...] = ()) -> Rejection:
    """Return the rejection of a top-level argument: what is wrong deep inside one makes it invalid."""
    argument, *deeper = re.split(r"[.\[]", place)
    known = cast("Literal['missing', 'unexpected', 'invalid']", "invalid" if deeper else kind)
    return Rejection(known, argument, f"{place}: {text}", allowed)

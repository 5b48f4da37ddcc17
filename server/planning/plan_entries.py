"""Where the parts of a plan stand in what a model sent: under other keys, in strings, by name.

Knows no tool and no workflow; what the parts mean is `server.planning.plan_reading`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from server.planning.answer_json import NotJson, read_json

__all__ = [
    "MOST_NODES",
    "Ids",
    "called_tool",
    "entries_of",
    "ids_of",
    "said_arguments",
    "said_order",
    "said_outputs",
    "unstringed",
]

MOST_NODES = 40
_LISTS = ("nodes", "steps", "plan", "calls", "tool_calls", "workflow", "actions", "tasks")
_TOOL = ("tool", "tool_name", "name", "function", "action", "tool_ref")
_ARGUMENTS = ("arguments", "args", "params", "parameters", "input", "inputs", "tool_input")
_ID = ("id", "node_id", "step_id", "step", "node")
_AFTER = ("depends_on", "after", "requires", "dependencies")
_OUTPUTS = ("outputs", "output", "result", "results", "answer")


def entries_of(document: JsonValue, depth: int = 0) -> list[JsonValue]:
    """Return what stands where nodes belong."""
    document = unstringed(document)
    if isinstance(document, list):
        return document
    if not isinstance(document, dict) or depth > 3:
        return []
    for key in _LISTS:
        found = unstringed(document.get(key))
        if isinstance(found, list):
            return found
        if isinstance(found, dict):
            inner = entries_of(found, depth + 1)
            if inner:
                return inner
            if found and all(isinstance(value, dict) for value in found.values()):
                return [{"id": name, **cast("dict[str, JsonValue]", value)} for name, value in found.items()]
    return [document] if called_tool(document) and _first(document, _ARGUMENTS) is not None else []


def called_tool(entry: Mapping[str, JsonValue]) -> str:
    """Return the name of the tool a node calls as the plan says it, empty when it says none."""
    for key in _TOOL:
        match entry.get(key):
            case str() as name if name.strip():
                server = entry.get("server")
                return f"{server}/{name}" if isinstance(server, str) and server else name
            case dict() as inner:
                if name := called_tool(inner):
                    return name
            case _:
                continue
    return ""


def _first(entry: Mapping[str, JsonValue], keys: Sequence[str]) -> JsonValue:
    return next((entry[key] for key in keys if entry.get(key) is not None), None)


def unstringed(value: JsonValue) -> JsonValue:
    """Return what a text holds when it is JSON of an object or list, else the value."""
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "["):
        return value
    try:
        return read_json(value)
    except NotJson:
        return value


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of a plan's nodes, ours by place and by what the plan calls them."""

    own: tuple[str, ...]
    said: dict[str, str]


def ids_of(entries: Sequence[dict[str, JsonValue]]) -> Ids:
    own: list[str] = []
    said: dict[str, str] = {}
    for place, entry in enumerate(entries, 1):
        name = next((str(entry[key]) for key in _ID if isinstance(entry.get(key), str | int)), f"n{place}")
        stem = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")[:40]
        stem = stem if re.match(r"[a-z]", stem) else f"n{stem or place}"
        free = (stem, *(f"{stem}_{number}" for number in range(2, MOST_NODES + 2)))
        mine = next(option for option in free if option not in own)
        own.append(mine)
        said.setdefault(name, mine)
    return Ids(tuple(own), said)


def said_outputs(document: JsonValue) -> dict[str, JsonValue]:
    if not isinstance(document, dict):
        return {}
    match unstringed(_first(document, _OUTPUTS)):
        case dict() as named:
            return named
        case str() as reference:
            return {"result": reference}
        case _:
            return {}


def said_arguments(entry: Mapping[str, JsonValue]) -> JsonValue:
    """Return what stands where a node's arguments belong, None when nothing does."""
    given = _first(entry, _ARGUMENTS)
    function = entry.get("function")
    if given is None and isinstance(function, dict):
        given = _first(function, _ARGUMENTS)
    return unstringed(given)


def said_order(entry: Mapping[str, JsonValue]) -> list[str]:
    """Return the nodes that a node says it comes after, as the plan calls them."""
    asked = _first(entry, _AFTER)
    named = asked if isinstance(asked, list) else [asked]
    return [str(name).removeprefix("$") for name in named if isinstance(name, str | int)]

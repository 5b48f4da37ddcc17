"""The arguments that a tool declares, each as a schema by itself, and what only its server can give."""

from __future__ import annotations

import re
from typing import Final

from pydantic import JsonValue

from catalog.schema import inline_refs
from catalog.similarity import words
from catalog.tools import JsonSchema, Tool
from server.curation.differences import is_moment

__all__ = ["argument_schemas", "is_handle", "is_server_made", "required_arguments"]

_HANDLES: Final = frozenset({"id", "handle", "token", "cursor", "ref", "uid", "uuid"})


def is_handle(name: str) -> bool:
    """Return whether a name is that of a value which only the server can give out."""
    return not _HANDLES.isdisjoint(words(name))


def is_server_made(key: str, value: JsonValue) -> bool:
    """Return whether another process would answer this otherwise: a handle, a time, a path."""
    is_path = isinstance(value, str) and re.fullmatch(r"(?:/[^/\n]+){2,}/?", value) is not None
    return is_handle(key) or is_moment(value) or is_path


def argument_schemas(tool: Tool) -> dict[str, JsonSchema]:
    """Return the schema of each argument a tool declares, as one that can be read by itself."""
    properties = inline_refs(tool.input_schema).get("properties")
    if not isinstance(properties, dict):
        return {}
    root = tool.input_schema
    return {name: _alone(part, root) if isinstance(part, dict) else {} for name, part in properties.items()}


def _alone(part: JsonSchema, root: JsonSchema) -> JsonSchema:
    """Return a part with what it needs of the whole: its dialect, and the definitions it still refers to."""
    if not part:
        return part
    wanted = ("$schema", "$defs", "definitions") if "$ref" in str(part) else ("$schema",)
    return {**{key: root[key] for key in wanted if key in root}, **part}


def required_arguments(tool: Tool) -> tuple[str, ...]:
    """Return the names of the arguments that a tool requires."""
    required = tool.input_schema.get("required")
    return tuple(name for name in required if isinstance(name, str)) if isinstance(required, list) else ()

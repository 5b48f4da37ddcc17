"""Checks a client's arguments against the schema of the tool it calls.

The protocol library checks nothing. Exact scalar text is turned into the type the schema asks
for, and a null for an optional argument counts as leaving it out; all else is refused with every
problem, its place, and what would be right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from catalog.schema import SchemaProblem, coerce, problems, types
from catalog.tools import JsonSchema

__all__ = ["check_arguments", "render_problems"]

_LONGEST = 300
"""Characters of a schema or value that are worth showing."""


def check_arguments(
    schema: JsonSchema, arguments: Mapping[str, JsonValue]
) -> tuple[dict[str, JsonValue], list[SchemaProblem]]:
    """Return the arguments as they will be used, and every problem they still have."""
    given = {name: value for name, value in arguments.items() if not _is_left_out(schema, name, value)}
    coerced, _ = coerce(schema, given)
    used = cast("dict[str, JsonValue]", coerced)
    return used, problems(schema, used)


def render_problems(tool: str, found: list[SchemaProblem], schema: JsonSchema) -> str:
    """Return the text that lets a caller mend its arguments."""
    lines = [f"{tool} was not called: its arguments have {len(found)} problem{'s' * (len(found) > 1)}."]
    lines += [
        f"- {problem.pointer or '/'}: {_short(problem.message)}. {_allowed(problem)}" for problem in found
    ]
    names = cast("dict[str, JsonValue]", schema.get("properties", {}))
    required = cast("list[str]", schema.get("required", []))
    lines.append(
        f"Arguments: {', '.join(f'{name} (required)' if name in required else name for name in names)}."
        if names
        else "It takes no arguments."
    )
    return "\n".join(lines)


def _is_left_out(schema: JsonSchema, name: str, value: JsonValue) -> bool:
    if value is not None or name in cast("list[str]", schema.get("required", [])):
        return False
    known = cast("dict[str, JsonValue]", schema.get("properties", {})).get(name)
    return isinstance(known, dict) and "null" not in types(known)


def _allowed(problem: SchemaProblem) -> str:
    match problem.keyword:
        case "enum":
            return f"Allowed: {_short(problem.expected.get('enum'))}"
        case "additionalProperties":
            names = cast("dict[str, JsonValue]", problem.expected.get("properties", {}))
            return f"Allowed names: {', '.join(names) or 'none'}"
        case _:
            return f"Allowed: {_short(problem.expected)}"


def _short(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

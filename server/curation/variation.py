"""Other inputs for a skill: what a varied run may be given so that it says something.

Paper: FlowEvo (metamorphic variants per pattern; facts §3.5 gate 2). Differs: variants come from
the input's type, its schema, its format and what the world has shown, never from a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from pydantic import JsonValue

from catalog.schema import is_valid, samples
from catalog.tools import JsonSchema
from server.planning.units import sibling_units

__all__ = ["Variant", "variants"]

_ZONES = ("Asia/Kolkata", "America/New_York", "Europe/Berlin", "UTC")
_CURRENCIES = ("USD", "EUR", "GBP", "JPY")
_ADDRESSED = re.compile(
    r"path|file|folder|dir|repo|url|uri|host|database|id$|key|token|sheet|range|table", re.IGNORECASE
)
_RECORD = re.compile(r"(?:^|_)(?:id|number|no|nr|key)$|Id$|Number$")
_PER_INPUT = 3
_PER_ENUM = 12
"""So that all values of a small enum are tried, which alone shows that it moves nothing."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Inputs that differ from the original in the inputs that are named, one where it was made up."""

    inputs: dict[str, JsonValue]
    changed: tuple[str, ...]
    known_valid: bool = True
    """False where the value is made up and may name something that is not there."""


def variants(
    original: Mapping[str, JsonValue],
    schema: JsonSchema,
    seen: Mapping[str, Sequence[JsonValue]] | None = None,
    per_input: int = _PER_INPUT,
) -> dict[str, list[Variant]]:
    """Return variants by input name; an empty list where no valid variant can be made up.

    An input that the original leaves out is varied by giving it.

    Args:
        original: inputs of the verified run.
        schema: the skill's input schema.
        seen: values for an input that the world is known to have, tried first.
        per_input: most variants of one input; an enum that is small is tried in full.
    """
    properties = schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    found: dict[str, list[Variant]] = {}
    for name in dict.fromkeys((*original, *named)):
        part, known = _part(named, name), (seen or {}).get(name, ())
        options = part.get("enum")
        most = max(per_input, min(len(options), _PER_ENUM)) if isinstance(options, list) else per_input
        found[name] = [
            Variant({**original, name: value}, (name,), value in known or _is_known_valid(name, value, part))
            for value in _others(name, original, part, known)[:most]
        ]
    return found


def _is_known_valid(name: str, value: JsonValue, schema: JsonSchema) -> bool:
    """Return whether the schema alone vouches for a made-up value."""
    return "enum" in schema or not (isinstance(value, str) or _RECORD.search(name))


def _part(named: Mapping[str, JsonValue], name: str) -> JsonSchema:
    part = named.get(name)
    return part if isinstance(part, dict) else {}


def _others(
    name: str, original: Mapping[str, JsonValue], schema: JsonSchema, seen: Sequence[JsonValue]
) -> list[JsonValue]:
    """Return other valid values of an input, each once; where it is left out, its default is none."""
    value = original.get(name, schema.get("default"))
    found: list[JsonValue] = []
    for other in (*seen, *_made_up(name, value, schema)):
        if other != value and other not in found and (not schema or is_valid(schema, other)):
            found.append(other)
    return found


def _made_up(name: str, value: JsonValue, schema: JsonSchema) -> Iterator[JsonValue]:
    for key in ("enum", "examples"):
        options = schema.get(key)
        yield from options if isinstance(options, list) else ()
    if "enum" in schema:
        return
    match value:
        case bool():
            yield not value
        case int():
            yield from (value + 1, value * 2, value + 7, value - 1, value // 2)
            yield from samples(schema, seed=7, count=3) if schema else ()
        case float():
            yield from (value * 1.6, value + 1.5, value / 2)
            yield from samples(schema, seed=7, count=3) if schema else ()
        case str() if units := sibling_units(value):
            yield from units
        case str():
            yield from _texts(name, value, schema)
        case list() if value:
            yield from _lists(value)
        case _:
            yield from samples(schema, seed=7, count=3) if schema else ()


def _lists(value: list[JsonValue]) -> Iterator[JsonValue]:
    if all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
        numbers = [item for item in value if isinstance(item, int | float)]
        yield [item * 2 for item in numbers]
        yield [item + 1 + index for index, item in enumerate(numbers)]
        yield [*numbers, numbers[-1] + 3]
        return
    if len(value) > 1:
        yield value[:-1]
        yield [*reversed(value)]


def _texts(name: str, value: str, schema: JsonSchema) -> Iterator[str]:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        day = date.fromisoformat(value)
        yield from ((day + timedelta(days=days)).isoformat() for days in (1, 31, -10))
    elif match := re.fullmatch(r"(\d{1,2}):(\d{2})", value):
        hour, minute = int(match[1]), match[2]
        yield from (f"{(hour + shift) % 24:02d}:{minute}" for shift in (3, 7, 11))
    elif re.fullmatch(r"[A-Z][A-Za-z]+(?:/[A-Z][A-Za-z_]+)+|UTC|GMT", value):
        yield from _ZONES
    elif re.fullmatch(r"[A-Z]{3}", value) and "curr" in name.lower():
        yield from _CURRENCIES
    elif re.fullmatch(r"-?\d+(\.\d+)?", value):
        yield str(int(float(value)) + 3)
    elif not _ADDRESSED.search(name) and not schema.keys() & {"pattern", "format"} and " " in value:
        yield from _free_texts(value)
    elif not _ADDRESSED.search(name) and not schema.keys() & {"pattern", "format"}:
        yield f"{value} again"
        yield f"{value}{value}"


def _free_texts(value: str) -> Iterator[str]:
    yield f"{value} again"
    yield " ".join(reversed(value.split()))
    yield value.upper()

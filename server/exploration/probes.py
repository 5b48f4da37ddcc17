"""The calls that a tool is tried with first: typical, every enum value, boundaries, and broken on purpose.

Paper: AgentEvolver (breadth phase of self-questioning; facts §4.2). Differs: no model walks about;
arguments come from schemas, prose, earlier answers and refusals, and each kind of call has a name,
so that coverage can be counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from catalog.schema import is_valid, types
from catalog.tools import JsonSchema, Tool
from server.exploration.arguments import argument_schemas, required_arguments
from server.exploration.observation import Probe
from server.exploration.values import KnownValues

__all__ = ["boundary_probes", "breaking_probes", "enum_probes", "enum_values", "typical_probes"]

_HUGE = 10**15
_LONG_TEXT = "long text " * 200
_ODD_TEXT = "ünïcödé \u200b\u202e 'quoted' \"twice\" {brace} %s 🜚"


def typical_probes(tool: Tool, known: KnownValues, limit: int = 4) -> list[Probe]:
    """Return valid calls of a tool, the likeliest to succeed first: required arguments, then optional too."""
    schemas, required = argument_schemas(tool), required_arguments(tool)
    options = {name: known.candidates(tool, name) for name in required}
    found: dict[str, Probe] = {}
    for turn in range(limit):
        arguments = _aligned(options, turn)
        probe = Probe(tool, arguments, "typical")
        found.setdefault(probe.key, probe)
    optional = [name for name in schemas if name not in required]
    if optional and found:
        first = next(iter(found.values()))
        given = {name: values[0] for name in optional if (values := known.candidates(tool, name, 1))}
        probe = Probe(tool, {**first.arguments, **given}, "typical")
        found.setdefault(probe.key, probe)
    return list(found.values())


def _aligned(options: Mapping[str, list[JsonValue]], turn: int) -> dict[str, JsonValue]:
    """Return the values of one turn: those of equal rank belong together, and two arguments differ."""
    chosen: dict[str, JsonValue] = {}
    for name, values in options.items():
        if values:
            ranked = [values[(turn + step) % len(values)] for step in range(len(values))]
            chosen[name] = next((value for value in ranked if value not in chosen.values()), ranked[0])
    return chosen


def enum_probes(tool: Tool, worked: dict[str, JsonValue]) -> Iterator[Probe]:
    """Yield one call for each value of each enumeration, the rest as in a call that worked."""
    for name, schema in argument_schemas(tool).items():
        for value in enum_values(schema):
            if worked.get(name) != value:
                yield Probe(tool, {**worked, name: value}, "enum", name)


def enum_values(schema: JsonSchema) -> list[JsonValue]:
    """Return the values an argument is enumerated to have, each in a list where it takes a list of them."""
    enum = schema.get("enum")
    if isinstance(enum, list):
        return enum
    items = schema.get("items")
    members = items.get("enum") if isinstance(items, dict) else None
    return [[member] for member in members] if isinstance(members, list) else []


def boundary_probes(tool: Tool, worked: dict[str, JsonValue]) -> Iterator[Probe]:
    """Yield valid calls at the edges of what the schema of one argument allows."""
    for name, schema in argument_schemas(tool).items():
        if name not in worked or enum_values(schema):
            continue
        for value in _edges(schema):
            if value != worked[name] and is_valid(schema, value):
                yield Probe(tool, {**worked, name: value}, "boundary", name)


def _edges(schema: JsonSchema) -> Iterator[JsonValue]:
    kinds = types(schema)
    if kinds & {"integer", "number"}:
        yield from (schema[key] for key in ("minimum", "maximum") if key in schema)
        yield from (0, -1, _HUGE)
    if "string" in kinds and "format" not in schema:
        yield from ("", _ODD_TEXT, _LONG_TEXT)
    if "array" in kinds:
        yield []


def breaking_probes(tool: Tool, worked: dict[str, JsonValue]) -> Iterator[Probe]:
    """Yield calls that the tool's own schema does not allow, each wrong in one way."""
    schemas = argument_schemas(tool)
    for name in required_arguments(tool):
        if name in worked:
            rest = {key: value for key, value in worked.items() if key != name}
            yield Probe(tool, rest, "missing_argument", name)
            break
    for name, schema in schemas.items():
        wrong = _wrong_type(schema)
        if name in worked and wrong is not None:
            yield Probe(tool, {**worked, name: wrong}, "wrong_type", name)
            break
    yield Probe(tool, {**worked, "no_such_argument_": 1}, "unknown_argument", "no_such_argument_")
    for name, schema in schemas.items():
        if isinstance(schema.get("enum"), list) and "string" in types(schema):
            yield Probe(tool, {**worked, name: "no such value"}, "outside_enum", name)
            break
    for name, schema in schemas.items():
        outside = _outside(schema)
        if name in worked and outside is not None:
            yield Probe(tool, {**worked, name: outside}, "outside_bounds", name)
            break


def _wrong_type(schema: JsonSchema) -> JsonValue:
    """Return a value of a type that the schema does not allow, None where it allows any."""
    options: tuple[JsonValue, ...] = ({"not": ["this"]}, ["no"], "not a number", 7)
    wrong = [value for value in options if schema and not is_valid(schema, value)]
    return wrong[0] if wrong else None


def _outside(schema: JsonSchema) -> JsonValue:
    minimum, maximum = schema.get("minimum"), schema.get("maximum")
    if isinstance(minimum, int | float):
        return minimum - 1
    return maximum + 1 if isinstance(maximum, int | float) else None

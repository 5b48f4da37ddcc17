"""Example values of a schema, deterministic by seed, for varied runs and exploration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Final

from catalog.canonical import JsonValue, canonical_json
from catalog.schema.validation import is_valid
from catalog.schema.variants import inline_refs, variant_types, variants
from catalog.tools import JsonSchema

__all__ = ["samples"]

_MAX_DEPTH: Final = 6
_ROUNDS: Final = 8
_WORDS: Final = ("sample", "alpha", "hello world", "Berlin", "42", "a", "Blue sky, green sea")
_NUMBERS: Final = (1, 2, 5, 10, 3, 100, 7, 0, 12)
_FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "date": ("2024-02-29", "2023-07-01", "2000-01-01"),
    "date-time": ("2024-02-29T12:30:00Z", "2023-07-01T08:00:00+02:00"),
    "time": ("12:30:00Z", "08:15:00+02:00"),
    "email": ("ann@example.org", "b.c@example.net"),
    "uri": ("https://example.org/", "https://example.net/a?b=c"),
    "url": ("https://example.org/",),
    "uuid": ("6f1c1d1e-8a37-4a55-9d5b-0c6b1f0a2b11", "00000000-0000-4000-8000-000000000000"),
    "hostname": ("example.org", "localhost"),
    "ipv4": ("192.0.2.1", "127.0.0.1"),
    "ipv6": ("2001:db8::1", "::1"),
    "duration": ("PT1H", "P1D"),
}


def samples(schema: JsonSchema, seed: int, count: int) -> list[JsonValue]:
    """Return up to `count` different values that fit the schema, the likeliest first.

    The same seed gives the same values; what the schema itself names (constants, enum members,
    examples, the default) comes before boundaries and typical values. Fewer come back, possibly
    none, where fitting ones are not found, as under a pattern.

    Raises:
        SchemaRejected: the schema cannot be evaluated.
    """
    whole = inline_refs(schema)
    dice = Random(seed)
    found: dict[bytes, JsonValue] = {}
    for _ in range(_ROUNDS):
        for value in islice(_Sampling(dice).values(whole, 0), 4 * count):
            if is_valid(schema, value):
                found.setdefault(canonical_json(value), value)
            if len(found) >= count:
                return list(found.values())[:count]
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Sampling:
    dice: Random

    def values(self, schema: JsonSchema | bool, depth: int) -> Iterator[JsonValue]:
        if isinstance(schema, bool):
            schema = {}
        yield from _named(schema)
        offered = variants(schema, schema)
        streams = [
            self._of_variant(variant, depth) for variant in offered if variant_types(variant) - {"null"}
        ]
        yield from _in_turn(streams or [iter([None])])

    def _of_variant(self, variant: JsonSchema, depth: int) -> Iterator[JsonValue]:
        if isinstance(members := variant.get("enum"), list):
            yield from self._rotated(members)
            return
        yield from _named(variant)
        streams = [
            self._of_type(kind, variant, depth) for kind in sorted(variant_types(variant), reverse=True)
        ]
        yield from _in_turn(streams[:1] if "type" not in variant else streams)

    def _of_type(self, kind: str, variant: JsonSchema, depth: int) -> Iterator[JsonValue]:
        match kind:
            case "integer" | "number":
                yield from self._numbers(variant, whole=kind == "integer")
            case "string":
                yield from self._strings(variant)
            case "boolean":
                yield from self._rotated([True, False])
            case "array":
                yield from self._arrays(variant, depth)
            case "object":
                yield from self._objects(variant, depth)
            case _:
                yield None

    def _numbers(self, variant: JsonSchema, *, whole: bool) -> Iterator[JsonValue]:
        step = _number(variant, "multipleOf") or 1
        low, high = _number(variant, "minimum"), _number(variant, "maximum")
        start = low if low is not None else high - step if high is not None else 0
        typical: list[JsonValue] = [_whole(start + step * n) for n in _NUMBERS]
        yield from self._rotated(typical)
        yield from (_whole(edge) for edge in (low, high) if edge is not None)
        if not whole:
            yield from self._rotated([start + 0.5, start + 1.25])
        if low is not None and high is not None:
            yield _whole((low + high) // 2 if whole else (low + high) / 2)

    def _strings(self, variant: JsonSchema) -> Iterator[JsonValue]:
        form = variant.get("format")
        words = list(_FORMATS.get(form, _WORDS)) if isinstance(form, str) else list(_WORDS)
        yield from self._rotated([*words])
        least, most = int(_number(variant, "minLength") or 0), _number(variant, "maxLength")
        yield from (word.ljust(least, "x") for word in words)
        if most is not None:
            yield from (word[: int(most)] for word in words)

    def _arrays(self, variant: JsonSchema, depth: int) -> Iterator[JsonValue]:
        if depth >= _MAX_DEPTH:
            yield []
            return
        items = variant.get("items")
        item = items if isinstance(items, dict | bool) else True
        least, most = int(_number(variant, "minItems") or 0), _number(variant, "maxItems")
        for size in (max(least, 2), max(least, 3), max(least, 1), least):
            taken = list(islice(self.values(item, depth + 1), size if most is None else min(size, int(most))))
            yield [*taken]

    def _objects(self, variant: JsonSchema, depth: int) -> Iterator[JsonValue]:
        properties = variant.get("properties")
        described = properties if isinstance(properties, dict) and depth < _MAX_DEPTH else {}
        required = variant.get("required")
        needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        for turn in range(2 if depth else _ROUNDS):
            optional = [n for n in described if n not in needed and turn > 0 and self.dice.random() < 0.5]
            yield {
                name: self._member(described.get(name, True), turn, depth) for name in (*needed, *optional)
            }

    def _member(self, schema: JsonValue, turn: int, depth: int) -> JsonValue:
        part = schema if isinstance(schema, dict) else {}
        fitting = (value for value in self.values(part, depth + 1) if is_valid(part, value))
        options = list(islice(fitting, turn + 1))
        return options[-1] if options else None

    def _rotated(self, values: list[JsonValue]) -> list[JsonValue]:
        start = self.dice.randrange(len(values)) if values else 0
        return values[start:] + values[:start]


def _named(schema: JsonSchema) -> Iterator[JsonValue]:
    """Yield the values the schema itself names."""
    if "const" in schema:
        yield schema["const"]
    if isinstance(examples := schema.get("examples"), list):
        yield from examples
    if "default" in schema:
        yield schema["default"]


def _in_turn(streams: list[Iterator[JsonValue]]) -> Iterator[JsonValue]:
    """Yield one value of each stream, then the next of each, until all have ended."""
    while streams:
        ended: list[Iterator[JsonValue]] = []
        for stream in streams:
            try:
                yield next(stream)
            except StopIteration:
                ended.append(stream)
        streams = [stream for stream in streams if stream not in ended]


def _number(schema: JsonSchema, keyword: str) -> float | None:
    value = schema.get(keyword)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: float) -> JsonValue:
    return int(value) if isinstance(value, float) and value.is_integer() else value

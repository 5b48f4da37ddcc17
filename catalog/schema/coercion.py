"""Reads scalar text as the scalar a schema asks for, and the other way round, only where nothing
is lost and nothing is guessed: `"300"` is 300, `"300 miles"` stays what it is."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from catalog.canonical import JsonValue
from catalog.schema.location import child_schema, item_schema
from catalog.schema.references import escape
from catalog.schema.variants import json_type, variant_types, variants
from catalog.tools import JsonSchema

__all__ = ["Coerced", "coerce"]

_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,307})")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,307})(\.[0-9]{1,308})?([eE][+-]?[0-9]{1,3})?")
_TRUTHS: Final[dict[str, JsonValue]] = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Coerced:
    """One scalar that was read as another type."""

    pointer: str
    before: JsonValue
    after: JsonValue


def coerce(schema: JsonSchema, value: JsonValue) -> tuple[JsonValue, list[Coerced]]:
    """Return the value with scalars read as the schema asks, and each change.

    The value itself is not changed. What cannot be read exactly stays, for validation to refuse.

    Raises:
        SchemaRejected: a reference in the schema names nothing.
    """
    reading = _Reading(schema)
    return reading.value(schema, value, ""), reading.changes


@dataclass
class _Reading:
    root: JsonSchema
    changes: list[Coerced] = field(default_factory=list[Coerced])

    def value(self, schema: JsonSchema | bool | None, value: JsonValue, pointer: str) -> JsonValue:
        if not isinstance(schema, dict):
            return value
        offered = variants(schema, self.root)
        match value:
            case dict():
                return self._object(_only(offered, "object"), value, pointer)
            case list():
                return self._array(_only(offered, "array"), value, pointer)
            case _:
                return self._scalar(offered, value, pointer)

    def _object(self, variant: JsonSchema, value: dict[str, JsonValue], pointer: str) -> JsonValue:
        return {
            key: self.value(child_schema(variant, key), item, f"{pointer}/{escape(key)}")
            for key, item in value.items()
        }

    def _array(self, variant: JsonSchema, value: list[JsonValue], pointer: str) -> JsonValue:
        return [
            self.value(item_schema(variant, index), item, f"{pointer}/{index}")
            for index, item in enumerate(value)
        ]

    def _scalar(self, offered: list[JsonSchema], value: JsonValue, pointer: str) -> JsonValue:
        wanted = frozenset[str]().union(*(variant_types(variant) for variant in offered))
        if _admits(wanted, value):
            return value
        after = _read(value, wanted) if isinstance(value, str) else _write(value, wanted)
        if after is None:
            return value
        self.changes.append(Coerced(pointer, value, after))
        return after


def _only(offered: list[JsonSchema], kind: str) -> JsonSchema:
    """Return the one variant of that type; with several nothing inside is touched."""
    fitting = [variant for variant in offered if kind in variant_types(variant)]
    return fitting[0] if len(fitting) == 1 else {}


def _admits(wanted: frozenset[str], value: JsonValue) -> bool:
    kind = json_type(value)
    whole = isinstance(value, float) and value.is_integer()
    return kind in wanted or (kind == "integer" and "number" in wanted) or (whole and "integer" in wanted)


def _read(text: str, wanted: frozenset[str]) -> JsonValue:
    if wanted & {"integer", "number"} and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in wanted and _NUMBER.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) and Decimal(text) == Decimal(repr(number)) else None
    return _TRUTHS.get(text) if "boolean" in wanted else None


def _write(value: JsonValue, wanted: frozenset[str]) -> JsonValue:
    if value is None or "string" not in wanted or wanted - {"null", "string"}:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return json.dumps(value)

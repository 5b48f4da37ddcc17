"""Static cost bound on schemas, checked before anything evaluates them.

A schema of a few lines can cost its validator hours: references that double at every level,
or a recursive schema that describes one child several times, where the depth of the instance
is the exponent. Both are counted without evaluating anything.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from catalog.canonical import JsonValue
from catalog.errors import SchemaRejected
from catalog.schema.references import resolve, subschemas
from catalog.tools import JsonSchema

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_VISITS", "Cost", "bounded_cost", "can_explain"]

MAX_BYTES: Final = 200_000
MAX_DEPTH: Final = 64
MAX_VISITS: Final = 20_000

_REFERENCES: Final = ("$dynamicRef", "$recursiveRef", "$ref")


@dataclass(frozen=True, slots=True)
class Cost:
    """What evaluating a schema can cost."""

    visits: int
    """Subschema visits with every local reference expanded, recursion counted once."""
    returns: int
    """Ways on which a recursion comes back to where it began; 0 without recursion."""


def bounded_cost(schema: JsonSchema, root: JsonSchema | None = None) -> Cost:
    """Return the cost of a schema that is within the bounds.

    Args:
        schema: the schema in question.
        root: the document its references mean, None for itself.

    Raises:
        SchemaRejected: too large, too deep, too many expansions, or a `$ref` that is not local.
    """
    try:
        size = len(json.dumps(schema, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except (RecursionError, TypeError, ValueError) as error:
        raise SchemaRejected(f"schema cannot be written as JSON: {error}") from error
    if size > MAX_BYTES:
        raise SchemaRejected(f"schema has {size} bytes, over the limit of {MAX_BYTES}")
    return _Counting(schema if root is None else root).count(schema, 0)


def can_explain(cost: Cost, value: JsonValue) -> bool:
    """Return whether listing every error of a value stays within the bounds.

    A yes or no is cheap for any value, since validators remember what they saw; the tree of
    errors of a recursive schema doubles with each level of the value.
    """
    depth, level = 0, [value]
    while level and cost.returns**depth <= MAX_VISITS and depth <= MAX_DEPTH:
        level = [child for item in level for child in _containers(item)]
        depth += 1
    return not level


def _containers(value: JsonValue) -> list[JsonValue]:
    match value:
        case dict():
            return [item for item in value.values() if isinstance(item, dict | list)]
        case list():
            return [item for item in value if isinstance(item, dict | list)]
        case _:
            return []


@dataclass
class _Counting:
    root: JsonSchema
    _costs: dict[int, Cost] = field(default_factory=dict[int, Cost])
    _open: set[int] = field(default_factory=set[int])

    def count(self, schema: JsonSchema | bool, depth: int) -> Cost:
        if isinstance(schema, bool):
            return Cost(1, 0)
        if depth > MAX_DEPTH:
            raise SchemaRejected(f"schema is nested deeper than {MAX_DEPTH}")
        key = id(schema)
        if key in self._open:
            return Cost(1, 1)
        if key not in self._costs:
            self._open.add(key)
            self._costs[key] = self._sum(schema, depth)
            self._open.discard(key)
        return self._costs[key]

    def _sum(self, schema: JsonSchema, depth: int) -> Cost:
        visits, returns = 1, 0
        for sub in self._next(schema):
            cost = self.count(sub, depth + 1)
            visits, returns = visits + cost.visits, returns + cost.returns
            if visits > MAX_VISITS:
                raise SchemaRejected(f"schema expands to more than {MAX_VISITS} subschemas")
        return Cost(visits, returns)

    def _next(self, schema: JsonSchema) -> list[JsonSchema | bool]:
        referred = [resolve(self.root, schema[keyword]) for keyword in _REFERENCES if keyword in schema]
        return [*(sub for _, sub in subschemas(schema)), *referred]

"""Patterns that cannot be evaluated in linear time, taken out of a schema so that the rest can be used.

Look-around and back-references are legal in JSON Schema and common (many servers write the pattern of
an address with them), and no engine evaluates them within a bound. Without them a schema admits more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog.canonical import JsonValue
from catalog.errors import SchemaRejected
from catalog.schema.references import map_subschemas
from catalog.schema.validation import check_schema
from catalog.tools import JsonSchema

__all__ = ["without_unusable_patterns"]

_DEFINITIONS = ("$defs", "definitions")
_CLOSING = ("additionalProperties", "unevaluatedProperties")


def without_unusable_patterns(schema: JsonSchema) -> tuple[JsonSchema, list[str]]:
    """Return the schema without the patterns that are not evaluated, and those patterns."""
    cleaning = _Cleaning()
    return cleaning.schema(schema), cleaning.dropped


@dataclass
class _Cleaning:
    dropped: list[str] = field(default_factory=list[str])

    def schema(self, schema: JsonSchema) -> JsonSchema:
        changed = map_subschemas(schema, self._part)
        for keyword in _DEFINITIONS:
            if isinstance(named := changed.get(keyword), dict):
                changed[keyword] = {n: self.schema(s) if isinstance(s, dict) else s for n, s in named.items()}
        if "pattern" in changed and not self._is_usable(changed["pattern"]):
            del changed["pattern"]
        if isinstance(mapped := changed.get("patternProperties"), dict):
            kept = {pattern: sub for pattern, sub in mapped.items() if self._is_usable(pattern)}
            changed["patternProperties"] = kept
            if len(kept) < len(mapped):  # a property that only such a pattern allowed must still be allowed
                changed = {key: value for key, value in changed.items() if key not in _CLOSING}
        return changed

    def _part(self, schema: JsonSchema | bool) -> JsonSchema | bool:
        return schema if isinstance(schema, bool) else self.schema(schema)

    def _is_usable(self, pattern: JsonValue) -> bool:
        if not isinstance(pattern, str):
            return True  # malformed, which the check of the whole schema says
        try:
            check_schema({"pattern": pattern})
        except SchemaRejected:
            if pattern not in self.dropped:
                self.dropped.append(pattern)
            return False
        return True

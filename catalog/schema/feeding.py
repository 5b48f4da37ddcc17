"""Whether a value that one schema describes may be given where another schema asks for one."""

from __future__ import annotations

from typing import Final

from catalog.canonical import JsonValue
from catalog.schema.coercion import coerce
from catalog.schema.validation import is_valid
from catalog.schema.variants import JSON_TYPES, inline_refs, variant_types, variants
from catalog.tools import JsonSchema

__all__ = ["feeds"]

_MAX_DEPTH: Final = 8
_READABLE: Final = frozenset({"boolean", "integer", "number"})


def feeds(source: JsonSchema | None, target: JsonSchema) -> bool | None:
    """Return whether a value of the source's type may be given to the target.

    True: the types agree, though a value may still miss a bound or a pattern. False: no value
    does, coerced or not (an always empty list does not count). None: some may, or nothing is known.

    Raises:
        SchemaRejected: a reference in one of the schemas names nothing.
    """
    if source is None:
        return None
    return _feeds(inline_refs(source), inline_refs(target), 0)


def _feeds(source: JsonSchema, target: JsonSchema, depth: int) -> bool | None:
    accepted = variants(target, target)
    if depth > _MAX_DEPTH:
        return None
    given = [_any_of([_fits(one, other, depth) for other in accepted]) for one in variants(source, source)]
    if all(answer is True for answer in given):
        return True
    return False if all(answer is False for answer in given) else None


def _any_of(answers: list[bool | None]) -> bool | None:
    if True in answers:
        return True
    return None if None in answers else False


def _fits(source: JsonSchema, target: JsonSchema, depth: int) -> bool | None:
    values = _listed_values(source)
    if values is not None:
        return _values_fit(values, target)
    given, accepted = variant_types(source), variant_types(target)
    if given == JSON_TYPES:
        return True if accepted == JSON_TYPES and not _listed_values(target) else None
    answers = [_type_fits(kind, source, target, depth) for kind in given]
    if all(answer is True for answer in answers):
        return True
    return False if all(answer is False for answer in answers) else None


def _listed_values(schema: JsonSchema) -> list[JsonValue] | None:
    if "const" in schema:
        return [schema["const"]]
    return values if isinstance(values := schema.get("enum"), list) else None


def _values_fit(values: list[JsonValue], target: JsonSchema) -> bool | None:
    fitting = [is_valid(target, coerce(target, value)[0]) for value in values]
    if all(fitting):
        return True
    return None if any(fitting) else False


def _type_fits(kind: str, source: JsonSchema, target: JsonSchema, depth: int) -> bool | None:
    accepted = variant_types(target)
    if kind in accepted or (kind == "integer" and "number" in accepted):
        return _same_type_fits(kind, source, target, depth)
    if kind == "number" and "integer" in accepted:
        return None if _ranges_meet(source, target) else False
    if kind == "string" and accepted & _READABLE:
        return None
    if kind in _READABLE and "string" in accepted:
        return None
    return False


def _same_type_fits(kind: str, source: JsonSchema, target: JsonSchema, depth: int) -> bool | None:
    if _listed_values(target) is not None:
        return None
    match kind:
        case "integer" | "number":
            return _ranges_meet(source, target)
        case "string":
            differ = "format" in source and "format" in target and source["format"] != target["format"]
            return None if differ else True
        case "array":
            return _items_fit(source, target, depth)
        case "object":
            return _members_fit(source, target, depth)
        case _:
            return True


def _ranges_meet(source: JsonSchema, target: JsonSchema) -> bool:
    return not (_ends_below(source, target) or _ends_below(target, source))


def _ends_below(lower: JsonSchema, upper: JsonSchema) -> bool:
    ends, starts = _number(lower, "maximum"), _number(upper, "minimum")
    return ends is not None and starts is not None and ends < starts


def _number(schema: JsonSchema, keyword: str) -> float | None:
    value = schema.get(keyword)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _items_fit(source: JsonSchema, target: JsonSchema, depth: int) -> bool | None:
    accepted = target.get("items")
    if not isinstance(accepted, dict) or not accepted:
        return True if "prefixItems" not in target and accepted is not False else None
    given = source.get("items")
    return _feeds(given, accepted, depth + 1) if isinstance(given, dict) else None


def _members_fit(source: JsonSchema, target: JsonSchema, depth: int) -> bool | None:
    given, accepted = _properties(source), _properties(target)
    required = target.get("required")
    missing = False if source.get("additionalProperties") is False else None
    needed = required if isinstance(required, list) else []
    answers: list[bool | None] = [missing for name in needed if name not in given]
    for name, sub in given.items():
        if isinstance(wanted := accepted.get(name), dict) and isinstance(sub, dict):
            answers.append(_feeds(sub, wanted, depth + 1))
        elif name not in accepted and target.get("additionalProperties") is False:
            answers.append(None)
    if False in answers:
        return False
    return None if None in answers else True


def _properties(schema: JsonSchema) -> dict[str, JsonValue]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}

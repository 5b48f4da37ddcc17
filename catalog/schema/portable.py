"""The dialect of JSON Schema that every host accepts, and what a schema does outside of it.

Strict hosts refuse unions at the top, references, lists of types, boolean schemas and arrays
without items. The portable schema admits every object that the original admits and possibly
more: it is what a host sees; arguments are always checked against the original.
"""

from __future__ import annotations

import re
from typing import Final

from catalog.canonical import JsonValue
from catalog.schema.bounds import bounded_cost
from catalog.schema.references import subschemas
from catalog.schema.variants import inline_refs, variant_types, variants
from catalog.tools import JsonSchema

__all__ = ["lint_schema", "portable_schema"]

PROPERTY_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_UNIONS: Final = ("allOf", "anyOf", "oneOf")
_KEPT: Final = frozenset(
    {
        "default",
        "deprecated",
        "description",
        "enum",
        "examples",
        "format",
        "pattern",
        "required",
        "title",
        "type",
    }
)
_COUNTS: Final = ("maxItems", "maxLength", "minItems", "minLength")
_BOUNDS: Final = ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf")


def portable_schema(schema: JsonSchema) -> JsonSchema:
    """Return the schema as strict hosts accept it: an object at the top, plain all the way down.

    Raises:
        SchemaRejected: too costly, or a reference that is not local.
    """
    bounded_cost(schema)
    whole = inline_refs(schema)
    offered = [v for v in variants(whole, whole) if "object" in variant_types(v)]
    return {**_plain(_joined(whole, offered)), "type": "object"}


def _joined(whole: JsonSchema, offered: list[JsonSchema]) -> JsonSchema:
    """Return one object schema for several alternatives: any property, only what all require."""
    if len(offered) <= 1:
        return offered[0] if offered else {}
    joined = {key: whole[key] for key in ("title", "description", "default") if key in whole}
    named = [_map(variant, "properties") for variant in offered]
    properties: dict[str, JsonValue] = {}
    for name in dict.fromkeys(name for one in named for name in one):
        properties[name] = _either([_allowed(variant, name) for variant in offered])
    joined["properties"] = properties
    first = _names(offered[0], "required")
    joined["required"] = [n for n in first if all(n in _names(variant, "required") for variant in offered)]
    if all(v.get("additionalProperties") is False and "patternProperties" not in v for v in offered):
        joined["additionalProperties"] = False
    return joined


def _allowed(variant: JsonSchema, name: str) -> JsonValue:
    properties = _map(variant, "properties")
    if name in properties:
        return properties[name]
    open_to = variant.get("additionalProperties", True)
    return True if "patternProperties" in variant else open_to


def _either(options: list[JsonValue]) -> JsonValue:
    possible = [option for option in options if option is not False]
    distinct = [option for index, option in enumerate(possible) if option not in possible[:index]]
    if not distinct or any(option is True or option == {} for option in distinct):
        return {}
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _plain(schema: JsonSchema | bool) -> JsonSchema:
    """Return the schema without whatever a strict host refuses."""
    if isinstance(schema, bool):
        return {}
    if any(keyword in schema for keyword in _UNIONS):
        return _plain_union(schema)
    plain = {key: value for key, value in schema.items() if key in _KEPT}
    plain |= {key: schema[key] for key in (*_COUNTS, *_BOUNDS) if _is_number(schema.get(key))}
    if "const" in schema:
        plain["enum"] = [schema["const"]]
    plain |= _plain_members(schema)
    is_said = schema.get("type") == "array" or "array" in variant_types(schema)
    if is_said and ("type" in schema or "items" in schema):
        items = schema.get("items")
        plain["items"] = _plain(items) if isinstance(items, dict) and "prefixItems" not in schema else {}
    return _one_type(plain)


def _plain_union(schema: JsonSchema) -> JsonSchema:
    prose = {key: schema[key] for key in ("title", "description", "default", "examples") if key in schema}
    offered = [_plain(variant) for variant in variants(schema, schema)]
    offered = [{k: v for k, v in one.items() if prose.get(k) != v} for one in offered]
    offered = [single for one in offered for single in _flattened(one)]
    distinct = [one for index, one in enumerate(offered) if one not in offered[:index]]
    if not distinct or {} in distinct:
        return prose
    return {**distinct[0], **prose} if len(distinct) == 1 else {**prose, "anyOf": [*distinct]}


def _flattened(plain: JsonSchema) -> list[JsonSchema]:
    inner = plain.get("anyOf")
    if plain.keys() != {"anyOf"} or not isinstance(inner, list):
        return [plain]
    return [one for one in inner if isinstance(one, dict)]


def _plain_members(schema: JsonSchema) -> JsonSchema:
    members: JsonSchema = {}
    properties: dict[str, JsonValue] = {
        name: _plain(sub)
        for name, sub in _map(schema, "properties").items()
        if isinstance(sub, dict) or sub is True
    }
    if properties:
        members["properties"] = properties
    if "patternProperties" in schema:
        return members
    match schema.get("additionalProperties"):
        case False:
            members["additionalProperties"] = False
        case dict() as sub:
            members["additionalProperties"] = _plain(sub)
        case _:
            pass
    return members


def _one_type(plain: JsonSchema) -> JsonSchema:
    """Return the schema with a list of types as a union of single types."""
    names = plain.get("type")
    if not isinstance(names, list):
        return plain
    if len(names) == 1:
        return {**plain, "type": names[0]}
    rest = {key: value for key, value in plain.items() if key not in ("items", "type")}
    items = plain.get("items", {})
    return {**rest, "anyOf": [{"type": n, "items": items} if n == "array" else {"type": n} for n in names]}


def lint_schema(schema: JsonSchema) -> list[str]:
    """Return what strict hosts refuse about a schema, each with its place."""
    found = [f"#: {keyword} at the top" for keyword in _UNIONS if keyword in schema]
    if schema.get("type") != "object":
        found.append("#: not an object at the top")
    if any(keyword in schema for keyword in ("$defs", "definitions")):
        found.append("#: definitions")
    return found + _lint(schema, "#")


def _lint(schema: JsonSchema | bool, place: str) -> list[str]:
    if isinstance(schema, bool):
        return [f"{place}: boolean schema"]
    found = [f"{place}: {keyword}" for keyword in ("$dynamicRef", "$ref") if keyword in schema]
    if isinstance(kinds := schema.get("type"), list):
        found.append(f"{place}: list of types")
    if (kinds == "array" or kinds == ["array"]) and not isinstance(schema.get("items"), dict):
        found.append(f"{place}: array without items")
    names = _map(schema, "properties")
    found += [f"{place}: property name {name!r}" for name in names if not PROPERTY_NAME.fullmatch(name)]
    for keyword, sub in subschemas(schema):
        if not (isinstance(sub, bool) and keyword == "additionalProperties"):
            found += _lint(sub, f"{place}/{keyword}")
    return found


def _map(schema: JsonSchema, keyword: str) -> dict[str, JsonValue]:
    found = schema.get(keyword)
    return found if isinstance(found, dict) else {}


def _names(schema: JsonSchema, keyword: str) -> list[JsonValue]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else []


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

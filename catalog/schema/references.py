"""Local `$ref`s of a schema and where its subschemas are.

A reference that leaves the document is refused here and fetched nowhere. Pointers are
RFC 6901; a plain-name fragment is looked for among the document's `$anchor`s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote

from catalog.canonical import JsonValue
from catalog.errors import SchemaRejected
from catalog.tools import JsonSchema

__all__ = ["SameSchema", "escape", "map_subschemas", "pointer_tokens", "resolve", "subschemas", "to_pointer"]

_ONE: Final = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LISTS: Final = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_MAPS: Final = ("dependencies", "dependentSchemas", "patternProperties", "properties")
_DEFINITIONS: Final = ("$defs", "definitions")


class SameSchema:
    """A schema as a cache key: equal only to itself, and kept alive while it is a key."""

    __slots__ = ("schema",)

    def __init__(self, schema: JsonSchema) -> None:
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameSchema) and other.schema is self.schema

    def __hash__(self) -> int:
        return id(self.schema)


def escape(token: str) -> str:
    """Return one pointer token, escaped."""
    return token.replace("~", "~0").replace("/", "~1")


def to_pointer(path: list[str | int]) -> str:
    """Return the pointer of a path, empty for the whole document."""
    return "".join(f"/{escape(str(token))}" for token in path)


def pointer_tokens(pointer: str) -> list[str]:
    """Return the unescaped tokens of a pointer.

    Raises:
        ValueError: it is neither empty nor starts with a slash.
    """
    if not pointer:
        return []
    if not pointer.startswith("/"):
        raise ValueError(f"not a JSON pointer: {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def subschemas(schema: JsonSchema, *, definitions: bool = False) -> Iterator[tuple[str, JsonSchema | bool]]:
    """Yield each direct subschema with the keyword it stands under.

    Args:
        schema: the schema to look into.
        definitions: whether `$defs` count too, though nothing evaluates them by themselves.
    """
    for keyword in _ONE:
        if isinstance(sub := schema.get(keyword), dict | bool):
            yield keyword, sub
    for keyword in _LISTS:
        if isinstance(listed := schema.get(keyword), list):
            yield from ((keyword, sub) for sub in listed if isinstance(sub, dict | bool))
    for keyword in (*_MAPS, *(_DEFINITIONS if definitions else ())):
        if isinstance(mapped := schema.get(keyword), dict):
            yield from ((keyword, sub) for sub in mapped.values() if isinstance(sub, dict | bool))


def map_subschemas(
    schema: JsonSchema, change: Callable[[JsonSchema | bool], JsonSchema | bool]
) -> JsonSchema:
    """Return the schema with every direct subschema changed; definitions stay as they are."""
    changed = dict(schema)
    for keyword, value in schema.items():
        if keyword in _ONE and isinstance(value, dict | bool):
            changed[keyword] = change(value)
        elif keyword in _LISTS and isinstance(value, list):
            changed[keyword] = [change(sub) if isinstance(sub, dict | bool) else sub for sub in value]
        elif keyword in _MAPS and isinstance(value, dict):
            changed[keyword] = {
                key: change(sub) if isinstance(sub, dict | bool) else sub for key, sub in value.items()
            }
    return changed


def resolve(root: JsonSchema, reference: JsonValue) -> JsonSchema | bool:
    """Return the subschema of `root` that a local reference names.

    Raises:
        SchemaRejected: the reference leaves the document, or nothing is there.
    """
    if not isinstance(reference, str):
        raise SchemaRejected(f"$ref is no string: {reference!r}")
    if not reference.startswith("#"):
        raise SchemaRejected(f"$ref leaves the document, it is not fetched: {reference!r}")
    fragment = unquote(reference[1:])
    found = _at(root, fragment) if fragment.startswith("/") else _anchored(root, fragment)
    if not isinstance(found, dict | bool):
        raise SchemaRejected(f"$ref names nothing: {reference!r}")
    return found


def _at(root: JsonSchema, pointer: str) -> JsonValue:
    value: JsonValue = root
    for token in pointer_tokens(pointer):
        if isinstance(value, dict):
            value = value.get(token)
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    return value


def _anchored(root: JsonSchema, name: str) -> JsonValue:
    if not name:
        return root
    pending: list[JsonSchema] = [root]
    while pending:
        schema = pending.pop()
        if name in (schema.get("$anchor"), schema.get("$dynamicAnchor")) or schema.get("$id") == f"#{name}":
            return schema
        pending.extend(sub for _, sub in subschemas(schema, definitions=True) if isinstance(sub, dict))
    return None

"""Checks values against JSON Schemas, and schemas themselves, without ever fetching anything.

The engine is jsonschema-rs with its linear regex engine; `catalog.schema.bounds` refuses what
would be too costly before the engine sees it. Compiled validators are remembered by digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Final, cast

import jsonschema_rs

from catalog.canonical import JsonValue, digest
from catalog.errors import SchemaRejected
from catalog.schema.bounds import Cost, bounded_cost, can_explain
from catalog.schema.references import SameSchema, to_pointer
from catalog.schema.variants import inlined
from catalog.tools import JsonSchema

__all__ = ["SchemaProblem", "check_schema", "is_valid", "problems"]

_MAX_PROBLEMS: Final = 100
_DIALECTS: Final = frozenset(
    f"json-schema.org/{name}/schema"
    for name in ("draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12")
)


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """One thing that is wrong with a value."""

    pointer: str
    """Where in the value; the object itself for a missing or an unexpected key."""
    keyword: str
    """The keyword that refused it; `json` for a value that no JSON text can hold."""
    message: str
    expected: JsonSchema
    """The subschema that refused it, complete in itself; for a missing key the schema of that key."""
    found: JsonValue
    argument: str | None = None
    """The missing or unexpected key, None for every other keyword."""


def check_schema(schema: JsonSchema) -> None:
    """Check that a schema may be evaluated.

    Raises:
        SchemaRejected: malformed, too costly, or with a `$ref` that leaves it.
    """
    _compiled(SameSchema(schema))


def is_valid(schema: JsonSchema, value: JsonValue) -> bool:
    """Return whether a value fits a schema, which must not be mutated afterwards.

    Raises:
        SchemaRejected: the schema cannot be evaluated.
    """
    compiled = _compiled(SameSchema(schema))
    try:
        return compiled.validator.is_valid(value)
    except ValueError:
        return False  # no JSON value: lone surrogates, keys that are no strings, endless nesting


def problems(schema: JsonSchema, value: JsonValue) -> list[SchemaProblem]:
    """Return what is wrong with a value, at most a hundred problems, none when it fits.

    Raises:
        SchemaRejected: the schema cannot be evaluated.
    """
    compiled = _compiled(SameSchema(schema))
    try:
        if compiled.validator.is_valid(value):
            return []
        if not can_explain(compiled.cost, value):
            message = "does not fit its recursive schema, and is too deep to say where"
            return [SchemaProblem("", "$ref", message, schema, value)]
        found = _Reading(schema).all(compiled.validator.iter_errors(value))
        return list(islice(found, _MAX_PROBLEMS))
    except ValueError as error:
        return [SchemaProblem("", "json", f"not a JSON value: {error}", schema, None)]


@dataclass(frozen=True, slots=True)
class _Compiled:
    validator: jsonschema_rs.Validator
    cost: Cost


@dataclass(frozen=True, slots=True)
class _Content:
    """A schema as a cache key by what it says."""

    digest: str
    cost: Cost
    schema: JsonSchema = field(compare=False)


@lru_cache(maxsize=2048)
def _compiled(same: SameSchema) -> _Compiled:
    cost = bounded_cost(same.schema)
    try:
        return _compiled_content(_Content(digest(same.schema), cost, same.schema))
    except ValueError as error:
        raise SchemaRejected(f"schema is not JSON: {error}") from error


@lru_cache(maxsize=1024)
def _compiled_content(content: _Content) -> _Compiled:
    schema = content.schema
    if "$schema" in schema and not _is_known_dialect(schema["$schema"]):
        schema = {key: value for key, value in schema.items() if key != "$schema"}
    try:
        validator = jsonschema_rs.validator_for(
            schema, pattern_options=jsonschema_rs.RegexOptions(), offline=True
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise SchemaRejected(f"malformed schema: {_first_line(error)}") from error
    return _Compiled(validator, content.cost)


def _is_known_dialect(uri: JsonValue) -> bool:
    return isinstance(uri, str) and uri.partition("://")[2].rstrip("#") in _DIALECTS


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


@dataclass(frozen=True, slots=True)
class _Reading:
    """Turns the engine's errors into problems."""

    schema: JsonSchema

    def all(self, errors: Iterable[jsonschema_rs.ValidationError]) -> Iterator[SchemaProblem]:
        for error in errors:
            if inner := _chosen_branch(error):
                yield from self.all(inner)
            else:
                yield from self._read(error)

    def _read(self, error: jsonschema_rs.ValidationError) -> Iterator[SchemaProblem]:
        kind, pointer = error.kind, to_pointer(error.instance_path)
        found = cast("JsonValue", error.instance)
        expected = inlined(self._refusing(error), self.schema)
        match kind:
            case jsonschema_rs.ValidationErrorKind.Required():
                wanted = _property(expected, kind.property)
                yield SchemaProblem(pointer, kind.name, error.message, wanted, None, kind.property)
            case (
                jsonschema_rs.ValidationErrorKind.AdditionalProperties()
                | jsonschema_rs.ValidationErrorKind.UnevaluatedProperties()
            ):
                for key in kind.unexpected:
                    value = found[key] if isinstance(found, dict) else None
                    yield SchemaProblem(pointer, kind.name, f"{key!r} is not expected", expected, value, key)
            case _:
                yield SchemaProblem(pointer, kind.name, error.message, expected, found)

    def _refusing(self, error: jsonschema_rs.ValidationError) -> JsonSchema:
        """Return the subschema that holds the keyword that refused."""
        path = error.schema_path
        if error.kind.name in path:
            path = path[: len(path) - 1 - path[::-1].index(error.kind.name)]
        elif error.kind.name == "required":  # `dependentRequired` and `dependencies` say so too
            path = path[:-1]
        return _subschema_at(self.schema, path)


def _subschema_at(schema: JsonSchema, path: list[str | int]) -> JsonSchema:
    value: JsonValue = schema
    for token in path:
        match value, token:
            case dict(), str():
                value = value.get(token)
            case list(), int() if token < len(value):
                value = value[token]
            case _:
                return {}
    return value if isinstance(value, dict) else {"not": {}} if value is False else {}


def _property(schema: JsonSchema, name: str) -> JsonSchema:
    properties = schema.get("properties")
    found = properties.get(name) if isinstance(properties, dict) else None
    return found if isinstance(found, dict) else {}


def _chosen_branch(error: jsonschema_rs.ValidationError) -> list[jsonschema_rs.ValidationError]:
    """Return the errors of the one alternative that a value of this type could have meant."""
    kind = error.kind
    if not isinstance(
        kind, jsonschema_rs.ValidationErrorKind.AnyOf | jsonschema_rs.ValidationErrorKind.OneOfNotValid
    ):
        return []
    meant = [branch for branch in kind.context if not any(_is_about_type(e, error) for e in branch)]
    return meant[0] if len(meant) == 1 else []


def _is_about_type(inner: jsonschema_rs.ValidationError, outer: jsonschema_rs.ValidationError) -> bool:
    return inner.kind.name == "type" and inner.instance_path == outer.instance_path

"""Values against the schema that will receive them, with references standing for their sources.

A literal is checked as it will be sent, exact scalar text coerced. A reference is checked by the type
its source declares; what a schema says about a value that holds one is believed only where the
referenced value cannot matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from catalog.errors import SchemaRejected
from catalog.schema import SchemaProblem, coerce, feeds, lookup, problems, types
from catalog.tools import JsonSchema
from skills_store.workflow.faults import Fault, InvalidArgument, MissingArgument, UnexpectedArgument
from skills_store.workflow.model import json_pointer
from skills_store.workflow.references import pointer_parts

__all__ = ["Place", "Wildcard", "check_values"]

_CERTAIN = frozenset({"required", "type", "minItems", "maxItems", "minProperties", "maxProperties"})
_CLOSED = frozenset({"additionalProperties", "unevaluatedProperties", "propertyNames"})
_ZEROS: dict[str, JsonValue] = {
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where checked values stand: pointer in the document, and the node they are given to."""

    pointer: str
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A value known only by what its source declares (None: nothing). `text` is how it is written."""

    text: JsonValue
    source: JsonSchema | None = field(default=None)


def check_values(
    values: dict[str, JsonValue],
    schema: JsonSchema,
    place: Place,
    wildcards: Mapping[str, Wildcard] | None = None,
) -> list[Fault]:
    """Return the faults of named values, in the order of the names, missing ones last.

    Args:
        values: literals; what stands at a wildcard's pointer does not matter.
        schema: of the whole object. One that cannot be evaluated refuses nothing.
        place: where the values stand.
        wildcards: by pointer inside `values`.
    """
    check = _Check(schema, place, wildcards or {})
    try:
        return check.faults(values)
    except SchemaRejected:
        return []  # says nothing about this workflow; the catalog reports the tool


@dataclass(frozen=True, slots=True)
class _Check:
    schema: JsonSchema
    place: Place
    wildcards: Mapping[str, Wildcard]

    def faults(self, values: dict[str, JsonValue]) -> list[Fault]:
        unexpected = {name for name in values if self._is_unexpected(name)}
        known = {name: value for name, value in values.items() if name not in unexpected}
        found: list[Fault] = [self._unexpected(name) for name in values if name in unexpected]
        found.extend(self._mismatches(unexpected))
        found.extend(self._problems(known))
        order = {name: position for position, name in enumerate(values)}
        return sorted(found, key=lambda fault: order.get(self._name(fault), len(order)))

    def _name(self, fault: Fault) -> str:
        parts = pointer_parts(fault.pointer.removeprefix(self.place.pointer))
        return parts[0] if parts else ""

    def _is_unexpected(self, name: str) -> bool:
        found = lookup(self.schema, json_pointer(name))
        if found.found:
            return False
        open_to_all = self.schema.get("additionalProperties") not in (None, False)
        return found.certain or (("properties" in self.schema or bool(found.available)) and not open_to_all)

    def _unexpected(self, name: str) -> Fault:
        allowed = lookup(self.schema, json_pointer(name)).available
        return UnexpectedArgument(
            message=f"{name!r} is no argument; arguments: {', '.join(allowed) or 'none'}",
            node=self.place.node,
            pointer=self.place.pointer + json_pointer(name),
            argument=name,
            allowed=allowed,
        )

    def _mismatches(self, unexpected: set[str]) -> Iterator[Fault]:
        for pointer, wildcard in self.wildcards.items():
            name = pointer_parts(pointer)[0]
            target = lookup(self.schema, pointer).schema
            if name in unexpected or target is None or feeds(wildcard.source, target) is not False:
                continue
            given, asked = _types(wildcard.source or {}), _types(target)
            yield InvalidArgument(
                message=f"{_words(wildcard.text)} is {given}, which {name!r} ({asked}) does not take",
                node=self.place.node,
                pointer=self.place.pointer + pointer,
                argument=name,
                expected=target,
                found=wildcard.text,
            )

    def _problems(self, values: dict[str, JsonValue]) -> Iterator[Fault]:
        filled = self._filled(values, "")
        coerced, _ = coerce(self.schema, filled)
        for problem in problems(self.schema, coerced):
            if self._is_certain(problem):
                yield self._fault(problem)

    def _filled(self, value: JsonValue, pointer: str) -> JsonValue:
        if pointer in self.wildcards:
            return self._stand_in(pointer)
        match value:
            case dict():
                return {key: self._filled(item, pointer + json_pointer(key)) for key, item in value.items()}
            case list():
                return [self._filled(item, f"{pointer}/{index}") for index, item in enumerate(value)]
            case _:
                return value

    def _stand_in(self, pointer: str) -> JsonValue:
        target = lookup(self.schema, pointer).schema
        admitted = types(target) if target is not None else frozenset[str]()
        return next((zero for kind, zero in _ZEROS.items() if kind in admitted), None)

    def _is_certain(self, problem: SchemaProblem) -> bool:
        if problem.pointer == "" and problem.keyword in _CLOSED:
            return False  # told as an unexpected argument
        above = any(_is_under(problem.pointer, pointer) for pointer in self.wildcards)
        below = any(_is_under(pointer, problem.pointer) for pointer in self.wildcards)
        return not above and (not below or problem.keyword in _CERTAIN | _CLOSED)

    def _fault(self, problem: SchemaProblem) -> Fault:
        pointer = self.place.pointer + problem.pointer
        if problem.pointer == "" and problem.keyword == "required" and problem.argument is not None:
            return MissingArgument(
                message=f"argument {problem.argument!r} is required",
                node=self.place.node,
                pointer=pointer,
                argument=problem.argument,
            )
        parts = pointer_parts(problem.pointer)
        return InvalidArgument(
            message=problem.message,
            node=self.place.node,
            pointer=pointer,
            argument=parts[0] if parts else None,
            expected=problem.expected,
            found=problem.found,
        )


def _is_under(pointer: str, above: str) -> bool:
    return pointer == above or pointer.startswith(f"{above}/")


def _types(schema: JsonSchema) -> str:
    return " or ".join(sorted(types(schema)))


def _words(text: JsonValue) -> str:
    return text if isinstance(text, str) and text.startswith("$") else "a template"

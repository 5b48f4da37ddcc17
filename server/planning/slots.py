"""A place to be filled, and a value that could fill it, with its cost and its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.schema import is_valid, types
from catalog.tools import JsonSchema
from server.planning.view import View, argument_schema
from skills_store.workflow.model import Node
from skills_store.workflow.references import Reference

__all__ = ["Slot", "Source", "fits", "input_reference", "slot_of"]


@dataclass(frozen=True, slots=True)
class Slot:
    """The place to be filled: an argument of a node, with its schema."""

    node: Node
    argument: str
    schema: JsonSchema


@dataclass(frozen=True, slots=True)
class Source:
    """A value for a slot as it is written in arguments, its cost (≥ 0) and its reason."""

    value: JsonValue
    cost: float
    because: str


def fits(value: JsonValue, schema: JsonSchema) -> bool:
    """Return whether a concrete value is valid, exact scalar text counted as its number."""
    if not schema or is_valid(schema, value):
        return True
    if isinstance(value, str) and types(schema) & {"number", "integer"}:
        return re.fullmatch(r"-?\d+(\.\d+)?", value) is not None
    return isinstance(value, int) and types(schema) == frozenset({"string"}) and not isinstance(value, bool)


def input_reference(value: JsonValue, view: View) -> str | None:
    """Return the reference to the one input that has exactly this value, if there is one.

    Booleans, null and empty text say too little to be traced to an input.
    """
    if isinstance(value, bool) or value in (None, "", [], {}):
        return None
    names = [n for n, given in view.world.inputs.items() if given == value and type(given) is type(value)]
    return str(Reference("inputs", names[0])) if len(names) == 1 else None


def slot_of(node: Node, argument: str, view: View) -> Slot:
    """Return the slot of a node's argument as its tool declares it."""
    return Slot(node, argument, argument_schema(view.tool(node), argument))

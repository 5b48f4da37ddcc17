"""Which free tools could give an input that a task leaves open, and reading it from their answers.

Paper: FlowEvo (ALFWorld, direct execution: a missing binding is found by exploring without a model;
facts §3.7). Differs: explored are the catalog's own free tools whose required arguments the task
gives, and only a value that is named like the input, of its type, and the only one, is believed.
Making the calls belongs to the bank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.schema import coerce, is_valid
from catalog.similarity import words
from catalog.tools import JsonSchema, Tool, ToolId
from server.planning.leaves import closed_part
from server.planning.likeness import GENERIC_KEYS
from server.planning.literals import mentions
from server.planning.slots import Slot, fits
from server.planning.sources import argument_sources
from server.planning.view import View, World, argument_schema
from skills_store.workflow.model import Node, Workflow

__all__ = ["Lookup", "OpenInput", "lookups", "read_answer"]

_SURE = 1.0
"""Dearest source an argument of such a call may have."""
_DEPTH = 5
_MOST_ITEMS = 200


@dataclass(frozen=True, slots=True)
class OpenInput:
    """An input without a value, and what the task says in its place, None where it says nothing."""

    name: str
    schema: JsonSchema
    said: str | None = None


@dataclass(frozen=True, slots=True)
class Lookup:
    """A call of a free tool that may give the value of an open input."""

    tool: Tool
    arguments: dict[str, JsonValue]


def lookups(wanted: OpenInput, world: World, skip: frozenset[ToolId], near: frozenset[str]) -> list[Lookup]:
    """Return the calls worth making for an input, the most promising first.

    Args:
        wanted: what is looked for; a name that says nothing, such as `value`, is looked for nowhere.
        world: task, inputs and known tools.
        skip: tools that the skill calls itself.
        near: servers whose tools are tried first.
    """
    if set(words(wanted.name)) <= GENERIC_KEYS:
        return []
    found: list[tuple[bool, bool, int, ToolId, Lookup]] = []
    for tool in world.snapshot:
        if tool.id in skip or not world.effect(tool.id).is_free or not _may_give(tool, wanted):
            continue
        arguments = _arguments(tool, wanted, world)
        if arguments is not None:
            rank = (tool.output_schema is None, tool.id.server not in near, len(arguments), tool.id)
            found.append((*rank, Lookup(tool, arguments)))
    return [lookup for *_, lookup in sorted(found, key=lambda entry: entry[:-1])]


def read_answer(wanted: OpenInput, lookup: Lookup, output: JsonValue, task: str) -> JsonValue | None:
    """Return the value of an input that an answer holds, None when it holds none or several.

    Of several, those are meant whose neighbours the task mentions.
    """
    found = list(_values(wanted, output, frozenset(words(lookup.tool.id.tool)), 0))
    if len({repr(value) for value, _ in found}) > 1:
        found = [(value, beside) for value, beside in found if _is_meant(beside, wanted, task)]
    different = {repr(value): value for value, _ in found}
    return next(iter(different.values())) if len(different) == 1 else None


def _may_give(tool: Tool, wanted: OpenInput) -> bool:
    around = frozenset(words(tool.id.tool))
    if tool.output_schema is not None:
        closed = closed_part(tool.output_schema, tool.output_schema)
        return any(_is_named(key, wanted.name, beside) for key, beside in _keys(closed, around, 0))
    told = around | frozenset(words(tool.description or ""))
    return bool((set(words(wanted.name)) - GENERIC_KEYS - {"id"}) & told)


def _arguments(tool: Tool, wanted: OpenInput, world: World) -> dict[str, JsonValue] | None:
    """Return the required arguments of a tool as the task gives them, None when one has no value."""
    required = tool.input_schema.get("required")
    names = [str(name) for name in required] if isinstance(required, list) else []
    if wanted.name in names:
        return None
    said, given = wanted.said, dict[str, JsonValue]()
    node = Node(id="look_up", tool=tool.id)
    for name in names:
        schema = argument_schema(tool, name)
        if said is not None and fits(said, schema):
            given[name], said = said, None
            continue
        view = View(world, Workflow(name="look_up", inputs={}, nodes=(node,), outputs={}))
        sources = [s for s in argument_sources(Slot(node, name, schema), view) if s.cost <= _SURE]
        if not sources:
            return None
        given[name] = _literal(sources[0].value, world)
        node = node.model_copy(update={"arguments": dict(given)})
    coerced, _ = coerce(tool.input_schema, given)
    is_sound = isinstance(coerced, dict) and is_valid(tool.input_schema, coerced)
    return coerced if is_sound and isinstance(coerced, dict) else None


def _literal(value: JsonValue, world: World) -> JsonValue:
    name = value.removeprefix("$inputs.") if isinstance(value, str) else ""
    return world.inputs.get(name, value)


def _keys(schema: JsonSchema, beside: frozenset[str], depth: int) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the names of the parts of a schema, each with the words of the names around it."""
    if depth > _DEPTH:
        return
    if isinstance(items := schema.get("items"), dict):
        yield from _keys(items, beside, depth + 1)
    properties = schema.get("properties")
    for key, part in properties.items() if isinstance(properties, dict) else ():
        yield key, beside
        if isinstance(part, dict):
            yield from _keys(part, beside | frozenset(words(key)), depth + 1)


def _is_named(key: str, name: str, beside: frozenset[str]) -> bool:
    """Return whether a key means an input: `user_id`, or `id` where the names around it say `user`."""
    wanted, own = set(words(name)), set(words(key))
    return bool(own) and own <= wanted <= own | beside


def _values(
    wanted: OpenInput, value: JsonValue, beside: frozenset[str], depth: int
) -> Iterator[tuple[JsonValue, dict[str, JsonValue]]]:
    """Yield the values that mean an input, each with the object it stands in."""
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for item in value[:_MOST_ITEMS]:
            yield from _values(wanted, item, beside, depth + 1)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if isinstance(item, dict | list):
            yield from _values(wanted, item, beside | frozenset(words(key)), depth + 1)
        elif _is_named(key, wanted.name, beside) and item != wanted.said and is_valid(wanted.schema, item):
            yield item, value


def _is_meant(beside: dict[str, JsonValue], wanted: OpenInput, task: str) -> bool:
    texts = [item for item in beside.values() if isinstance(item, str) and item.strip()]
    if wanted.said is not None:
        return any(text.casefold() == wanted.said.casefold() for text in texts)
    return any(mentions(task, text) for text in texts)

"""Values for an argument that somebody said: the task, the schema, the names in the workflow.

A task's literals are matched by kind, and by direction: sources are said before targets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import JsonValue

from catalog.schema import types
from catalog.similarity import words
from server.planning.literals import TaskLiteral, spoken_lists
from server.planning.slots import Slot, Source, fits, input_reference
from server.planning.units import asks_for_kind, unit_kind, unit_spellings
from server.planning.view import View
from skills_store.workflow.references import escape_literal

__all__ = ["from_names", "from_schema", "from_task"]

_WHOLE_TASK = frozenset({"query", "question", "prompt", "request", "instruction"})
_SOURCES = frozenset({"from", "source", "src", "old", "start", "begin", "first", "origin", "input"})
_TARGETS = frozenset({"to", "target", "dest", "destination", "new", "end", "stop", "last", "output", "into"})
_ASKED_BY: dict[str, frozenset[str]] = {
    "zone": frozenset({"zone", "timezone", "tz"}),
    "time": frozenset({"time", "hour", "clock"}),
    "date": frozenset({"date", "day", "datetime"}),
    "path": frozenset({"path", "file", "filename", "filepath", "folder", "directory", "repo", "repository"}),
    "url": frozenset({"url", "uri", "link", "href", "address"}),
    "email": frozenset({"email", "mail", "recipient", "address"}),
    "quoted": frozenset({"text", "data", "content", "message", "string", "query", "expression"}),
}
"""Which words of an argument's name ask for which kind of literal."""


def from_schema(slot: Slot, view: View) -> Iterator[Source]:
    task = view.world.task.lower()
    for key, cost in (("const", 0.2), ("default", 0.8), ("enum", 1.2), ("examples", 1.3)):
        found = slot.schema.get(key)
        values = found if isinstance(found, list) and key in ("enum", "examples") else [found]
        for value in values if key in slot.schema else []:
            said = isinstance(value, str) and value.lower() in task
            yield Source(escape_literal(value), cost - (0.8 if said else 0.0), f"the schema's {key}")
    if "string" in types(slot.schema) and "enum" not in slot.schema:
        yield from _from_description(slot, view, task)


def _from_description(slot: Slot, view: View, task: str) -> Iterator[Source]:
    tool = view.tool(slot.node)
    texts = [str(slot.schema.get("description", "")), tool.description if tool else ""]
    for rank, text in enumerate(texts):
        for token in _listed_tokens(text):
            said = token.lower() in task or any(token.lower() in words(str(n)) for n in view.world.inputs)
            cost = 1.1 + 0.6 * rank - (0.5 if said else 0.0)
            yield Source(token, cost, f"{slot.argument!r} is described with {token!r}")


def _listed_tokens(text: str) -> list[str]:
    """Return the words a description lists: in parentheses after commas, or in quotes."""
    listed = [part for group in re.findall(r"\(([^()]*,[^()]*)\)", text) for part in group.split(",")]
    quoted = re.findall(r"['\"`]([\w+./:-]{1,40})['\"`]", text)
    tokens = [token.strip().strip("'\"`") for token in (*listed, *quoted)]
    return [
        t
        for t in dict.fromkeys(tokens)
        if re.fullmatch(r"[\w+./:-]{1,40}", t) and t not in ("etc.", "e.g.", "i.e.", "etc")
    ]


def from_task(slot: Slot, view: View) -> Iterator[Source]:
    wanted = types(slot.schema)
    if "array" in wanted:
        yield from _lists_of(slot, view)
    is_unit = "unit" in words(slot.argument)
    literals = [literal for literal in view.world.literals if literal.kind != "word"]
    for literal in literals:
        if literal.kind == "json":
            yield from _parts_of(literal, slot)
        if reference := input_reference(literal.value, view):
            if fits(literal.value, slot.schema):
                yield Source(reference, 1.0, f"the task says {literal.text!r}, which is an input")
            continue
        if not fits(literal.value, slot.schema) or (literal.kind == "number" and "string" in wanted):
            continue
        alike = [other.start for other in literals if other.kind == literal.kind]
        place = alike.index(literal.start)
        cost = _kind_cost(literal, slot) + _direction_cost(slot, place, len(alike)) + 0.02 * place
        yield Source(escape_literal(literal.value), cost, f"the task says {literal.text!r}")
    if is_unit and "string" in wanted:
        yield from _units_of(slot, view)
    if "string" in wanted and set(words(slot.argument)) & _WHOLE_TASK and view.world.task:
        yield Source(escape_literal(view.world.task), 2.2, "the task as it is said")


def _parts_of(record: TaskLiteral, slot: Slot) -> Iterator[Source]:
    """Yield the scalars in a record that the task writes."""
    for place, value in enumerate(record.parts()):
        if value is not None and fits(value, slot.schema):
            yield Source(escape_literal(value), 1.5 + 0.02 * place, f"the task says {value!r} in a record")


def _lists_of(slot: Slot, view: View) -> Iterator[Source]:
    """Yield the lists a task says, and its single values as lists of one."""
    for place, listed in enumerate(spoken_lists(view.world.task)):
        if fits(listed.values, slot.schema):
            said = view.world.task[listed.start : listed.end]
            value: JsonValue = input_reference(listed.values, view) or [*map(escape_literal, listed.values)]
            yield Source(value, 0.5 + 0.02 * place, f"the task says the list {said!r}")
    for place, literal in enumerate(lit for lit in view.world.literals if lit.kind != "word"):
        if fits([literal.value], slot.schema):
            cost = 1.6 + 0.02 * place
            yield Source([escape_literal(literal.value)], cost, f"the task says {literal.text!r}")


def _kind_cost(literal: TaskLiteral, slot: Slot) -> float:
    """Return how far a kind of literal is from what an argument's name asks for."""
    asked = set(words(slot.argument)) | set(words(str(slot.schema.get("format", ""))))
    kind = "zone" if asked & _ASKED_BY["zone"] else literal.kind
    if kind == literal.kind and asked & _ASKED_BY.get(kind, frozenset()):
        return 0.4
    return {"quoted": 0.7, "number": 0.8, "symbol": 1.4, "name": 1.3}.get(literal.kind, 1.2)


def _direction_cost(slot: Slot, place: int, count: int) -> float:
    """Return a cost by which a source comes from what is said first, a target from what is said last."""
    asked = set(words(slot.argument))
    if asked & _SOURCES:
        return 0.3 * place
    return 0.3 * (count - 1 - place) if asked & _TARGETS else 0.0


def from_names(slot: Slot) -> Iterator[Source]:
    """Yield what the node's other units measure, for an argument that asks so, and the node's own words."""
    if "string" not in types(slot.schema) or "enum" in slot.schema:
        return
    asks_kind = asks_for_kind(slot.argument)
    texts = [v for v in slot.node.arguments.values() if isinstance(v, str)] if asks_kind else []
    kinds = {unit_kind(text) for text in texts}
    for kind in sorted(kind for kind in kinds if kind):
        yield Source(kind, 0.6, f"the other units measure {kind}")
    for word in words(slot.node.id):
        yield Source(word, 2.4, f"the node is called {slot.node.id!r}")


def _units_of(slot: Slot, view: View) -> Iterator[Source]:
    said = [str(literal.value) for literal in view.world.literals if literal.kind in ("word", "symbol")]
    units = [name for name in dict.fromkeys(said) if unit_spellings(name)]
    for place, name in enumerate(units):
        cost = 1.0 + _direction_cost(slot, place, len(units))
        for rank, spelling in enumerate((name, *unit_spellings(name))):
            yield Source(spelling, cost + 0.02 * rank, f"the task says {name!r}, a unit")
    present = [str(value) for node in view.workflow.nodes for value in node.arguments.values()]
    others = [name for name in dict.fromkeys([*view.world.inputs, *present]) if unit_spellings(name)]
    for rank, name in enumerate(others):
        for spelling in unit_spellings(name):
            yield Source(spelling, 1.3 + 0.02 * rank, f"{name!r} is a unit")

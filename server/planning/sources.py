"""Where the value of an argument could come from, best first.

One answer for planning and for repair: inputs by name and type, outputs of other nodes by key
and type, the schema's own values, values of sibling nodes, and what the task says. Costs are
-ln of a rough prior, so they add up along a candidate's edits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.schema import is_valid, types
from catalog.similarity import name_similarity, words
from catalog.tools import JsonSchema
from server.planning.leaves import Leaf, json_type
from server.planning.literals import TaskLiteral
from server.planning.units import unit_kind, unit_spellings
from server.planning.view import View, argument_schema, references_in
from skills_store.workflow.model import Node
from skills_store.workflow.references import Reference, escape_literal, map_references
from skills_store.workflow.scan import Unreadable, scan

__all__ = [
    "GENERIC_KEYS",
    "Slot",
    "Source",
    "analogous",
    "argument_sources",
    "fits",
    "input_reference",
    "slot_of",
]

_LIKE = 0.6
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

GENERIC_KEYS = frozenset({"result", "value", "output", "data", "text", "answer", "content", "results"})


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


def argument_sources(slot: Slot, view: View, limit: int = 24) -> list[Source]:
    """Return ways to fill a slot, cheapest first, equal values once."""
    best: dict[str, Source] = {}
    present = slot.node.arguments.get(slot.argument)
    for found in _all_sources(slot, view):
        source = _nearer(found, present)
        key = repr(source.value)
        if key not in best or source.cost < best[key].cost:
            best[key] = source
    return sorted(best.values(), key=lambda source: (source.cost, repr(source.value)))[:limit]


def _nearer(source: Source, present: JsonValue) -> Source:
    """Return the source, cheaper when its literal is spelt like the literal that stands there now."""
    literal = isinstance(source.value, str) and not source.value.startswith("$")
    if not literal or not isinstance(present, str) or present.startswith("$"):
        return source
    likeness = name_similarity(present, str(source.value))
    discount = 1.2 * likeness if likeness >= _LIKE else 0.0
    return Source(source.value, max(0.1, source.cost - discount), source.because)


def _all_sources(slot: Slot, view: View) -> Iterator[Source]:
    yield from _from_inputs(slot, view)
    yield from _from_outputs(slot, view)
    yield from _from_siblings(slot, view)
    yield from _from_analogies(slot, view)
    yield from _from_schema(slot, view)
    yield from _from_task(slot, view)
    yield from _from_names(slot)


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


def _from_inputs(slot: Slot, view: View) -> Iterator[Source]:
    fitting = [name for name, value in view.world.inputs.items() if fits(value, slot.schema)]
    unused = [name for name in fitting if name in view.unused_inputs]
    for name in fitting:
        likeness = max(name_similarity(name, slot.argument), 0.8 * name_similarity(name, slot.node.id))
        cost = 0.1 + 2.2 * (1 - likeness)
        if name in unused:
            cost = max(0.1, cost - 0.9 - (0.5 if len(unused) == 1 else 0.0))
        yield Source(f"$inputs.{name}", cost, f"input {name!r} fits {slot.argument!r}")


def _from_outputs(slot: Slot, view: View) -> Iterator[Source]:
    unused = {node.id for node in view.unused_nodes}
    for distance, node in enumerate(view.readable_from(slot.node.id)):
        for leaf in view.leaves(node):
            if not _leaf_fits(leaf, slot.schema):
                continue
            cost = 0.5 + 1.6 * (1 - _leaf_likeness(leaf, node, slot)) + 0.1 * min(distance, 5)
            cost -= 0.6 if node.id in unused else 0.0
            reference = Reference("nodes", node.id, leaf.pointer)
            yield Source(str(reference), max(0.1, cost), f"{reference} fits {slot.argument!r}")


def _leaf_fits(leaf: Leaf, schema: JsonSchema) -> bool:
    if leaf.seen:
        return bool(schema) and fits(leaf.value, schema) and leaf.value is not None
    wanted = types(schema) if schema else frozenset[str]()
    if not wanted or not leaf.types:
        return False
    return bool(leaf.types & wanted) or ("integer" in leaf.types and "number" in wanted)


def _leaf_likeness(leaf: Leaf, node: Node, slot: Slot) -> float:
    by_key = name_similarity(leaf.key, slot.argument) if leaf.key else 0.2
    by_node = 0.9 * name_similarity(node.id, slot.argument)
    if set(words(leaf.key)) & GENERIC_KEYS:
        by_key = max(by_key, 0.55)
    return max(by_key, by_node)


def _from_siblings(slot: Slot, view: View) -> Iterator[Source]:
    readable = {node.id for node in view.readable_from(slot.node.id)}
    for node in view.workflow.nodes:
        if node.id == slot.node.id or node.tool is None or slot.node.tool is None:
            continue
        if node.tool.server != slot.node.tool.server or slot.argument not in node.arguments:
            continue
        value = node.arguments[slot.argument]
        if isinstance(value, str) and value.startswith("$nodes."):
            if value.split(".")[1] not in readable:
                continue
            cost = 0.3
        else:
            cost = 0.7 if node.tool == slot.node.tool else 0.9
        yield Source(value, cost, f"node {node.id!r} gives {slot.argument!r} the same way")


def _from_analogies(slot: Slot, view: View) -> Iterator[Source]:
    """Yield what stands in a like place, reading another node of the same tool or another input."""
    for node in view.workflow.nodes:
        is_same = node.id == slot.node.id
        if node.tool != slot.node.tool:
            continue
        for argument, value in node.arguments.items():
            if is_same == (argument == slot.argument) or isinstance(value, str | int | float | bool):
                continue
            near = 0.3 if argument == slot.argument else 0.6
            for other, cost in analogous(value, view):
                yield Source(other, near + cost, f"{argument!r} of {node.id!r} is made the same way")


def analogous(value: JsonValue, view: View) -> Iterator[tuple[JsonValue, float]]:
    """Yield a value with one of its sources replaced by another of its kind, and what that costs.

    A value with a part that cannot be read is no example to follow.
    """
    if any(isinstance(part, Unreadable) for part in scan(value)):
        return
    references = dict.fromkeys(found.reference for found in references_in(value))
    unused_nodes = {node.id for node in view.unused_nodes}
    for reference in references:
        for other in _of_its_kind(reference, view):
            unread = other.name in unused_nodes or other.name in view.unused_inputs
            changed = map_references(
                value, lambda found, old=reference, new=other: new if found == old else found
            )
            yield changed, 0.2 if unread else 1.0
    if not references:
        return
    yield value, 1.2


def _of_its_kind(reference: Reference, view: View) -> Iterator[Reference]:
    if reference.root == "inputs":
        kind = json_type(view.world.inputs.get(reference.name))
        for name, value in view.world.inputs.items():
            if name != reference.name and json_type(value) == kind:
                yield Reference("inputs", name, reference.pointer)
    elif reference.root == "nodes":
        source = view.workflow.node(reference.name)
        for node in view.workflow.nodes:
            if source is not None and node.id != source.id and node.tool == source.tool:
                yield Reference("nodes", node.id, reference.pointer)


def _from_schema(slot: Slot, view: View) -> Iterator[Source]:
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
    return [t for t in dict.fromkeys(tokens) if re.fullmatch(r"[\w+./:-]{1,40}", t) and t != "etc."]


def _from_task(slot: Slot, view: View) -> Iterator[Source]:
    wanted = types(slot.schema)
    is_unit = "unit" in words(slot.argument)
    literals = [literal for literal in view.world.literals if literal.kind != "word"]
    for literal in literals:
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


def _from_names(slot: Slot) -> Iterator[Source]:
    """Yield what the node's other units measure, for an argument that asks so, and the node's own words."""
    if "string" not in types(slot.schema) or "enum" in slot.schema:
        return
    asks_kind = set(words(slot.argument)) & {"type", "category", "kind", "dimension", "quantity"}
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


def slot_of(node: Node, argument: str, view: View) -> Slot:
    """Return the slot of a node's argument as its tool declares it."""
    return Slot(node, argument, argument_schema(view.tool(node), argument))

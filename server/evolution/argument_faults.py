"""Edits for arguments that are missing, misnamed, unexpected or of the wrong kind.

Paper: EvoFlux (parameter edit; facts §1.2, §5.2 items 5, 9).
Differs: a rename is by meaning, visible as an edit, and never positional.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from catalog.schema import types
from catalog.similarity import name_similarity
from catalog.tools import JsonSchema, Tool
from server.evolution.proposal import Proposal, propose_one
from server.evolution.tool_faults import same_arguments
from server.planning.leaves import leaves_of_value
from server.planning.slots import fits, input_reference, slot_of
from server.planning.sources import argument_sources
from server.planning.units import listed_spelling
from server.planning.view import View, argument_schema, references_in
from skills_store.workflow.edits import EditParameter
from skills_store.workflow.faults import Fault, InvalidArgument, MissingArgument, UnexpectedArgument
from skills_store.workflow.model import Node, json_pointer
from skills_store.workflow.references import ExpressionError, escape_literal, parse_reference

__all__ = ["propose_argument_edits", "set_argument"]

_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")


def propose_argument_edits(view: View, node: Node, faults: Sequence[Fault]) -> Iterator[Proposal]:
    """Yield edits that mend the argument faults of one node."""
    missing = [fault.argument for fault in faults if isinstance(fault, MissingArgument)]
    unexpected = [f.argument for f in faults if isinstance(f, UnexpectedArgument)]
    tool = view.tool(node)
    if tool is not None:
        fitting = [other for other in same_arguments(view, node) if other.id.server == tool.id.server]
        for proposal in _renames(tool, node, [a for a in unexpected if a in node.arguments], missing):
            # where a tool beside it takes the arguments as they stand, the tool is likelier the slip
            yield Proposal(proposal.edits, proposal.cost + (0.7 if fitting else 0.0))
    for argument in missing:
        yield from _fills(view, node, argument, surplus=bool(unexpected))
    for argument in unexpected:
        if argument in node.arguments:
            edit = EditParameter(
                node=node.id,
                pointer=json_pointer(argument),
                remove=True,
                because=f"{node.target} has no argument {argument!r}",
            )
            yield propose_one(edit, 1.0 if not missing else 2.0)
    for fault in faults:
        if isinstance(fault, InvalidArgument) and fault.argument in node.arguments:
            yield from _mends(view, node, fault)


def _properties(tool: Tool) -> dict[str, JsonValue]:
    properties = tool.input_schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _renames(tool: Tool, node: Node, unexpected: Sequence[str], missing: Sequence[str]) -> Iterator[Proposal]:
    absent = [name for name in _properties(tool) if name not in node.arguments]
    scored = sorted(
        (_rename_cost(tool, node, old, new, missing, len(unexpected)), old, new)
        for old in unexpected
        for new in absent
    )
    if len(unexpected) > 1 and len(absent) > 1:
        yield from _joint_rename(node, scored)
    for cost, old, new in scored:
        yield propose_one(_rename(node, old, new), cost)


def _rename_cost(
    tool: Tool, node: Node, old: str, new: str, missing: Sequence[str], unexpected: int
) -> float:
    cost = 0.1 + 1.8 * (1 - name_similarity(old, new))
    if new not in missing:
        cost += 0.8
    elif len(missing) == 1 and unexpected == 1:
        cost = min(cost, 0.7)
    value = node.arguments[old]
    is_flow = isinstance(value, str) and value.startswith("$")
    schema = argument_schema(tool, new)
    return cost if is_flow or fits(value, schema) else cost + 1.2


def _joint_rename(node: Node, scored: Sequence[tuple[float, str, str]]) -> Iterator[Proposal]:
    taken: dict[str, tuple[str, float]] = {}
    for cost, old, new in scored:
        if old not in taken and new not in {name for name, _ in taken.values()}:
            taken[old] = (new, cost)
    if len(taken) > 1:
        edits = tuple(_rename(node, old, new) for old, (new, _) in taken.items())
        yield Proposal(edits, sum(cost for _, cost in taken.values()) * 0.8)


def _rename(node: Node, old: str, new: str) -> EditParameter:
    return EditParameter(
        node=node.id,
        pointer=json_pointer(new),
        value=node.arguments[old],
        renamed_from=json_pointer(old),
        because=f"{node.target} has no argument {old!r}; {new!r} means the same",
    )


def _fills(view: View, node: Node, argument: str, *, surplus: bool) -> Iterator[Proposal]:
    for source in argument_sources(slot_of(node, argument, view), view):
        edit = set_argument(node, argument, source.value, source.because)
        yield propose_one(edit, source.cost + (0.8 if surplus else 0.0))


def set_argument(node: Node, argument: str, value: JsonValue, because: str) -> EditParameter:
    """Return the edit that gives an argument a value."""
    return EditParameter(node=node.id, pointer=json_pointer(argument), value=value, because=because)


def _mends(view: View, node: Node, fault: InvalidArgument) -> Iterator[Proposal]:
    argument = str(fault.argument)
    schema = argument_schema(view.tool(node), argument)
    value = node.arguments[argument]
    for mended, cost, because in _coerced(view, value, schema):
        if mended != value:
            yield propose_one(set_argument(node, argument, mended, because), cost)
    if isinstance(value, str) and value.startswith("$"):
        yield from _narrowed(view, node, argument, schema)
    for source in argument_sources(slot_of(node, argument, view), view):
        if source.value != value:
            edit = set_argument(node, argument, source.value, source.because)
            yield propose_one(edit, source.cost + 0.6)


def _coerced(view: View, value: JsonValue, schema: JsonSchema) -> Iterator[tuple[JsonValue, float, str]]:
    """Yield what the value itself says in the asked type."""
    wanted = types(schema)
    for inner in _readings(value, wanted):
        if references_in(inner):
            yield inner, 0.3, f"{value!r} wraps what is asked for"
            continue
        if not fits(inner, schema):
            continue
        if reference := input_reference(inner, view):
            yield reference, 0.2, f"{value!r} says the value of {reference}"
        yield escape_literal(inner), 0.5, f"{value!r} read as {inner!r}"
    options = schema.get("enum")
    listed = [str(option) for option in options] if isinstance(options, list) else []
    if isinstance(value, str) and (unit := listed_spelling(value, listed)) is not None:
        yield escape_literal(unit), 0.1, f"{unit!r} is allowed and is the unit {value!r} is"
    for option in options if isinstance(options, list) else []:
        likeness = name_similarity(str(value), str(option))
        yield escape_literal(option), 0.3 + 1.6 * (1 - likeness), f"{option!r} is allowed, {value!r} is not"


def _readings(value: JsonValue, wanted: frozenset[str]) -> Iterator[JsonValue]:
    match value:
        case str() if wanted & {"number", "integer"} and (match := _NUMBER.search(value)):
            plain = match[0].replace(",", "")
            yield float(plain) if "." in plain else int(plain)
        case list() if len(value) == 1:
            yield value[0]
        case dict():
            for leaf in leaves_of_value(value)[1:]:
                yield leaf.value
        case int() | float() if "string" in wanted:
            yield str(value)
        case _:
            pass
    if "array" in wanted and not isinstance(value, list):
        yield [value]
    if "boolean" in wanted and str(value).lower() in ("yes", "no", "on", "off"):
        yield str(value).lower() in ("yes", "on")


def _narrowed(view: View, node: Node, argument: str, schema: JsonSchema) -> Iterator[Proposal]:
    """Yield readings of the same source at another pointer."""
    value = str(node.arguments[argument])
    try:
        reference = parse_reference(value)
    except ExpressionError:
        return
    source = view.workflow.node(reference.name) if reference.root == "nodes" else None
    if source is None:
        return
    for leaf in view.leaves(source):
        if leaf.pointer == reference.pointer or (leaf.seen and not fits(leaf.value, schema)):
            continue
        if not leaf.seen and not leaf.types & types(schema):
            continue
        cost = 0.3 + 1.2 * (1 - name_similarity(leaf.key, argument)) + (0.6 if not leaf.seen else 0.0)
        narrowed = str(reference.at(leaf.pointer))
        yield propose_one(
            set_argument(node, argument, narrowed, f"{reference} is no fit; {narrowed} is"), cost
        )

"""Which tool a clause of a task speaks of, and which choices of its arguments the clause says."""

from __future__ import annotations

import re

from pydantic import JsonValue

from catalog.schema import is_valid, types
from catalog.similarity import words
from catalog.tools import JsonSchema, Tool
from server.planning.literals import wording
from server.planning.spoken_steps import VERBS, SpokenStep
from server.planning.units import listed_spelling, unit_kind
from server.planning.view import View, argument_schema

__all__ = ["choices_of", "end_slots", "required_of", "said_choices", "tool_for", "unit_slots"]

_PLAIN_VERBS = frozenset({"calculate", "compute", "get", "find", "operation", "tool", "perform"})
"""Words of tool names that say little where others stand beside them."""
_LEAST = 1.6
"""How well a clause must speak of a tool for the clause to be a step."""
_CLOSE = 0.8


def required_of(tool: Tool) -> list[str]:
    named = tool.input_schema.get("required")
    return [str(name) for name in named] if isinstance(named, list) else []


def tool_for(step: SpokenStep, view: View) -> Tool | None:
    """Return the tool a clause speaks of most, of the plan's servers rather than others; None: of none."""
    near = {hit.tool.id: hit.score for hit in view.world.index.search(wording(step.said), 12)}
    servers = {node.tool.server for node in view.workflow.nodes if node.tool}
    best: tuple[float, Tool] | None = None
    for tool in view.world.snapshot:
        said = _speaks_of(step, tool, is_near=tool.id.server in servers)
        score = said + near.get(tool.id, 0.0) + (_CLOSE if tool.id.server in servers else 0.0)
        score -= 0.0 if view.world.effect(tool.id).is_free else 0.5
        if said >= 1.0 and score >= _LEAST and (best is None or score > best[0]):
            best = score, tool
    return best[1] if best else None


def unit_slots(tool: Tool) -> list[str]:
    """Return the required arguments that take units: from which, to which."""
    ends = {"unit", "from", "to", "source", "target"}
    names = [name for name in required_of(tool) if set(words(name)) & ends]
    return [name for name in names if not set(words(name)) & {"type", "category", "kind"}]


def end_slots(tool: Tool) -> list[str]:
    """Return the required arguments for from what and to what, in this order; empty unless it has both."""
    asked = ({"from", "source"}, {"to", "target"})
    found = [next((n for n in required_of(tool) if set(words(n)) & end), None) for end in asked]
    return [name for name in found if name is not None] if None not in found else []


def _takes_ends(step: SpokenStep, tool: Tool) -> bool:
    """Return whether a tool takes from what to what a clause says, as far as its schema tells."""
    slots = end_slots(tool)
    return not any(step.ends) or (
        bool(slots)
        and all(
            is_valid(argument_schema(tool, name), end)
            for end, name in zip(step.ends, slots, strict=True)
            if end
        )
    )


def _knows_units(step: SpokenStep, tool: Tool) -> bool:
    """Return whether a tool takes the units a clause says, where its schema lists those it takes."""
    slots = unit_slots(tool)
    if step.units is None or len(slots) != 2:
        return True
    listed = [argument_schema(tool, name).get("enum") for name in slots]
    return all(
        listed_spelling(unit, map(str, values)) is not None
        for unit, values in zip(step.units, listed, strict=True)
        if isinstance(values, list)
    )


def _speaks_of(step: SpokenStep, tool: Tool, *, is_near: bool) -> float:
    """Return how much a clause says the words of a tool's name and the choices of its arguments."""
    said = frozenset(words(step.said))
    if step.units is not None:
        said |= {"unit", unit_kind(step.units[0]) or "unit"}
    name = frozenset(words(tool.id.tool))
    orders = (name & VERBS) - _PLAIN_VERBS
    if (orders and not orders & said) or not _knows_units(step, tool) or not _takes_ends(step, tool):
        return 0.0
    if is_near:
        name = name - frozenset(words(tool.id.server)) or name
    name = name - _PLAIN_VERBS or name
    score = 2.0 * len(name & said) / len(name) + 0.1 * len(name & said)
    return score + (1.2 if said_choices(step, tool) else 0.0)


def said_choices(step: SpokenStep, tool: Tool) -> dict[str, JsonValue]:
    """Return the arguments whose schema lists a choice that the clause says."""
    found: dict[str, JsonValue] = {}
    said = re.findall(r"[\w-]+", step.said.lower())
    for name in required_of(tool):
        schema = argument_schema(tool, name)
        if "string" not in types(schema) or "unit" in words(name):
            continue
        listed = [choice for choice in choices_of(schema) if choice.lower() in said]
        if listed:
            found[name] = max(listed, key=lambda choice: said[::-1].index(choice.lower()) * -1)
    return found


def choices_of(schema: JsonSchema) -> list[str]:
    """Return the values a schema lists: as an enum, or in the parentheses of its description."""
    enum = schema.get("enum")
    if isinstance(enum, list):
        return [str(value) for value in enum]
    groups = re.findall(r"\(([^()]*,[^()]*)\)", str(schema.get("description", "")))
    parts = [part.strip() for group in groups for part in group.split(",")]
    return [part for part in parts if re.fullmatch(r"[a-z][\w-]*", part)]

"""Edits for calls that were made and failed: what the server says is the evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from pydantic import JsonValue

from catalog.schema import types
from catalog.similarity import name_similarity
from server.evolution.argument_faults import set_argument
from server.evolution.insertions import propose_handle
from server.evolution.order_faults import propose_order, propose_waits
from server.evolution.proposal import Proposal, propose_one
from server.evolution.removals import propose_bypass, propose_removal
from server.evolution.tool_faults import propose_swaps
from server.planning.slots import fits, slot_of
from server.planning.sources import argument_sources
from server.planning.units import near_units, unit_spellings, units_disagree
from server.planning.view import View, argument_schema
from skills_store.workflow.faults import Fault
from skills_store.workflow.model import Node
from skills_store.workflow.references import escape_literal

__all__ = ["offered_values", "other_spellings", "propose_after_failure", "swapped_values"]

_ALIASES = {
    "utc": ("UTC", "Etc/UTC"),
    "utc0": ("UTC",),
    "utc00": ("UTC",),
    "gmt": ("GMT", "UTC"),
    "z": ("UTC",),
    "zulu": ("UTC",),
    "coordinateduniversaltime": ("UTC",),
    "universaltime": ("UTC",),
}
"""Names that mean the same and are spelt too differently to tell."""

_STATE_WORDS = (
    "not found",
    "no such",
    "does not exist",
    "unknown connection",
    "not connected",
    "missing",
    "first",
)


def propose_after_failure(view: View, node: Node, fault: Fault) -> Iterator[Proposal]:
    """Yield edits for a node whose call failed, by what the failure says."""
    message = fault.message
    lowered = message.lower()
    if any(word in lowered for word in _STATE_WORDS):
        yield from propose_waits(view, node, message)
        yield from propose_order(view, cost=0.8)
        yield from propose_handle(view, node)
    yield from propose_removal(view, node, cost=0.3 if _is_free(view, node) else 2.0)
    yield from propose_bypass(view, node, cost=1.3)
    yield from swapped_values(view, node)
    for argument, value in node.arguments.items():
        suspect = _is_named(argument, value, lowered)
        yield from _other_values(view, node, argument, message, 0.0 if suspect else 1.2)
    yield from propose_swaps(view, node, base_cost=1.2)


def swapped_values(view: View, node: Node) -> Iterator[Proposal]:
    """Yield two values of one type in each other's place."""
    tool = view.tool(node)
    for one, two in combinations(node.arguments, 2):
        first, second = node.arguments[one], node.arguments[two]
        same_type = types(argument_schema(tool, one)) == types(argument_schema(tool, two))
        if first == second or not same_type:
            continue
        flows = sum(isinstance(value, str) and value.startswith("$") for value in (first, second))
        because = f"{one!r} and {two!r} may be swapped"
        edits = (set_argument(node, one, second, because), set_argument(node, two, first, because))
        yield Proposal(edits, {2: 0.9, 1: 1.2, 0: 1.7}[flows])


def _is_free(view: View, node: Node) -> bool:
    return node.tool is not None and view.world.effect(node.tool).is_free


def _is_named(argument: str, value: JsonValue, message: str) -> bool:
    """Return whether an error speaks of an argument, by its name or by a literal value of it."""
    if re.search(rf"\b{re.escape(argument.lower())}\b", message):
        return True
    return (
        isinstance(value, str) and not value.startswith("$") and len(value) < 60 and value.lower() in message
    )


def _other_values(
    view: View, node: Node, argument: str, message: str, base_cost: float
) -> Iterator[Proposal]:
    slot = slot_of(node, argument, view)
    value = node.arguments[argument]
    for option in offered_values(message):
        if option != value and fits(option, slot.schema):
            likeness = name_similarity(str(value), option)
            edit = set_argument(node, argument, escape_literal(option), f"the server offers {option!r}")
            yield propose_one(edit, base_cost + 0.15 + 0.6 * (1 - likeness))
    if isinstance(value, str) and not value.startswith("$"):
        for rank, spelling in enumerate(other_spellings(value)):
            edit = set_argument(node, argument, spelling, f"{spelling!r} is another spelling of {value!r}")
            yield propose_one(edit, base_cost + 0.4 + 0.05 * rank + _unit_cost(node, argument, spelling))
    for source in argument_sources(slot, view):
        if source.value != value:
            edit = set_argument(node, argument, source.value, source.because)
            cost = base_cost + 0.5 + source.cost + _unit_cost(node, argument, source.value)
            yield propose_one(edit, cost)


def _unit_cost(node: Node, argument: str, value: JsonValue) -> float:
    return 1.0 if units_disagree({**node.arguments, argument: value}) else 0.0


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def offered_values(message: str) -> list[str]:
    """Return the values an error message lists as possible."""
    listed = re.search(
        r"(?:available|allowed|valid|expected|one of|did you mean|choose|supported)(.*)",
        message,
        re.IGNORECASE | re.DOTALL,
    )
    if listed is None:
        return []
    quoted = re.findall(r"['\"`]([^'\"`]{1,60})['\"`]", listed[1])
    plain = re.findall(r"[\w./-]+", listed[1].split(":", 1)[-1]) if not quoted and ":" in listed[1] else []
    return list(dict.fromkeys([*quoted, *plain]))[:20]


def other_spellings(text: str) -> list[str]:
    """Return a literal's spellings in other cases and, for a unit, under its other names."""
    units = [name for name in (*unit_spellings(text), *_ALIASES.get(_plain(text), ())) if name != text]
    units += [name for name in near_units(text) if not units] if len(text) < 20 else []
    cases = [text.upper(), text.lower(), text.capitalize(), text.strip()]
    joined = [text.replace(" ", "_"), text.replace("_", " "), text.replace("-", "_"), text.replace("-", "")]
    joined += [text[:-1]] if text.endswith("s") else []
    return [form for form in dict.fromkeys([*units[:4], *cases, *units[4:], *joined]) if form != text]

"""Which places of an answer a task asks for, and the assertions that hold of exactly these values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from server.exploration.arguments import is_server_made
from server.exploration.naming import key_name
from server.exploration.observation import Observation
from server.planning.leaves import Leaf, leaves_of_value
from server.planning.likeness import GENERIC_KEYS
from skills_store.workflow.references import Reference

__all__ = ["asked_outputs", "value_assertions"]

_MOST_OUTPUTS = 3
_LONGEST_TEXT = 300
_LONGEST_LIST = 20
_FURTHER = re.compile(r"/[1-9]\d*(?:/|$)")
"""Past the first entry of a list, which is not there for every input."""
_VERDICTS = frozenset({"success", "ok", "status", "valid", "message", "error", "errors"})


def asked_outputs(
    ends: list[Observation],
    ids: Mapping[int, str],
    inputs: Mapping[str, JsonValue],
    unlike: JsonValue,
    before: JsonValue,
) -> dict[str, JsonValue]:
    """Return the outputs of a workflow by name: references to places of its answers; often none.

    Args:
        ends: calls whose answers are asked for.
        ids: of the nodes that make them, by number.
        inputs: of the workflow; what only says them again is no output, unless a change was made meanwhile.
        unlike: an answer that says nothing of the workflow: what it has too is no output.
        before: an answer of before the last change: what it has too comes later.
    """
    found: dict[str, JsonValue] = {}
    known = [(leaf.pointer, leaf.value) for leaf in leaves_of_value(unlike)]
    old = [(leaf.pointer, leaf.value) for leaf in leaves_of_value(before)]
    for end in ends:
        given = () if known else inputs.values()  # what a change was told and a look then says is no echo
        echoed = [*given, *end.probe.arguments.values()]
        places = leaves_of_value(end.output)
        if any(_says_today(leaf.value) for leaf in places):
            places = [leaf for leaf in places if not _names_today(leaf.value)]
        leaves = [leaf for leaf in places if _is_checkable(leaf, echoed)]
        leaves = [leaf for leaf in leaves if _is_telling(leaf) and (leaf.pointer, leaf.value) not in known]
        leaves.sort(key=_interest)
        new = [leaf for leaf in leaves if (leaf.pointer, leaf.value) not in old]
        plain = [leaf for leaf in leaves if not _FURTHER.search(leaf.pointer)]
        leaves = [*new[:1], *(leaf for leaf in plain or leaves if leaf not in new[:1])]
        if not leaves:
            return {}
        for leaf in leaves[: _MOST_OUTPUTS if len(ends) == 1 else 1]:
            name = key_name(leaf.key)
            wanted = name if name not in found else f"{name}_{len(found) + 1}"
            found[wanted] = str(Reference("nodes", ids[end.number], leaf.pointer))
    return found


def _is_telling(leaf: Leaf) -> bool:
    """Return whether a place says more than whether the call went well, which nobody asks for."""
    return leaf.key.lower() not in _VERDICTS


def _interest(leaf: Leaf) -> tuple[bool, bool, int]:
    """Return what orders places of an answer: handles and times last, results first, then its top."""
    is_own = is_server_made(leaf.key, leaf.value)
    return is_own, leaf.key.lower() not in GENERIC_KEYS, leaf.pointer.count("/")


def _is_checkable(leaf: Leaf, echoed: list[JsonValue]) -> bool:
    value = leaf.value
    if (value in echoed and not isinstance(value, bool)) or _says_today(value):
        return False
    match value:
        case bool() | int() | float():
            return True
        case str():
            return 0 < len(value) <= _LONGEST_TEXT
        case list():
            return 0 < len(value) <= _LONGEST_LIST and not any(
                isinstance(part, dict | list) for part in value
            )
        case _:
            return False


def _says_today(value: JsonValue) -> bool:
    """Return whether a text has the date of this day somewhere on earth, which it will not have next week."""
    return isinstance(value, str) and any(day.date().isoformat() in value for day in _today())


def _names_today(value: JsonValue) -> bool:
    """Return whether a value is a part of this day, which beside its date it will not be tomorrow."""
    names = {
        part.casefold() for day in _today() for part in (f"{day:%A}", f"{day:%a}", f"{day:%B}", f"{day:%b}")
    }
    numbers = {number for day in _today() for number in (day.year, day.month, day.day)}
    return (
        value.casefold() in names if isinstance(value, str) else isinstance(value, int) and value in numbers
    )


def _today() -> list[datetime]:
    """Return moments of every day that it is now somewhere on earth."""
    now = datetime.now(UTC)
    return [now - timedelta(hours=12), now, now + timedelta(hours=14)]


def value_assertions(outputs: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return assertions that hold of exactly these outputs, decimals up to a millionth."""
    return tuple(_assertion(name, value) for name, value in outputs.items())


def _assertion(name: str, value: JsonValue) -> str:
    if isinstance(value, float):
        tolerance = max(abs(value) * 1e-6, 1e-9)
        return f"approx(output.{name}, `{json.dumps(value)}`, `{tolerance:.3g}`)"
    literal = json.dumps(value, ensure_ascii=False).replace("`", "\\`")
    return f"output.{name} == `{literal}`"

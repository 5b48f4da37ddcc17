"""Values that the world was seen to have for an input: what a varied run may be given beside made-up ones.

They come from kept traces: what other runs sent to the same argument of the same tool with success,
and what tools of the same server listed under the argument's name. Whether a value fits an input's
schema is `variation`.

Paper: FlowEvo (metamorphic variants per pattern; facts §3.5 gate 2).
Differs: record ids, paths and names cannot be made up, and are taken from what was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.similarity import words
from catalog.tools import ToolId
from skills_store.redaction import REDACTED
from skills_store.trace import Step, Trace
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import Found, pointer_parts
from skills_store.workflow.scan import scan

__all__ = ["seen_values"]

_VALUES_PER_INPUT = 8
_LONGEST_TEXT = 500
_LONGEST_LIST = 50
_IDENTIFIERS = frozenset({"id", "name", "key"})


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a tool's arguments that takes an input as it is."""

    tool: ToolId
    pointer: str

    @property
    def names(self) -> frozenset[tuple[str, ...]]:
        """Words of the argument's name, and of the name without what says that it identifies."""
        said = words(pointer_parts(self.pointer)[-1])
        shorter = tuple(word for word in said if word not in _IDENTIFIERS)
        return frozenset({said, shorter} - {()})


def seen_values(workflow: Workflow, traces: Iterable[Trace]) -> dict[str, list[JsonValue]]:
    """Return values by input name, those of the newest trace first; inputs without any are left out.

    Args:
        workflow: the body of a skill.
        traces: kept traces, secrets taken out, the newest first.
    """
    places = _places(workflow)
    found: dict[str, list[JsonValue]] = {name: [] for name in places}
    sent: dict[str, list[JsonValue]] = {name: [] for name in places}
    for step in (step for trace in traces for step in trace.steps if step.outcome == "succeeded"):
        for name, fed in places.items():
            _add(sent[name], (value for place in fed for value in _sent(place, step)))
            _add(found[name], (value for place in fed for value in _listed(place, step)))
    for name in places:
        _add(sent[name], found[name])
    return {name: values for name, values in sent.items() if values}


def _places(workflow: Workflow) -> dict[str, list[_Place]]:
    """Return where each input is handed to a tool whole."""
    places: dict[str, list[_Place]] = {}
    for node in workflow.nodes:
        for found in scan(node.arguments) if node.tool is not None else ():
            if isinstance(found, Found) and found.reference.root == "inputs" and found.whole:
                place = _Place(node.tool, found.pointer) if node.tool else None
                if place is not None and not found.reference.pointer:
                    places.setdefault(found.reference.name, []).append(place)
    return places


def _add(values: list[JsonValue], more: Iterable[JsonValue]) -> None:
    for value in more:
        if len(values) < _VALUES_PER_INPUT and value not in values and _is_fit(value):
            values.append(value)


def _is_fit(value: JsonValue) -> bool:
    """Return whether a value can stand in for another: something small with nothing taken out."""
    match value:
        case str():
            return 0 < len(value) <= _LONGEST_TEXT and REDACTED not in value
        case list():
            return 0 < len(value) <= _LONGEST_LIST and all(_is_fit(item) for item in value)
        case bool() | int() | float():
            return True
        case _:
            return False


def _sent(place: _Place, step: Step) -> Iterator[JsonValue]:
    if step.tool != place.tool:
        return
    value: JsonValue = step.arguments
    for part in pointer_parts(place.pointer):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return
    if value is not None:
        yield value


def _listed(place: _Place, step: Step) -> Iterator[JsonValue]:
    """Yield what a tool of the same server gave under the argument's name, alone or in a list."""
    if step.tool is not None and step.tool.server == place.tool.server:
        yield from _named(step.output, place.names, under=())


def _named(
    value: JsonValue, names: frozenset[tuple[str, ...]], under: tuple[str, ...]
) -> Iterator[JsonValue]:
    match value:
        case dict():
            for key, item in value.items():
                said = words(key)
                if isinstance(item, dict | list):
                    yield from _named(item, names, said)
                elif said in names or (said and set(said) <= _IDENTIFIERS and under in names):
                    yield item
        case list():
            for item in value[:_LONGEST_LIST]:
                if isinstance(item, dict | list):
                    yield from _named(item, names, under)
                elif under in names:
                    yield item
        case _:
            return

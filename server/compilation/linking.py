"""Recovering data flow: a literal that an earlier output gave becomes a reference or a selector.

A literal that the task or an input says too has two readings: an input, which generalises, or a
link. `link_literals` returns one reading; which one holds is decided by runs on other inputs. What
a call merely gives back as it was given is no source. A value that says little, such as a small
number, is linked where something else speaks for it: the answer would be read by nobody, or the
same argument of a sibling call comes from the same list.

Paper: FlowEvo, AgentEvolver (compile; DESIGN §5.8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from server.compilation.derivation import Derivation, Known, derivations
from server.compilation.places import Place, list_places, literal_places
from server.planning.literals import TaskLiteralKind, mentions, task_literals
from skills_store.workflow.bounds import json_equal
from skills_store.workflow.edits import EditParameter, EditRefused, apply_edit
from skills_store.workflow.graph import data_dependencies, descendants
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import escape_literal

__all__ = ["link_literals"]

_COMMON = frozenset({*range(13), 16, 24, 32, 50, 60, 64, 90, 100, 180, 256, 360, 365, 1000, 3600})
"""Numbers that stand in many calls for reasons of their own."""
_SHORT_ANSWER = 4
"""Scalars that an answer of one meaning has at most, echoes left out."""
_INDEX = re.compile(r"/\d+")
_NAMING: frozenset[TaskLiteralKind] = frozenset({"quoted", "name", "email", "symbol", "date"})
"""Kinds of task literals that name a thing, by which it may be found in a list."""


def link_literals(
    workflow: Workflow,
    outputs: Mapping[str, JsonValue],
    task: str,
    inputs: Mapping[str, JsonValue],
    *,
    said_too: bool = False,
) -> Workflow:
    """Return the workflow with what earlier outputs gave replaced by how they gave it.

    Args:
        workflow: what ran.
        outputs: full node outputs of the run by id.
        task: the task in a person's words.
        inputs: values the run was given.
        said_too: whether also literals that the task or an input says are linked.
    """
    said = [place for place in literal_places(workflow) if _is_said(place.value, task, inputs.values())]
    stated = tuple(literal.value for literal in task_literals(task) if literal.kind in _NAMING)
    linking = _Linking(workflow, outputs, said, inputs, stated, said_too=said_too, given=_given(workflow))
    for place in _lists(workflow):
        linking.link(place)
    for place in literal_places(linking.workflow):
        linking.link(place)
    linking.link_siblings()
    linking.link_unread()
    return linking.workflow


def _lists(workflow: Workflow) -> list[Place]:
    """Return the literal lists of a workflow, outer ones first."""
    nested = [
        Place(node.id, argument, f"/{argument}", value)
        for node in workflow.nodes
        for argument, value in node.arguments.items()
        if isinstance(value, list) and any(isinstance(item, list | dict) for item in value)
    ]
    return [*nested, *list_places(workflow)]


def _is_said(value: JsonValue, task: str, given: Iterable[JsonValue]) -> bool:
    return mentions(task, value) or value in given


def _given(workflow: Workflow) -> dict[str, list[Place]]:
    """Return the scalars that each node was given."""
    given: dict[str, list[Place]] = {node.id: [] for node in workflow.nodes}
    for place in literal_places(workflow):
        given[place.node].append(place)
    return given


def _leaves(value: JsonValue) -> Iterator[JsonValue]:
    match value:
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case _:
            yield value


@dataclass
class _Linking:
    """A workflow whose literals become data flow, one after the other."""

    workflow: Workflow
    outputs: Mapping[str, JsonValue]
    said: Sequence[Place]
    inputs: Mapping[str, JsonValue]
    stated: Sequence[JsonValue]
    """What the task names, whether a call was given it or not."""
    said_too: bool
    given: Mapping[str, Sequence[Place]]
    """The scalars that each node was given, before any of them was linked."""

    def link(self, place: Place) -> None:
        """Link one place where its value tells enough."""
        if self._may_link(place):
            ways = derivations(place.value, place.argument, self._earlier(place), self._known(place))
            self._take(place, ways)

    def link_siblings(self) -> None:
        """Link what stands where a sibling call reads an item of a list, if another item gives it."""
        linked = [
            (node.tool, argument, value)
            for node in self.workflow.nodes
            for argument, value in node.arguments.items()
            if isinstance(value, str) and value.startswith("$nodes.") and _INDEX.search(value)
        ]
        for place in list(literal_places(self.workflow)):
            node = self.workflow.node(place.node)
            shapes = {
                _INDEX.sub("/0", value)
                for tool, argument, value in linked
                if node is not None and tool == node.tool and argument == place.argument
            }
            if shapes and self._may_link(place):
                ways = derivations(place.value, place.argument, self._earlier(place), weak=True)
                self._take(place, [way for way in ways if _INDEX.sub("/0", str(way.expression)) in shapes])

    def link_unread(self) -> None:
        """Link to answers that nobody would read otherwise: each call was made for something."""
        for source in [node.id for node in self.workflow.nodes][:-1]:
            if source not in self._read():
                for place in self._reading(source):
                    ways = derivations(place.value, place.argument, {source: self.outputs[source]}, weak=True)
                    self._take(place, ways)

    def _reading(self, source: str) -> Iterator[Place]:
        """Yield the places that an unread answer gives: all with a rare value, else the likeliest.

        A common number is believed of a short answer only: a long one holds some by chance.
        """
        found: list[tuple[float, Place]] = []
        for place in literal_places(self.workflow):
            if source in self._earlier(place, within_lists=self.said_too) and self._may_link(place):
                ways = derivations(place.value, place.argument, {source: self.outputs[source]}, weak=True)
                found += [(ways[0].cost, place)] if ways else []
        rare = [place for _, place in found if place.value not in _COMMON]
        yield from rare
        if found and not rare and self._is_short(source):
            yield min(found, key=lambda one: one[0])[1]

    def _is_short(self, source: str) -> bool:
        news = [v for v in _leaves(self.outputs[source]) if v is not None and not isinstance(v, bool)]
        given = self.given.get(source, ())
        return sum(not any(json_equal(value, own.value) for own in given) for value in news) <= _SHORT_ANSWER

    def _read(self) -> set[str]:
        return {read for reads in data_dependencies(self.workflow).values() for read in reads}

    def _may_link(self, place: Place) -> bool:
        items = place.value if isinstance(place.value, list) else None
        if self.said_too:
            return True
        if items is None:
            return place not in self.said
        inside = [said for said in self.said if said.node == place.node]
        return not any(said.pointer.startswith(f"{place.pointer}/") for said in inside)

    def _take(self, place: Place, ways: Sequence[Derivation]) -> None:
        for way in ways:
            edit = EditParameter(node=place.node, pointer=place.pointer, value=way.expression)
            try:
                self.workflow = apply_edit(self.workflow, edit)
            except EditRefused:
                continue
            return

    def _earlier(self, place: Place, *, within_lists: bool = False) -> dict[str, JsonValue]:
        """Return the outputs that may have been there when the place's node was called, echoes left out.

        What stands later in the document was not: nobody plans, or records, in another order.

        Args:
            place: where a value was given.
            within_lists: whether a value that a call was given as one of many is no echo: the mean of
                numbers may be one of them.
        """
        later = descendants(self.workflow, place.node) | {place.node}
        before = self.workflow.nodes[: self.workflow.index(place.node)]
        return {
            node.id: self.outputs[node.id]
            for node in before
            if node.id not in later
            and node.id in self.outputs
            and not any(
                json_equal(place.value, own.value)
                for own in self.given.get(node.id, ())
                if not (within_lists and _INDEX.search(own.pointer))
            )
        }

    def _known(self, place: Place) -> list[Known]:
        """Return what an item of a list may be found by: inputs, and other literals that somebody said."""
        declared = self.workflow.inputs.get("properties")
        names = declared if isinstance(declared, dict) else {}
        named = [Known(f"$inputs.{name}", value) for name, value in self.inputs.items() if name in names]
        given = [other.value for other in self.said]
        others = [*given, *(value for value in self.stated if value not in given)]
        return [*named, *(Known(escape_literal(value), value) for value in others if value != place.value)]

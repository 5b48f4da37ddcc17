"""Anti-unification: what two runs of one shape have in common is the workflow, what differs its inputs.

Where one run had a literal and the other data flow, the data flow holds if it gives the literal in
both; where neither has any that does, one is sought that gives both values, since what holds twice
is hardly chance. Anything else that differs in kind is refused: nothing is guessed.

Paper: FlowEvo (compile; DESIGN §5.8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue

from server.compilation.derivation import derivations
from server.compilation.errors import NotCompilable
from skills_store.workflow.bounds import json_equal, json_type
from skills_store.workflow.graph import descendants
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import (
    ExpressionError,
    Reference,
    Scope,
    Unresolved,
    is_selector,
    map_references,
    resolve,
)

__all__ = ["FOR_EACH", "Difference", "General", "Ran", "generalise", "is_flow"]

_MOST_INPUTS = 12
FOR_EACH = "for_each"
"""Stands as the pointer of a difference for the list that a mapped call runs over."""
_Number = (int, float)


@dataclass(frozen=True, slots=True)
class Ran:
    """One run: the workflow as literal as it was, and what its nodes gave."""

    workflow: Workflow
    outputs: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two runs differ: what each had there."""

    node: str
    argument: str
    pointer: str
    one: JsonValue
    two: JsonValue
    explained: bool = False
    """Whether data flow gives both values; an input that stands there already takes them all the same."""


@dataclass(frozen=True, slots=True)
class General:
    """The first run's workflow, with data flow where both had it, and where their values differ."""

    workflow: Workflow
    differences: tuple[Difference, ...]


def generalise(one: Ran, two: Ran) -> General:
    """Return what two runs have in common and where they differ.

    Raises:
        NotCompilable: they are not of one shape, or differ in too much.
    """
    ids = _matched(one.workflow, two.workflow)
    outputs_two = {ids.get(node, node): value for node, value in two.outputs.items()}
    unifying = _Unifying(one.workflow, dict(one.outputs), outputs_two)
    nodes: list[Node] = []
    for mine, theirs in zip(one.workflow.nodes, two.workflow.nodes, strict=True):
        renamed = {key: _renamed(value, ids) for key, value in theirs.arguments.items()}
        arguments = unifying.arguments(mine.id, mine.arguments, renamed)
        unifying.for_each(mine, _renamed(theirs.for_each, ids))
        nodes.append(mine.model_copy(update={"arguments": arguments}))
    if len({(d.node, d.pointer) for d in unifying.differences if not d.explained}) > _MOST_INPUTS:
        raise NotCompilable(f"the two runs differ in more than {_MOST_INPUTS} places")
    workflow = one.workflow.model_copy(update={"nodes": tuple(nodes)})
    return General(workflow, tuple(unifying.differences))


def _matched(one: Workflow, two: Workflow) -> dict[str, str]:
    """Return the first run's node id for each of the second's.

    Raises:
        NotCompilable: they do not make the same calls in the same order.
    """
    calls = [[node.target for node in run.nodes] for run in (one, two)]
    mapped = [[node.for_each is None for node in run.nodes] for run in (one, two)]
    if calls[0] != calls[1] or mapped[0] != mapped[1]:
        told = " against ".join(", ".join(called) for called in calls)
        raise NotCompilable(f"the two runs make different calls: {told}")
    if one.outputs.keys() != two.outputs.keys():
        raise NotCompilable("the two runs have different outputs")
    return {theirs.id: mine.id for mine, theirs in zip(one.nodes, two.nodes, strict=True)}


def _renamed(value: JsonValue, ids: Mapping[str, str]) -> JsonValue:
    def renamed(reference: Reference) -> Reference:
        if reference.root != "nodes":
            return reference
        return Reference("nodes", ids.get(reference.name, reference.name), reference.pointer)

    return map_references(value, renamed)


@dataclass
class _Unifying:
    """Two values becoming one, and the differences found on the way."""

    workflow: Workflow
    """The first run's."""
    outputs_one: Mapping[str, JsonValue]
    outputs_two: Mapping[str, JsonValue]
    differences: list[Difference] = field(default_factory=list[Difference])

    def for_each(self, mine: Node, theirs: JsonValue) -> None:
        """Note that two runs of a mapped call run over different lists.

        Raises:
            NotCompilable: the lists come from different places.
        """
        if mine.for_each is None or json_equal(mine.for_each, theirs):
            return
        if not (isinstance(mine.for_each, list) and isinstance(theirs, list)):
            raise NotCompilable(f"{mine.id} runs over different lists in the two runs")
        self.differences.append(Difference(mine.id, "for_each", FOR_EACH, mine.for_each, theirs))

    def arguments(
        self, node: str, one: Mapping[str, JsonValue], two: Mapping[str, JsonValue]
    ) -> dict[str, JsonValue]:
        if one.keys() != two.keys():
            only = ", ".join(sorted(one.keys() ^ two.keys()))
            raise NotCompilable(f"{node} was given {only} in one of the two runs only")
        return {key: self._unified(node, key, json_pointer(key), one[key], two[key]) for key in one}

    def _unified(self, node: str, argument: str, pointer: str, one: JsonValue, two: JsonValue) -> JsonValue:
        if json_equal(one, two):
            return one
        if is_selector(one) and is_selector(two) and _same_selector(one, two):
            return self._selectors(node, argument, pointer, one, two)
        if is_flow(one) or is_flow(two):
            return self._flow(node, argument, pointer, one, two)
        if (joint := self._joint(node, argument, one, two)) is not None:
            self.differences.append(Difference(node, argument, pointer, one, two, explained=True))
            return joint
        match one, two:
            case dict(), dict() if one.keys() == two.keys():
                return {
                    key: self._unified(node, argument, pointer + json_pointer(key), one[key], two[key])
                    for key in one
                }
            case list(), list() if len(one) == len(two) and any(isinstance(i, dict | list) for i in one):
                return [
                    self._unified(node, argument, f"{pointer}/{i}", mine, theirs)
                    for i, (mine, theirs) in enumerate(zip(one, two, strict=True))
                ]
            case _ if _same_kind(one, two):
                self.differences.append(Difference(node, argument, pointer, one, two))
                return one
            case _:
                kinds = f"{json_type(one)} against {json_type(two)}"
                raise NotCompilable(f"{argument} of {node} is of different kinds in the two runs: {kinds}")

    def _selectors(self, node: str, argument: str, pointer: str, one: JsonValue, two: JsonValue) -> JsonValue:
        """Return two selectors of one expression as one: what they are given beside it may differ."""
        mine, theirs = cast("dict[str, JsonValue]", one), cast("dict[str, JsonValue]", two)
        return {
            key: self._unified(node, argument, f"{pointer}/{key}", mine[key], theirs[key]) for key in mine
        }

    def _flow(self, node: str, argument: str, pointer: str, one: JsonValue, two: JsonValue) -> JsonValue:
        """Return the data flow that explains both values.

        Raises:
            NotCompilable: none does.
        """
        for flow, other, outputs in ((one, two, self.outputs_two), (two, one, self.outputs_one)):
            if is_flow(flow) and _gives(flow, outputs, other, self.outputs_one, self.outputs_two):
                return flow
        values = _resolved(one, self.outputs_one), _resolved(two, self.outputs_two)
        if None not in values and (joint := self._joint(node, argument, *values)) is not None:
            self.differences.append(Difference(node, argument, pointer, *values, explained=True))
            return joint
        raise NotCompilable(f"{argument} of {node} comes from different places in the two runs")

    def _joint(self, node: str, argument: str, one: JsonValue, two: JsonValue) -> JsonValue:
        """Return the surest data flow that gives one value in one run and the other in the other."""
        later = descendants(self.workflow, node) | {node}
        earlier = {
            other.id: self.outputs_one[other.id]
            for other in self.workflow.nodes
            if other.id not in later
            and other.id in self.outputs_one
            and not any(json_equal(one, given) for given in _scalars(other.arguments))
        }
        for way in derivations(one, argument, earlier, weak=True):
            if json_equal(_resolved(way.expression, self.outputs_two), two):
                return way.expression
        return None


def _resolved(value: JsonValue, outputs: Mapping[str, JsonValue]) -> JsonValue:
    """Return what a value is under a run's outputs, None where it cannot be told."""
    try:
        return resolve(value, Scope(outputs=outputs))
    except (Unresolved, ExpressionError):
        return None


def _scalars(value: JsonValue) -> Iterator[JsonValue]:
    match value:
        case dict():
            for item in value.values():
                yield from _scalars(item)
        case list():
            for item in value:
                yield from _scalars(item)
        case _:
            yield value


def is_flow(value: JsonValue) -> bool:
    """Return whether a value is a reference, a template or a selector."""
    if isinstance(value, str):
        return (value.startswith("$") and not value.startswith("$$")) or "{$nodes." in value
    return is_selector(value)


def _same_selector(one: JsonValue, two: JsonValue) -> bool:
    mine, theirs = cast("dict[str, JsonValue]", one), cast("dict[str, JsonValue]", two)
    return mine["selector"] == theirs["selector"] and mine.keys() == theirs.keys()


def _gives(
    flow: JsonValue,
    outputs: Mapping[str, JsonValue],
    other: JsonValue,
    one: Mapping[str, JsonValue],
    two: Mapping[str, JsonValue],
) -> bool:
    """Return whether data flow explains a run's literal, or another flow that gave the same in both runs."""
    try:
        if not is_flow(other):
            return json_equal(resolve(flow, Scope(outputs=outputs)), other)
        return all(
            json_equal(resolve(flow, Scope(outputs=seen)), resolve(other, Scope(outputs=seen)))
            for seen in (one, two)
        )
    except (Unresolved, ExpressionError):
        return False


def _same_kind(one: JsonValue, two: JsonValue) -> bool:
    if isinstance(one, bool) or isinstance(two, bool):
        return isinstance(one, bool) and isinstance(two, bool)
    if isinstance(one, _Number) and isinstance(two, _Number):
        return True
    if isinstance(one, list) and isinstance(two, list):
        return not any(isinstance(item, dict | list) for item in (*one, *two))
    return isinstance(one, str) and isinstance(two, str)

"""The planner that needs no model: tools by retrieval, arguments by type, links by name and type.

Paper: EvoFlux (heuristic floor: the top tools in a row, no arguments). Differs: arguments are
filled from the task, the inputs and earlier outputs; several plans are offered, best first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from pydantic import JsonValue

from catalog.schema import json_type
from catalog.search import Hit
from catalog.similarity import name_similarity, words
from catalog.tools import JsonSchema, Tool
from server.planning.each import read_of_each
from server.planning.likeness import GENERIC_KEYS
from server.planning.literals import SpokenList, clauses, spoken_lists, wording
from server.planning.slots import Slot, fits
from server.planning.sources import argument_sources
from server.planning.view import View, World, argument_schema
from skills_store.workflow.graph import data_dependencies
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Reference, escape_literal, parse_reference

__all__ = ["inputs_schema", "last_nodes", "likely_output", "plan_deterministically"]

_TOOLS_PER_CLAUSE = 3
_OPTIONAL_COST = 0.75
_MOST_ITEMS = 20
"""Items of a list that the task says over which calls are planned one by one."""


@dataclass(frozen=True, slots=True)
class _Draft:
    workflow: Workflow
    cost: float


def plan_deterministically(world: World, wanted: Sequence[str], *, limit: int = 8) -> list[Workflow]:
    """Return plans for the task of a world, most promising first; none when no tool is found.

    Args:
        world: task, inputs and tools.
        wanted: names of the outputs the caller will look at; empty: one output `result`.
        limit: most plans to return.
    """
    drafts = [draft for steps in _chains(world) for draft in _drafts(world, steps, wanted)]
    kept = {draft.workflow.model_dump_json(): draft for draft in reversed(drafts)}
    return [d.workflow for d in sorted(kept.values(), key=lambda d: d.cost)[:limit]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A tool for a part of the task, with what its distance from those words costs."""

    tool: Tool
    said: str
    cost: float


def _chains(world: World) -> Iterator[tuple[_Step, ...]]:
    """Yield single tools for the whole task, and tools in a row for its clauses."""
    for step in _steps(world, world.task, 6):
        yield (step,)
    found = [steps for clause in clauses(world.task) if (steps := _steps(world, clause, _TOOLS_PER_CLAUSE))]
    if len(found) > 1:
        yield from product(*found)


def _steps(world: World, said: str, limit: int) -> list[_Step]:
    return [_Step(hit.tool, said, _distance(world, hit)) for hit in world.index.search(wording(said), limit)]


def _distance(world: World, hit: Hit) -> float:
    return 2.5 * (1 - hit.score) + (0.0 if world.effect(hit.tool.id).is_free else 0.8)


def _drafts(world: World, steps: Sequence[_Step], wanted: Sequence[str]) -> Iterator[_Draft]:
    """Yield the calls of a chain, and the call of a single step for each item of a list that is given."""
    yield _draft(world, steps, wanted)
    if len(steps) > 1:
        return
    for listed in spoken_lists(steps[0].said):
        if len(listed.items) <= _MOST_ITEMS and (draft := _spread(world, steps[0], listed, wanted)):
            yield draft
    for name, value in world.inputs.items():
        if isinstance(value, list) and value and (draft := _mapped(world, steps[0], name, wanted)):
            yield draft


def _spread(world: World, step: _Step, listed: SpokenList, wanted: Sequence[str]) -> _Draft | None:
    """Return one call per item, each planned as if the task said that item alone, and lists as outputs.

    None where the calls differ in anything but the item.
    """
    workflow = Workflow(name="plan", inputs=inputs_schema(world), nodes=(), outputs={})
    empty, added = workflow, 0.0
    for item in listed.items:
        said = f"{step.said[: listed.start]}{item.text}{step.said[listed.end :]}"
        node, cost = _filled(
            View(replace(world, task=said), empty), _fresh_id(workflow, step.tool), step.tool
        )
        workflow = workflow.model_copy(update={"nodes": (*workflow.nodes, node)})
        added += cost / len(listed.items)
    if not _differ_in(workflow, listed):
        return None
    view = View(world, workflow)
    cost = 0.35 + step.cost + added + 0.5 * len(view.unused_inputs) + 0.5 * _unsaid(world, workflow)
    outputs: dict[str, JsonValue] = {}
    for name in wanted or ("result",):
        read = str(likely_output(view, name)).removeprefix(f"$nodes.{workflow.nodes[-1].id}.")
        outputs[name] = [f"$nodes.{node.id}.{read}" for node in workflow.nodes]
    return _Draft(workflow.model_copy(update={"outputs": outputs}), cost)


def _mapped(world: World, step: _Step, name: str, wanted: Sequence[str]) -> _Draft | None:
    """Return the call that runs over the items of a list input, planned as if one item were given.

    None where the tool takes no item of it, or takes it in two places.
    """
    items, workflow = (
        world.inputs[name],
        Workflow(name="plan", inputs=inputs_schema(world), nodes=(), outputs={}),
    )
    one = items[0] if isinstance(items, list) else items
    part = replace(world, inputs={**world.inputs, name: one}, task=step.said)
    node, added = _filled(View(part, workflow), _fresh_id(workflow, step.tool), step.tool)
    whole = str(Reference("inputs", name))
    places = [argument for argument, value in node.arguments.items() if value == whole]
    if len(places) != 1 or not _each_fits(items, argument_schema(step.tool, places[0])):
        return None
    view = View(part, workflow.model_copy(update={"nodes": (node,)}))
    cost = 0.35 + step.cost + added + 0.5 * len(view.unused_inputs) + 0.5 * _unsaid(world, view.workflow)
    outputs: dict[str, JsonValue] = {}
    for output in wanted or ("result",):
        read = parse_reference(str(likely_output(view, output)))
        outputs[output] = read_of_each(node.id, read.pointer)
    over = {**node.arguments, places[0]: "$item"}
    mapped = node.model_copy(update={"for_each": whole, "arguments": over})
    return _Draft(workflow.model_copy(update={"nodes": (mapped,), "outputs": outputs}), cost)


def _each_fits(items: JsonValue, schema: JsonSchema) -> bool:
    return isinstance(items, list) and all(fits(item, schema) for item in items)


def _differ_in(workflow: Workflow, listed: SpokenList) -> bool:
    """Return whether the calls of a workflow have a list's items in one place, and all else alike."""
    first = workflow.nodes[0].arguments
    keys = [key for key, value in first.items() if value == escape_literal(listed.items[0].value)]
    return any(
        all(
            node.arguments == {**first, key: escape_literal(item.value)}
            for node, item in zip(workflow.nodes, listed.items, strict=True)
        )
        for key in keys
    )


def _draft(world: World, steps: Sequence[_Step], wanted: Sequence[str]) -> _Draft:
    workflow = Workflow(name="plan", inputs=inputs_schema(world), nodes=(), outputs={})
    cost = 0.35 * len(steps) + sum(step.cost for step in steps) / len(steps)
    for step in steps:
        part = replace(world, task=step.said)
        node, added = _filled(View(part, workflow), _fresh_id(workflow, step.tool), step.tool)
        workflow = workflow.model_copy(update={"nodes": (*workflow.nodes, node)})
        cost += added
    view = View(world, workflow)
    cost += 0.5 * len(view.unused_inputs) + 0.5 * _unsaid(world, workflow)
    cost += 0.4 * sum(1 for node in workflow.nodes[:-1] if node in view.unused_nodes)
    outputs: dict[str, JsonValue] = {name: likely_output(view, name) for name in wanted or ("result",)}
    return _Draft(workflow.model_copy(update={"outputs": outputs}), cost)


def _unsaid(world: World, workflow: Workflow) -> int:
    """Return how many values of the task no argument has."""
    given = [value for node in workflow.nodes for value in node.arguments.values()]
    given += [item for value in given if isinstance(value, list) for item in value]
    stated = [literal.value for literal in world.literals if literal.kind not in ("word", "name", "symbol")]
    return sum(value not in given and value not in world.inputs.values() for value in stated)


def _filled(view: View, node_id: str, tool: Tool) -> tuple[Node, float]:
    """Return the node with every required argument that has a source, and what that cost."""
    node, costs, lacking = Node(id=node_id, tool=tool.id), [0.0], 0
    placed = view.workflow.model_copy(update={"nodes": (*view.workflow.nodes, node)})
    required = tool.input_schema.get("required")
    names = [str(name) for name in required] if isinstance(required, list) else []
    taken: set[str] = set()
    for name in (*names, *_optional(tool, names)):
        inner = View(view.world, placed)
        slot = Slot(node, name, argument_schema(tool, name))
        free = [s for s in argument_sources(slot, inner) if repr(s.value) not in taken]
        if not free or (name not in names and free[0].cost > _OPTIONAL_COST):
            lacking += name in names
            continue
        taken.add(repr(free[0].value))
        costs.extend([free[0].cost] if name in names else [])
        node = node.model_copy(update={"arguments": {**node.arguments, name: free[0].value}})
        placed = placed.replacing(node)
    return node, 1.5 * sum(costs) / len(costs) + 3.0 * lacking


def _optional(tool: Tool, required: Sequence[str]) -> list[str]:
    """Return optional arguments that a task could speak of; those with a default are left alone."""
    properties = tool.input_schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    return [
        n
        for n, part in named.items()
        if n not in required and isinstance(part, dict) and "default" not in part
    ]


def _fresh_id(workflow: Workflow, tool: Tool) -> str:
    stem = re.sub(r"[^a-z0-9_]+", "_", tool.id.tool.lower()).strip("_")[:40]
    stem = stem if re.match(r"[a-z]", stem) else f"n_{stem}"
    taken = {node.id for node in workflow.nodes}
    return next(name for i in range(1, 100) if (name := stem if i == 1 else f"{stem}_{i}") not in taken)


def last_nodes(workflow: Workflow) -> tuple[Node, ...]:
    """Return the nodes no other node reads: where an answer most likely stands. All of them in a cycle."""
    read = frozenset[str]().union(*data_dependencies(workflow).values())
    return tuple(node for node in workflow.nodes if node.id not in read) or workflow.nodes


def likely_output(view: View, name: str) -> JsonValue:
    """Return the reference that most likely means a wanted output: a like-named leaf, else the last node."""
    last = view.workflow.nodes[-1]
    best, best_likeness = Reference("nodes", last.id), 0.0
    for node in reversed(view.workflow.nodes):
        for leaf in view.leaves(node):
            likeness = name_similarity(leaf.key, name) if leaf.key else 0.1
            likeness = max(likeness, 0.5) if set(words(leaf.key)) & GENERIC_KEYS else likeness
            likeness += 0.05 if node is last else 0.0
            if likeness > best_likeness:
                best, best_likeness = Reference("nodes", node.id, leaf.pointer), likeness
    return str(best)


def inputs_schema(world: World) -> JsonSchema:
    """Return the schema of a plan's inputs: those the task came with, by the types they have.

    One whole number does not say that only whole numbers are meant: the tools that take it do.
    """
    properties: JsonSchema = {name: {"type": _seen_type(value)} for name, value in world.inputs.items()}
    return {"type": "object", "properties": properties, "required": list(world.inputs)}


def _seen_type(value: JsonValue) -> str:
    kind = json_type(value)
    return "number" if kind == "integer" else kind

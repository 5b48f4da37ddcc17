"""A known skill as the seed of a plan: its workflow with what the task binds, and what a model is told of it.

Paper: FlowEvo (seeded route; facts §3.4): a seed is a skeleton or only a guard, within 1,800 tokens
of context and 550 a skill; a second seed that is nearly as good joins as a guard. Differs: without a
model the workflow itself is the first plan that is tried; the skeleton is written in the words that
plans are asked for in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from catalog.tools import JsonSchema, ToolId
from server.backends.estimate import estimate_tokens
from server.planning.deterministic import inputs_schema, likely_output
from server.planning.model_planner import render_plan
from server.planning.router import match_skill
from server.planning.slots import Slot
from server.planning.sources import argument_sources
from server.planning.view import View, World
from skills_store.skill import Skill
from skills_store.workflow.model import Node, SkillRef, Workflow
from skills_store.workflow.scan import Found, node_references, scan

__all__ = ["BoundPlan", "Seed", "bound_plan", "seed_views"]

_VIEW_TOKENS = 1_800
_SKILL_TOKENS = 550
_LONGEST_GUARD = 120
_LIKELY = 1.3
"""Dearest source that binds an input of a seed."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A skill that a plan starts from, and what is to be minded with it."""

    skill: Skill
    guidance: tuple[str, ...] = ()
    """When to use it, when not, what went wrong before: each a sentence."""


@dataclass(frozen=True, slots=True)
class BoundPlan:
    """A skill's workflow as a plan of a task, and the world in which its inputs have values."""

    workflow: Workflow
    world: World
    unbound: tuple[str, ...]
    """Inputs without a value; the arguments that read them are left out."""


def bound_plan(skill: Skill, world: World, wanted: Sequence[str]) -> BoundPlan | None:
    """Return a skill's workflow with its inputs bound as far as the task goes, None where that is no plan.

    Args:
        skill: the seed.
        world: the task and its inputs.
        wanted: outputs the caller will look at; empty: those of the skill.
    """
    values = _bound(skill, world)
    unbound = tuple(name for name in _properties(skill.workflow.inputs) if name not in values)
    nodes = [_without(node, frozenset(unbound)) for node in skill.workflow.nodes]
    kept = tuple(node for node in nodes if node is not None)
    if len(kept) < len(nodes) or any(_reads(value, unbound) for value in skill.workflow.outputs.values()):
        return None
    bound = replace(world, inputs={**values, **world.inputs})
    schema = _narrowed(skill.workflow.inputs, inputs_schema(bound))
    workflow = skill.workflow.model_copy(update={"name": "plan", "inputs": schema, "nodes": kept})
    view = View(bound, workflow)
    outputs = {name: skill.workflow.outputs.get(name) or likely_output(view, name) for name in wanted}
    if outputs:
        workflow = workflow.model_copy(update={"outputs": outputs})
    return BoundPlan(workflow, bound, unbound)


def seed_views(
    seeds: Sequence[Seed], labels: dict[ToolId, str], context_tokens: int | None = None
) -> tuple[str, ...]:
    """Return what a model is told of seeds: the first with its skeleton, others as guards, in a budget.

    Args:
        seeds: the nearest first.
        labels: what the model calls tools by.
        context_tokens: of the model, of which a quarter is the most; None: it is large.
    """
    views: list[str] = []
    left = _VIEW_TOKENS if context_tokens is None else min(_VIEW_TOKENS, context_tokens // 4)
    for place, seed in enumerate(seeds):
        forms = [_guard(seed)] if place else [_skeleton(seed, labels), _guard(seed)]
        limit = min(left, _SKILL_TOKENS)
        view = next((form for form in forms if estimate_tokens(form) <= limit), None)
        if view is None:
            continue
        views.append(view)
        left -= estimate_tokens(view)
    return tuple(views)


def _skeleton(seed: Seed, labels: dict[ToolId, str]) -> str:
    example = seed.skill.provenance.task
    request = f" Request: {example.strip()[: 2 * _LONGEST_GUARD]}" if example else ""
    plan = render_plan(seed.skill.workflow, labels)
    return f"{_guard(seed)}{request} Plan, $inputs standing for values of the request: {plan}"


def _guard(seed: Seed) -> str:
    return " ".join([f"{_signature(seed.skill)}.", *map(_clipped, seed.guidance)])


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST_GUARD else text[: _LONGEST_GUARD - 1] + "…"


def _signature(skill: Skill) -> str:
    takes = ", ".join(_typed(skill.signature.input_schema))
    gives = ", ".join(_typed(skill.signature.output_schema))
    return f"{skill.name}({takes}) -> {{{gives}}}"


def _typed(schema: JsonSchema) -> list[str]:
    found: list[str] = []
    for name, part in _properties(schema).items():
        kind = part.get("type") if isinstance(part, dict) else None
        found.append(f"{name}: {kind if isinstance(kind, str) else 'any'}")
    return found


def _bound(skill: Skill, world: World) -> dict[str, JsonValue]:
    """Return the values of a skill's inputs: as its own task reads in this one, else by type and name."""
    names = _properties(skill.workflow.inputs)
    matched = match_skill(world.task, {n: v for n, v in world.inputs.items() if n in names}, skill)
    values = dict(matched.inputs) if matched is not None else {}
    node = Node(id="seed", skill=SkillRef(name=skill.name, version=skill.version))
    taken = {repr(value) for value in values.values()}
    for name, schema in names.items():
        if name in values or not isinstance(schema, dict):
            continue
        view = View(world, Workflow(name="seed", inputs=inputs_schema(world), nodes=(node,), outputs={}))
        for source in argument_sources(Slot(node, name, schema), view):
            value = _literal(source.value, world)
            if source.cost <= _LIKELY and repr(value) not in taken:
                values[name] = value
                taken.add(repr(value))
                break
    return values


def _literal(value: JsonValue, world: World) -> JsonValue:
    name = value.removeprefix("$inputs.") if isinstance(value, str) else ""
    return world.inputs.get(name, value)


def _without(node: Node, unbound: frozenset[str]) -> Node | None:
    """Return a node without the arguments that read unbound inputs, None where more of it reads them."""
    arguments = {name: value for name, value in node.arguments.items() if not _reads(value, unbound)}
    kept = node.model_copy(update={"arguments": arguments})
    left = (found.reference for found in node_references(kept))
    return None if any(ref.root == "inputs" and ref.name in unbound for ref in left) else kept


def _reads(value: JsonValue, names: Sequence[str] | frozenset[str]) -> bool:
    found = (part.reference for part in scan(value) if isinstance(part, Found))
    return any(reference.root == "inputs" and reference.name in names for reference in found)


def _narrowed(own: JsonSchema, given: JsonSchema) -> JsonSchema:
    """Return the schema of what is given, with what a skill says of its own inputs."""
    properties = {name: _properties(own).get(name, part) for name, part in _properties(given).items()}
    return {**given, "properties": properties}


def _properties(schema: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}

"""Makes one call ready: its target found, its arguments resolved, coerced and valid, or the faults.

Nothing here reaches an upstream: a call whose faults can be seen from here is never made. What
makes an argument wrong is `skills_store.workflow.argument_check`, here as before the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from catalog.canonical import JsonValue, canonical_json
from catalog.errors import SchemaRejected
from catalog.schema import Coerced, coerce
from catalog.tools import JsonSchema, ToolId
from server.execution.code import find_engine
from server.execution.environment import Environment
from server.execution.failures import Place, PlannedCall
from server.execution.options import MAX_SKILL_DEPTH
from server.execution.reading import Read, Reader
from skills_store.workflow.argument_check import Place as ArgumentPlace
from skills_store.workflow.argument_check import check_values
from skills_store.workflow.check import similar_tools
from skills_store.workflow.faults import DanglingReference, Fault, InvalidArgument, OverLimit, UnknownTool
from skills_store.workflow.model import Code, Node, SkillRef, Workflow

__all__ = ["Prepared", "Target", "find_target", "prepare"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a node calls: a tool of the snapshot, the workflow of a skill, or code."""

    tool: ToolId
    """Of a skill or of code: its name, of no server."""
    input_schema: JsonSchema
    skill: Workflow | None = None
    code: Code | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may be made."""

    place: Place
    call: PlannedCall
    coerced: list[Coerced]


def find_target(environment: Environment, node: Node, place: Place) -> Target | Fault:
    """Return what a node calls, or why there is no such thing."""
    if node.code is not None:
        return find_engine(environment, node.code, place) or Target(
            ToolId("", node.code.entry), node.code.takes, code=node.code
        )
    if node.tool is None:
        return _find_skill(environment, cast("SkillRef", node.skill), place)
    tool = environment.snapshot.get(node.tool)
    if tool is not None:
        return Target(tool.id, tool.input_schema)
    return UnknownTool(
        message=f"no tool {node.tool} in the catalog",
        node=node.id,
        pointer=place.at("tool"),
        tool=node.tool,
        similar=similar_tools(node.tool, environment.snapshot),
    )


def _find_skill(environment: Environment, skill: SkillRef, place: Place) -> Target | Fault:
    pointer, target = place.at("skill"), f"skill {skill.name}@{skill.version}"
    if len(environment.path) >= MAX_SKILL_DEPTH:
        message = f"{target}: skills are nested more than {MAX_SKILL_DEPTH} deep"
        return OverLimit(message=message, node=place.node, pointer=pointer)
    workflow = environment.options.skills(skill.name, skill.version)
    if workflow is None:
        return DanglingReference(message=f"no {target}", node=place.node, pointer=pointer, reference=target)
    return Target(ToolId("", skill.name), workflow.inputs, workflow)


def prepare(target: Target, node: Node, reader: Reader, place: Place) -> Prepared | list[Fault]:
    """Return the call of a node, or of one item of it, ready to be made.

    Args:
        target: what is called.
        node: as planned.
        reader: resolves what the arguments refer to.
        place: the node, and item.
    """
    pointer = place.at("arguments")
    read = reader.read(cast("JsonValue", node.arguments), pointer)
    if not isinstance(read, Read):
        return [read]
    resolved = cast("dict[str, JsonValue]", read.value)
    faults = _unreadable(resolved, place) or check_values(
        resolved, target.input_schema, ArgumentPlace(pointer, place.node)
    )
    if faults:
        return [fault.model_copy(update={"item": place.item}) for fault in faults]
    arguments, coerced = _coerced(target.input_schema, resolved)
    return Prepared(place, PlannedCall(target.tool, target.input_schema, arguments), coerced)


def _unreadable(arguments: dict[str, JsonValue], place: Place) -> list[Fault]:
    try:
        canonical_json(arguments)
    except ValueError as error:
        return [InvalidArgument(message=str(error), node=place.node, pointer=place.at("arguments"))]
    return []


def _coerced(
    schema: JsonSchema, arguments: dict[str, JsonValue]
) -> tuple[dict[str, JsonValue], list[Coerced]]:
    try:
        value, changes = coerce(schema, cast("JsonValue", arguments))
    except SchemaRejected:
        return arguments, []  # the catalog reports such a tool; its server judges the arguments
    return cast("dict[str, JsonValue]", value), changes

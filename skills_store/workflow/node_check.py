"""Static faults of one node: what it calls, its arguments, its list, its condition, its order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.errors import SchemaRejected
from catalog.schema import feeds, types
from catalog.similarity import name_similarity
from catalog.tools import JsonSchema, Snapshot, ToolId
from skills_store.code.lint import lint_code
from skills_store.errors import MalformedCode
from skills_store.skill import Signature
from skills_store.workflow.argument_check import Place, Wildcard, check_values
from skills_store.workflow.expression_check import Reader, check_assertions, check_expressions
from skills_store.workflow.faults import DanglingReference, Fault, InvalidArgument, Malformed, UnknownTool
from skills_store.workflow.model import Code, Node, SkillRef, Workflow, json_pointer
from skills_store.workflow.references import (
    ExpressionError,
    Found,
    Scope,
    is_selector,
    parse_reference,
    resolve,
)
from skills_store.workflow.scan import Unreadable, scan
from skills_store.workflow.sources import Sources

__all__ = ["NodeCheck", "similar_tools"]

_SIMILAR = 0.3
_SIMILAR_TOOLS = 5


@dataclass(frozen=True, slots=True)
class NodeCheck:
    """What the nodes of one workflow are checked against."""

    workflow: Workflow
    snapshot: Snapshot
    skills: Mapping[str, Signature]
    sources: Sources

    def faults(self, node: Node, place: str) -> list[Fault]:
        """Return the faults of a node that stands at `place`, in the order of its fields."""
        return [
            *self._target(node, place),
            *_check_arguments(node, f"{place}/arguments", self.sources),
            *_check_for_each(node, f"{place}/for_each", self.sources),
            *_check_when(node, f"{place}/when", self.sources),
            *_check_after(node, f"{place}/after", self.workflow),
            *check_assertions(node.expect, f"{place}/expect", node, self.workflow),
        ]

    def _target(self, node: Node, place: str) -> list[Fault]:
        if node.skill is not None:
            return self._skill(node, node.skill, place)
        if node.code is not None:
            granted = node.code.tools.items()
            grants = [(tool, f"{place}/code/tools{json_pointer(name)}") for name, tool in granted]
            return [*_check_code(node, node.code, place), *(f for g in grants for f in self._tool(node, *g))]
        return self._tool(node, node.tool, f"{place}/tool") if node.tool is not None else []

    def _tool(self, node: Node, tool: ToolId, pointer: str) -> list[Fault]:
        if tool in self.snapshot:
            return []
        similar = similar_tools(tool, self.snapshot)
        unknown_server = tool.server not in self.snapshot.servers
        known = f"; no server {tool.server!r} is known" if unknown_server else ""
        meant = f"; similar: {', '.join(map(str, similar))}" if similar else ""
        message = f"no tool {tool}{known}{meant}"
        return [UnknownTool(message=message, node=node.id, pointer=pointer, tool=tool, similar=similar)]

    def _skill(self, node: Node, skill: SkillRef, place: str) -> list[Fault]:
        if self.sources.skill(skill) is not None:
            return []
        return [
            DanglingReference(
                message=f"no {node.target}",
                node=node.id,
                pointer=f"{place}/skill",
                reference=node.target,
                available=tuple(sorted(self.skills)),
            )
        ]


def _check_code(node: Node, code: Code, place: str) -> list[Fault]:
    pointer = f"{place}/code/source"
    try:
        problems = lint_code(code.source)
    except MalformedCode as error:
        problems = (str(error),)
    return [Malformed(message=problem, node=node.id, pointer=pointer) for problem in problems]


def similar_tools(tool: ToolId, snapshot: Snapshot) -> tuple[ToolId, ...]:
    """Return up to five known tools that may be meant: same name elsewhere first, then by likeness."""
    ranked = sorted(
        (
            known.id.tool != tool.tool,
            -name_similarity(known.id.tool, tool.tool),
            known.id.server != tool.server,
            known.id,
        )
        for known in snapshot
    )
    return tuple(known for other, score, _, known in ranked if not other or -score >= _SIMILAR)[
        :_SIMILAR_TOOLS
    ]


def _check_arguments(node: Node, place: str, sources: Sources) -> list[Fault]:
    faults = check_expressions(node.arguments, place, Reader(node), sources)
    schema = sources.input_schema(node)
    if schema is None:
        return faults
    wildcards: dict[str, Wildcard] = {}
    values = {
        name: _literal(value, json_pointer(name), Reader(node), sources, wildcards)
        for name, value in node.arguments.items()
    }
    refused = check_values(values, schema, Place(place, node.id), wildcards)
    return _in_order(faults + refused, node, place)


def _in_order(faults: list[Fault], node: Node, place: str) -> list[Fault]:
    order = [place + json_pointer(name) for name in node.arguments]

    def position(fault: Fault) -> int:
        at = (n for n, start in enumerate(order) if f"{fault.pointer}/".startswith(f"{start}/"))
        return next(at, len(order))

    return sorted(faults, key=position)


def _literal(
    value: JsonValue, pointer: str, reader: Reader, sources: Sources, wildcards: dict[str, Wildcard]
) -> JsonValue:
    """Return a value as it will be sent, its data-bearing parts noted as wildcards."""
    parts = list(scan(value)) if isinstance(value, str) or is_selector(value) else []
    if is_selector(value) or any(isinstance(part, Unreadable) for part in parts):
        wildcards[pointer] = Wildcard(value)
        return value
    match value:
        case str() if parts:
            first = parts[0]
            whole = isinstance(first, Found) and first.whole
            source = sources.schema(first.reference, reader.node) if isinstance(first, Found) else None
            wildcards[pointer] = Wildcard(value, source if whole else {"type": "string"})
            return value
        case str():
            return resolve(value, Scope())
        case dict() if set(value) == {"$literal"}:
            return value["$literal"]
        case dict():
            return {
                key: _literal(item, pointer + json_pointer(key), reader, sources, wildcards)
                for key, item in value.items()
            }
        case list():
            return [_literal(v, f"{pointer}/{i}", reader, sources, wildcards) for i, v in enumerate(value)]
        case _:
            return value


def _check_for_each(node: Node, place: str, sources: Sources) -> list[Fault]:
    if node.for_each is None:
        return []
    if not _is_expression(node.for_each):
        message = "'for_each' is a reference or a selector that yields a list"
        return [Malformed(message=message, pointer=place, node=node.id)]
    faults = check_expressions(node.for_each, place, Reader(node, sees_item=False), sources)
    return faults or _check_type(node, node.for_each, {"type": "array"}, place, sources)


def _check_when(node: Node, place: str, sources: Sources) -> list[Fault]:
    if node.when is None or isinstance(node.when, bool):
        return []
    if not _is_expression(node.when):
        message = "'when' is a boolean, a reference or a selector"
        return [Malformed(message=message, pointer=place, node=node.id)]
    faults = check_expressions(node.when, place, Reader(node, sees_item=False), sources)
    return faults or _check_type(node, node.when, {"type": "boolean"}, place, sources)


def _is_expression(value: JsonValue) -> bool:
    return is_selector(value) or (isinstance(value, str) and value.startswith("$") and value[1:2] != "$")


def _check_type(
    node: Node, value: JsonValue, target: JsonSchema, place: str, sources: Sources
) -> list[Fault]:
    if not isinstance(value, str):
        return []
    try:
        source = sources.schema(parse_reference(value), node)
        fits = feeds(source, target)
    except (ExpressionError, SchemaRejected):
        return []  # told by `check_expressions`; a rejected schema declares nothing
    if fits is not False:
        return []
    message = f"{value} is {' or '.join(sorted(types(source or {})))}, not {target['type']}"
    return [InvalidArgument(message=message, node=node.id, pointer=place, expected=target, found=value)]


def _check_after(node: Node, place: str, workflow: Workflow) -> list[Fault]:
    available = tuple(other.id for other in workflow.nodes if other.id != node.id)
    return [
        DanglingReference(
            message=f"no node {other!r} to come after; there: {', '.join(available) or 'none'}",
            node=node.id,
            pointer=f"{place}/{index}",
            reference=other,
            available=available,
        )
        for index, other in enumerate(node.after)
        if workflow.node(other) is None
    ]

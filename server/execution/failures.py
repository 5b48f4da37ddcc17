"""From a failed call to faults at a place of the document.

The only mapping from `CallFailure` to `Fault`. A server's words are believed about an argument
only when the call had that argument, or its schema has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, assert_never

from catalog.canonical import JsonValue
from catalog.result import CallFailure, FailureKind
from catalog.tools import JsonSchema, ToolId
from server.execution.rejections import Rejection, parse_rejections
from skills_store.workflow.faults import (
    Denied,
    DisguisedError,
    Fault,
    InvalidArgument,
    MissingArgument,
    OutputSchemaMismatch,
    OverLimit,
    ServerUnavailableFault,
    TimeoutFault,
    ToolError,
    UnexpectedArgument,
    UnknownTool,
)
from skills_store.workflow.model import json_pointer

__all__ = ["Place", "PlannedCall", "faults_of"]


@dataclass(frozen=True, slots=True)
class Place:
    """A node of a document, or one item of it."""

    node: str
    index: int
    """Position among the document's nodes."""
    item: int | None = None

    def at(self, *parts: str | int) -> str:
        """Return the pointer of something inside the node."""
        return json_pointer("nodes", self.index, *parts)


class _Said(TypedDict):
    """What all faults share."""

    message: str
    node: str
    pointer: str
    item: int | None


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that was made, or would have been: which tool with what."""

    tool: ToolId
    input_schema: JsonSchema
    arguments: dict[str, JsonValue]

    @property
    def parameters(self) -> JsonSchema:
        """Schemas of the tool's arguments by name."""
        properties = self.input_schema.get("properties")
        return properties if isinstance(properties, dict) else {}

    def parameter(self, name: str | None) -> JsonSchema:
        """Return the schema of one argument, empty when the tool declares none."""
        schema = self.parameters.get(name) if name is not None else None
        return schema if isinstance(schema, dict) else {}


def faults_of(
    failure: CallFailure, call: PlannedCall, place: Place, *, needs_approval: bool = False
) -> list[Fault]:
    """Return the faults a failed call comes to: one, or one per argument the server named.

    Args:
        failure: what came of the call.
        call: what was sent.
        place: the node, and item, that sent it.
        needs_approval: whether consent would let a denied call run.
    """
    if failure.kind in (FailureKind.INVALID_ARGUMENT, FailureKind.TOOL_ERROR) and (
        named := _named_arguments(failure, call, place)
    ):
        return named
    return [_fault_of(failure, call, place, needs_approval=needs_approval)]


def _fault_of(failure: CallFailure, call: PlannedCall, place: Place, *, needs_approval: bool) -> Fault:
    said = _Said(message=failure.message, node=place.node, pointer=place.at(), item=place.item)
    match failure.kind:
        case FailureKind.UNKNOWN_TOOL:
            return UnknownTool(**_elsewhere(said, place.at("tool")), tool=call.tool)
        case FailureKind.INVALID_ARGUMENT:
            return InvalidArgument(**_elsewhere(said, place.at("arguments")))
        case FailureKind.TOOL_ERROR:
            return ToolError(**said, tool=call.tool)
        case FailureKind.DISGUISED_ERROR:
            return DisguisedError(**said, tool=call.tool)
        case FailureKind.OUTPUT_SCHEMA_MISMATCH:
            return OutputSchemaMismatch(**said, tool=call.tool)
        case FailureKind.OVER_LIMIT:
            return OverLimit(**said)
        case FailureKind.TIMEOUT:
            return TimeoutFault(**said, tool=call.tool)
        case FailureKind.SERVER_UNAVAILABLE:
            return ServerUnavailableFault(**said, tool=call.tool)
        case FailureKind.DENIED:
            return Denied(**said, tool=call.tool, arguments=call.arguments, needs_approval=needs_approval)
        case _:
            assert_never(failure.kind)


def _elsewhere(said: _Said, pointer: str) -> _Said:
    return {**said, "pointer": pointer}


def _named_arguments(failure: CallFailure, call: PlannedCall, place: Place) -> list[Fault]:
    rejections = parse_rejections(failure.message)
    return [_argument_fault(r, call, place) for r in rejections if _is_believable(r, call)]


def _is_believable(rejection: Rejection, call: PlannedCall) -> bool:
    if rejection.kind == "missing":
        return rejection.argument in call.parameters and rejection.argument not in call.arguments
    return rejection.argument in call.arguments


def _argument_fault(rejection: Rejection, call: PlannedCall, place: Place) -> Fault:
    name = rejection.argument
    pointer = place.at("arguments") if rejection.kind == "missing" else place.at("arguments", name)
    said = _Said(message=rejection.message, node=place.node, pointer=pointer, item=place.item)
    match rejection.kind:
        case "missing":
            return MissingArgument(**said, argument=name)
        case "unexpected":
            allowed = rejection.allowed or tuple(call.parameters)
            return UnexpectedArgument(**said, argument=name, allowed=allowed)
        case "invalid":
            found = call.arguments[name]
            return InvalidArgument(**said, argument=name, expected=call.parameter(name), found=found)

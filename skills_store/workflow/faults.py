"""Faults: what is wrong with a workflow or its run, typed, with the place.

World faults (`timeout`, `server_unavailable`) say nothing about the workflow: they never lower
a utility and never become experience. `denied` says nothing either, but no retry mends it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from catalog.tools import ToolId

__all__ = [
    "CheckFailed",
    "Cycle",
    "DanglingReference",
    "Denied",
    "DisguisedError",
    "Evidence",
    "Fault",
    "FaultBase",
    "InvalidArgument",
    "Malformed",
    "MissingArgument",
    "MissingOutput",
    "OutputSchemaMismatch",
    "OverLimit",
    "PostconditionFailed",
    "ServerUnavailableFault",
    "TimeoutFault",
    "ToolError",
    "UnexpectedArgument",
    "UnknownTool",
    "fault_adapter",
]

Evidence = Literal["workflow", "world", "policy"]


class FaultBase(BaseModel):
    """What all faults share. `pointer` is an RFC 6901 pointer from the document root."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    evidence: ClassVar[Evidence] = "workflow"

    message: str
    node: str | None = None
    """Id of the node, None when the fault is the document's."""
    pointer: str = ""
    item: int | None = None
    """Index of the `for_each` item, None outside of a mapped node."""


class Malformed(FaultBase):
    """A field, reference, template, selector or assertion that cannot be read."""

    kind: Literal["malformed"] = "malformed"


class UnknownTool(FaultBase):
    """No such tool in the snapshot, or the server says so."""

    kind: Literal["unknown_tool"] = "unknown_tool"
    tool: ToolId
    similar: tuple[ToolId, ...] = ()


class MissingArgument(FaultBase):
    """A required argument is not given."""

    kind: Literal["missing_argument"] = "missing_argument"
    argument: str


class UnexpectedArgument(FaultBase):
    """An argument the tool's schema does not have."""

    kind: Literal["unexpected_argument"] = "unexpected_argument"
    argument: str
    allowed: tuple[str, ...] = ()


class InvalidArgument(FaultBase):
    """An argument that its schema, or the server, refuses. `expected` is the schema it fails."""

    kind: Literal["invalid_argument"] = "invalid_argument"
    argument: str | None = None
    """Top-level argument name, None when a server refused the call without naming one."""
    expected: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    found: JsonValue = None


class DanglingReference(FaultBase):
    """A reference to nothing. `available` lists what is there: nodes, inputs or keys."""

    kind: Literal["dangling_reference"] = "dangling_reference"
    reference: str
    available: tuple[str, ...] = ()


class MissingOutput(FaultBase):
    """A declared output of the workflow could not be produced."""

    kind: Literal["missing_output"] = "missing_output"
    output: str
    available: tuple[str, ...] = ()


class Cycle(FaultBase):
    """Nodes that wait for each other."""

    kind: Literal["cycle"] = "cycle"
    nodes: tuple[str, ...] = ()


class OverLimit(FaultBase):
    """A bound of the engine was passed; the message names it."""

    kind: Literal["over_limit"] = "over_limit"


class ToolError(FaultBase):
    """The tool says it failed."""

    kind: Literal["tool_error"] = "tool_error"
    tool: ToolId


class DisguisedError(FaultBase):
    """The tool says it succeeded and its answer says it failed."""

    kind: Literal["disguised_error"] = "disguised_error"
    tool: ToolId


class OutputSchemaMismatch(FaultBase):
    """The result does not fit the tool's declared output schema."""

    kind: Literal["output_schema_mismatch"] = "output_schema_mismatch"
    tool: ToolId


class PostconditionFailed(FaultBase):
    """An `expect` of a node or of the workflow does not hold."""

    kind: Literal["postcondition_failed"] = "postcondition_failed"
    found: JsonValue = None


class TimeoutFault(FaultBase):
    """The upstream did not answer in time."""

    kind: Literal["timeout"] = "timeout"
    evidence: ClassVar[Evidence] = "world"
    tool: ToolId


class ServerUnavailableFault(FaultBase):
    """The upstream is not reachable."""

    kind: Literal["server_unavailable"] = "server_unavailable"
    evidence: ClassVar[Evidence] = "world"
    tool: ToolId


class Denied(FaultBase):
    """The effect policy or a person did not let a call happen."""

    kind: Literal["denied"] = "denied"
    evidence: ClassVar[Evidence] = "policy"
    tool: ToolId
    arguments: JsonValue = None
    needs_approval: bool = False
    """Whether consent would let it run."""


class CheckFailed(FaultBase):
    """The caller's assertion or schema does not hold. `found` is what was there."""

    kind: Literal["check_failed"] = "check_failed"
    found: JsonValue = None


Fault = Annotated[
    Malformed
    | UnknownTool
    | MissingArgument
    | UnexpectedArgument
    | InvalidArgument
    | DanglingReference
    | MissingOutput
    | Cycle
    | OverLimit
    | ToolError
    | DisguisedError
    | OutputSchemaMismatch
    | PostconditionFailed
    | TimeoutFault
    | ServerUnavailableFault
    | Denied
    | CheckFailed,
    Field(discriminator="kind"),
]

fault_adapter: TypeAdapter[Fault] = TypeAdapter(Fault, config=ConfigDict(defer_build=True))

"""Says in words what would mend a fault, for the model that called a tool."""

from __future__ import annotations

from typing import assert_never

from skills_store.workflow.faults import (
    CheckFailed,
    Cycle,
    DanglingReference,
    Denied,
    DisguisedError,
    Fault,
    InvalidArgument,
    Malformed,
    MissingArgument,
    MissingOutput,
    OutputSchemaMismatch,
    OverLimit,
    PostconditionFailed,
    ServerUnavailableFault,
    TimeoutFault,
    ToolError,
    UnexpectedArgument,
    UnknownTool,
)

__all__ = ["remedy", "render_fault"]


def render_fault(fault: Fault) -> str:
    """Return one line: the kind, the place, what happened, and what would mend it."""
    node = f" in node {fault.node}" if fault.node else ""
    item = f", item {fault.item}" if fault.item is not None else ""
    place = f" at {fault.pointer}" if fault.pointer else ""
    return f"{fault.kind}{node}{item}{place}: {fault.message.rstrip('. ')}. {remedy(fault)}"


def remedy(fault: Fault) -> str:
    """Return what the caller can do about a fault."""
    match fault:
        case Malformed():
            return "Correct the document there."
        case UnknownTool():
            similar = f"Perhaps {_listed(fault.similar)}. " if fault.similar else ""
            return f"{similar}find_tools lists what there is."
        case MissingArgument():
            return f"Give {fault.argument!r}."
        case UnexpectedArgument():
            return f"Allowed are: {_listed(fault.allowed)}." if fault.allowed else "Leave it out."
        case InvalidArgument():
            return "Give a value that its schema allows."
        case DanglingReference() | MissingOutput():
            return f"There is: {_listed(fault.available)}." if fault.available else "Refer to something else."
        case Cycle():
            return f"Break the circle of {_listed(fault.nodes)}."
        case OverLimit():
            return "Ask for less at a time."
        case ToolError() | DisguisedError() | OutputSchemaMismatch():
            return f"Try {fault.tool} alone with call_tool, or mend the workflow with repair_workflow."
        case PostconditionFailed() | CheckFailed():
            return "The answer is not what was asked for: repair_workflow can search for a workflow that is."
        case TimeoutFault():
            return "Nothing is wrong with the request: try again later, or allow more timeout_seconds."
        case ServerUnavailableFault():
            return f"Nothing is wrong with the request: tool server {fault.tool.server} must be up first."
        case Denied():
            return _remedy_of_denial(fault)
        case _:
            assert_never(fault)


def _remedy_of_denial(fault: Denied) -> str:
    if not fault.needs_approval:
        return "It is not repeated, since it may change something each time."
    by_hand = f"`skillbank effects approve {fault.tool}` or `skillbank effects set {fault.tool} CLASS`"
    return f"The user must allow it: when asked, or by {by_hand}."


def _listed(things: tuple[object, ...]) -> str:
    return ", ".join(str(thing) for thing in things)

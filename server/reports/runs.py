"""What checking and running a workflow answer, as data, and the exit code of it."""

from __future__ import annotations

from pydantic import JsonValue

from catalog.effects import Effect
from catalog.tools import ToolId
from server.reports.base import Report
from skills_store.trace import Status, Step, Verification
from skills_store.workflow.faults import Fault

__all__ = ["CheckReport", "NotRepeated", "RunReport", "exit_code"]


class CheckReport(Report):
    """Answer of `check`: every static fault with its place."""

    faults: tuple[Fault, ...]
    warnings: tuple[str, ...] = ()


class NotRepeated(Report):
    """A call that was held back, with the rule and how to allow it."""

    node: str | None
    tool: ToolId
    effect: Effect
    reason: str
    allow: str
    """The command that would allow it."""


class RunReport(Report):
    """Answer of `run`."""

    status: Status
    outputs: dict[str, JsonValue] | None
    faults: tuple[Fault, ...] = ()
    calls: int = 0
    seconds: float = 0.0
    trace: tuple[Step, ...] = ()
    trace_id: str | None = None
    not_repeated: tuple[NotRepeated, ...] = ()
    verifications: tuple[Verification, ...] = ()


def exit_code(status: Status, faults: tuple[Fault, ...] = ()) -> int:
    """Return the process exit code of a status (`CONTRACTS`, Statuses and exits)."""
    match status:
        case "verified" | "succeeded":
            return 0
        case "needs_approval":
            return 3
        case "cancelled":
            return 130
        case "failed" | "unverified":
            only_world = bool(faults) and all(fault.evidence == "world" for fault in faults)
            return 4 if only_world else 1

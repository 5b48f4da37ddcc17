"""Remembered approvals: a person's lasting word that a tool which is not free may run.

An approval holds for one tool as it was then, and, where it names arguments, for calls whose
arguments fit. The operator's own standing consents are in the configuration (`allow`); both are
listed and revoked in one place, the command line's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from threading import RLock
from typing import Protocol

from pydantic import BaseModel, ConfigDict, JsonValue

from catalog.canonical import digest
from catalog.tools import ToolId

__all__ = ["Approval", "ApprovalStore", "MemoryApprovals", "approval_for", "exact_pattern"]

Arguments = Mapping[str, JsonValue]


class Approval(BaseModel):
    """That calls of one tool may run without asking again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    tool: ToolId
    arguments: dict[str, JsonValue] | None = None
    """What named arguments must be, texts as glob patterns; None: whatever they are.

    A call with an argument that is not named here does not fit.
    """
    contract_hash: str = ""
    """Of the tool when it was given; a tool that changed is asked about again. Empty: of any."""
    given_at: float
    """Unix seconds."""

    @classmethod
    def of(cls, tool: ToolId, arguments: Arguments | None, contract_hash: str, given_at: float) -> Approval:
        """Return the approval with the id that its content gives it."""
        patterns = None if arguments is None else dict(arguments)
        identity = digest({"server": tool.server, "tool": tool.tool, "arguments": patterns})
        return cls(
            id=identity.removeprefix("sha256:")[:12],
            tool=tool,
            arguments=patterns,
            contract_hash=contract_hash,
            given_at=given_at,
        )

    def covers(self, tool: ToolId, arguments: Arguments, contract_hash: str) -> bool:
        """Return whether a call is one that was approved."""
        if tool != self.tool or self.contract_hash not in ("", contract_hash):
            return False
        if self.arguments is None:
            return True
        known = self.arguments
        return all(name in arguments for name in known) and all(
            name in known and _fits(known[name], value) for name, value in arguments.items()
        )


class ApprovalStore(Protocol):
    """The approvals of one principal."""

    def add(self, approval: Approval) -> None:
        """Keep an approval in place of an equal one."""
        ...

    def approvals(self) -> list[Approval]:
        """Return all that are kept, ordered by tool and id."""
        ...

    def revoke(self, approval_id: str) -> bool:
        """Forget one; False where there is none of this id."""
        ...


def approval_for(
    approvals: Iterable[Approval], tool: ToolId, arguments: Arguments, contract_hash: str
) -> Approval | None:
    """Return an approval that covers a call, None where none does."""
    return next((a for a in approvals if a.covers(tool, arguments, contract_hash)), None)


def exact_pattern(arguments: Arguments) -> dict[str, JsonValue]:
    """Return the pattern that only these arguments fit."""
    return {name: _escaped(value) if isinstance(value, str) else value for name, value in arguments.items()}


def _escaped(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)


def _fits(pattern: JsonValue, value: JsonValue) -> bool:
    if isinstance(pattern, str) and isinstance(value, str):
        return fnmatchcase(value, pattern)
    return digest(pattern) == digest(value)


class MemoryApprovals:
    """Approvals that live as long as their process."""

    def __init__(self) -> None:
        self._kept: dict[str, Approval] = {}
        self._lock = RLock()

    def add(self, approval: Approval) -> None:
        with self._lock:
            self._kept[approval.id] = approval

    def approvals(self) -> list[Approval]:
        with self._lock:
            return sorted(self._kept.values(), key=lambda kept: (kept.tool, kept.id))

    def revoke(self, approval_id: str) -> bool:
        with self._lock:
            return self._kept.pop(approval_id, None) is not None

"""What one call of an exploration was for, and what came of it: values only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from catalog.canonical import digest
from catalog.result import CallFailure, CallOutcome, CallSuccess
from catalog.tools import Tool

__all__ = ["Observation", "Origin", "Probe", "ProbeKind", "error_class", "state_now", "states"]

ProbeKind = Literal[
    "typical",
    "again",
    "enum",
    "boundary",
    "chained",
    "after_change",
    "proposed",
    "missing_argument",
    "wrong_type",
    "unknown_argument",
    "outside_enum",
    "outside_bounds",
]
"""Why a call is made. The last five break the tool's own schema on purpose."""

_BREAKING: frozenset[str] = frozenset(
    {"missing_argument", "wrong_type", "unknown_argument", "outside_enum", "outside_bounds"}
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the value of an argument came from: a place in the answer of an earlier observation."""

    observation: int
    """Number of the earlier one in its session."""
    pointer: str
    """Into its node output."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One call that is to be made."""

    tool: Tool
    arguments: dict[str, JsonValue]
    kind: ProbeKind
    about: str = ""
    """The argument that the call is about, empty for the whole."""
    origins: dict[str, Origin] = field(default_factory=dict[str, Origin])
    """By argument: those whose value an earlier answer gave."""

    @property
    def breaks_schema(self) -> bool:
        """Whether the tool's own schema does not allow these arguments."""
        return self.kind in _BREAKING

    @property
    def key(self) -> str:
        """Identity of the action: equal calls of a tool are one."""
        return f"{self.tool.id.tool} {digest(self.arguments)}"


@dataclass(frozen=True, slots=True)
class Observation:
    """One call that was made, and its answer."""

    number: int
    """Order within the exploration, from 0."""
    session: int
    """Which process answered it; state is shared within one only."""
    probe: Probe
    outcome: CallOutcome

    @property
    def succeeded(self) -> bool:
        return isinstance(self.outcome, CallSuccess)

    @property
    def output(self) -> JsonValue:
        """Node output of a success, None of a failure."""
        return self.outcome.output if isinstance(self.outcome, CallSuccess) else None

    @property
    def failure(self) -> CallFailure | None:
        return self.outcome if isinstance(self.outcome, CallFailure) else None


def states(observations: Iterable[Observation], changing: Set[str]) -> list[str]:
    """Return the state in which each call was made: the changes its process had been through, empty if fresh.

    Args:
        observations: in order.
        changing: names of the tools that may change what later calls answer.
    """
    been_through: dict[int, str] = {}
    found: list[str] = []
    for call in observations:
        state = been_through.get(call.session, "")
        found.append(state)
        if call.succeeded and call.probe.tool.id.tool in changing:
            been_through[call.session] = digest([state, call.probe.key])
    return found


def state_now(observations: Sequence[Observation], changing: Set[str], session: int) -> str:
    """Return the state of a process: of the one that runs, what a next call would be made in."""
    of_process = [call for call in observations if call.session == session]
    if not of_process:
        return ""
    last, state = of_process[-1], states(of_process, changing)[-1]
    changed = last.succeeded and last.probe.tool.id.tool in changing
    return digest([state, last.probe.key]) if changed else state


def error_class(observation: Observation) -> str | None:
    """Return the class of a failed call for the coverage table, None of a success."""
    return None if observation.failure is None else observation.failure.kind.value

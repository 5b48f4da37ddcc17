"""How one upstream is doing, as a value: what `doctor` and the `catalog://` resource show of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from catalog.circuit import CircuitState
from catalog.connection import Connection, Status
from catalog.era import Era
from catalog.tools import Tool
from catalog.upstream import Upstream

__all__ = ["ConnectionReport", "report_of"]


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """How one upstream is doing."""

    name: str
    status: Status | Literal["disabled"]
    transport: str
    era: Era | None
    """None while unknown."""
    tools: tuple[Tool, ...]
    """As last listed."""
    seconds: float | None
    """Of its last successful start, None before one."""
    problems: tuple[str, ...]
    circuit: CircuitState = "closed"
    """Whether calls are sent: `open` they fail at once, `half_open` one is tried."""
    retry_seconds: float | None = None
    """How long until it is tried again, None while the circuit is closed."""
    calls_under_way: int = 0
    quarantined: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tools it lists that are never called, with the reason."""

    @property
    def findings(self) -> tuple[str, ...]:
        """Everything that is wrong with it, quarantined tools too, as sentences."""
        left_out = (f"tool {name!r} is quarantined: {reason}" for name, reason in self.quarantined.items())
        return (*self.problems, *left_out)


def report_of(upstream: Upstream, connection: Connection | None) -> ConnectionReport:
    """Return how an upstream is doing.

    Args:
        upstream: as configured.
        connection: the shared one to it; None where it is disabled.
    """
    if connection is None:
        return ConnectionReport(upstream.name, "disabled", upstream.kind, None, (), None, ())
    return ConnectionReport(
        upstream.name,
        connection.status,
        upstream.kind,
        connection.era,
        connection.tools,
        connection.seconds_to_start,
        tuple(connection.problems),
        connection.circuit,
        connection.retry_seconds,
        connection.calls_under_way,
        connection.quarantined,
    )

"""Fresh processes of resettable servers, started ahead of the run that will need one."""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog.connection import Connection
from catalog.effects import Reset

__all__ = ["Spares"]


@dataclass
class Spares:
    """At most one process per server and reset mode, started ahead and never called."""

    enabled: bool
    _waiting: dict[tuple[str, Reset], Connection] = field(default_factory=dict[tuple[str, Reset], Connection])

    def take(self, server: str, reset: Reset) -> Connection | None:
        """Return the spare process of a server, if one is waiting and still alive."""
        spare = self._waiting.pop((server, reset), None)
        return spare if spare is not None and spare.status in ("starting", "ready") else None

    def wants(self, server: str, reset: Reset) -> bool:
        """Return whether one should be started ahead."""
        return self.enabled and (server, reset) not in self._waiting

    def put(self, server: str, reset: Reset, connection: Connection) -> None:
        """Start a fresh process and keep it waiting."""
        connection.start()
        self._waiting[server, reset] = connection

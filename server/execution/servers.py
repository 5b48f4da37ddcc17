"""What execution needs of the catalog's connections: a shared one per server, and fresh ones."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from catalog.canonical import JsonValue
from catalog.result import CallOutcome
from catalog.tools import ToolId

__all__ = ["ServerProcess", "ToolServers"]


class ServerProcess(Protocol):
    """One live connection to a tool server. Calling it never raises for upstream trouble."""

    async def call(
        self, tool: str, arguments: dict[str, JsonValue], *, timeout_seconds: float
    ) -> CallOutcome:
        """Return the outcome of one call."""
        ...


class ToolServers(Protocol):
    """All configured tool servers."""

    async def call(
        self, tool: ToolId, arguments: dict[str, JsonValue], *, timeout_seconds: float | None = None
    ) -> CallOutcome:
        """Return the outcome of one call on the shared connection; never raises for its trouble."""
        ...

    def isolated(self, server: str) -> AbstractAsyncContextManager[ServerProcess]:
        """Open a fresh process of a server, gone when the context is left.

        Raises:
            CatalogError: it cannot be started.
        """
        ...

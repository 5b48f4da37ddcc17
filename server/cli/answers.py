"""What `add` and `init` answer, as data: the stable keys of their `--json`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from catalog.effects import Reset
from server.reports import ToolEffect

__all__ = ["AddedServer", "InitReport", "PlannedImport", "SkippedImport"]


class AddedServer(BaseModel):
    """Answer of `add`, and per server of `init`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: str
    tools: tuple[str, ...]
    effects: tuple[ToolEffect, ...]
    """As kept; where nothing was kept, as proposed."""
    reset: Reset
    kept: bool
    """Whether classes and reset mode are in the configuration; else every tool is unknown."""
    written: bool
    """Whether the server is in the configuration."""
    problems: tuple[str, ...] = ()


class PlannedImport(BaseModel):
    """A server that would be taken over."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: str
    starts: str
    """The command line or address, placeholders as written."""
    file: str


class SkippedImport(BaseModel):
    """A server, or a whole file where `server` is None, that was not taken over."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: str | None
    file: str
    reason: str


class InitReport(BaseModel):
    """Answer of `init`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    planned: tuple[PlannedImport, ...]
    imported: tuple[AddedServer, ...]
    """Empty where it was not approved."""
    skipped: tuple[SkippedImport, ...]
    config: str

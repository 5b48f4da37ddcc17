"""What the commands on servers answer, as data: the stable keys of their `--json`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from catalog.effects import Reset
from server.reports import ToolEffect

__all__ = [
    "AddedServer",
    "InitReport",
    "InputReport",
    "InputsReport",
    "InstallReport",
    "LoginReport",
    "LogoutReport",
    "PlannedImport",
    "ResetCheckReport",
    "SkippedImport",
]


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


class InstallReport(BaseModel):
    """Answer of `install`: what becomes of a client's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    client: str
    file: str
    diff: str
    """The change; empty where the file has it already."""
    written: bool
    kept: str | None = None
    """Where the file as it was is kept, None where there was none or nothing was written."""


class PlannedImport(BaseModel):
    """A server that would be taken over."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: str
    starts: str
    """The command line or address, placeholders as written."""
    file: str
    asks: tuple[str, ...] = ()
    """Inputs it needs an answer to."""


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


class InputReport(BaseModel):
    """One input that servers ask for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    kind: str
    description: str
    password: bool
    servers: tuple[str, ...]
    """Those that name it."""
    answered: bool


class InputsReport(BaseModel):
    """Answer of `inputs list`, `inputs set` and `inputs forget`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    inputs: tuple[InputReport, ...]
    kept_in: str
    """Where answers are kept."""


class LoginReport(BaseModel):
    """Answer of `login`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: str
    status: Literal["logged_in", "already", "open"]
    """`already`: an earlier login still counts; `open`: the server lets anybody in."""
    scopes: tuple[str, ...]
    kept_in: str | None
    """Where the tokens are kept."""


class LogoutReport(BaseModel):
    """Answer of `logout`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: str
    was_logged_in: bool
    revoked: bool
    """Whether the server took its tokens back, too."""


class ResetCheckReport(BaseModel):
    """Answer of `effects verify`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: str
    mode: Reset
    verdict: Literal["holds", "refuted", "undecided"]
    why: str
    on: str
    """Date, as YYYY-MM-DD."""
    withdrawn: bool
    """Whether the mode was configured and no longer is."""

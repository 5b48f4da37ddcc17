"""What the bank answers on effects, labels and approvals, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from catalog.effects import Effect, Reset
from catalog.labels import Label
from server.reports.base import Report

__all__ = ["ApprovalReport", "ApprovalsReport", "EffectsReport", "LabelsReport", "ToolEffect", "ToolLabels"]


class ApprovalReport(Report):
    """One standing consent to calls that are not free."""

    id: str
    """What revokes it: SERVER/TOOL of the configuration, else the id of a remembered one."""
    server: str
    tool: str
    """A name, or a pattern of the configuration."""
    arguments: dict[str, JsonValue] | None = None
    """Patterns that the arguments must fit, None: whatever they are."""
    source: Literal["configuration", "remembered"]
    given_at: float | None = None
    """Unix seconds, None where nobody knows."""
    holds: bool = True
    """False where the tool has changed since, so that it is asked about again."""


class ApprovalsReport(Report):
    """Answer of `effects approvals`, `effects approve` and `effects revoke`."""

    approvals: tuple[ApprovalReport, ...]


class ToolEffect(Report):
    """The effect class of one tool and where it comes from."""

    server: str
    tool: str
    effect: Effect
    reason: str


class EffectsReport(Report):
    """Answer of `effects list` and the proposal of `add` and `init`."""

    effects: tuple[ToolEffect, ...]
    reset: dict[str, Reset] = Field(default_factory=dict[str, Reset])
    reset_checks: dict[str, str] = Field(default_factory=dict[str, str])
    """By server: what came of the last trial of its reset mode, in a sentence."""


class ToolLabels(Report):
    """What one tool does with information."""

    server: str
    tool: str
    labels: dict[Label, str]
    """Each with what it follows from; empty: no flow to or from it is looked at."""


class LabelsReport(Report):
    """Answer of `effects labels`, ordered by server and tool."""

    tools: tuple[ToolLabels, ...]
    flows: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """Granted flows: for a source, the sinks its data may go to."""

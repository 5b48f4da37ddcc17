"""What the bank answers on recorded calls, as data."""

from __future__ import annotations

from pydantic import JsonValue

from server.reports.base import Report

__all__ = ["RecordedCallReport", "RecordingReport", "RecordingsReport"]


class RecordedCallReport(Report):
    """One relayed call of a conversation."""

    number: int
    tool: str
    arguments: dict[str, JsonValue]
    outcome: str
    detail: str = ""
    """What failed; empty where nothing did."""
    trace_id: str
    seconds: float


class RecordingReport(Report):
    """One conversation whose calls were kept, as `record list` and `record show` tell it."""

    name: str
    calls: int
    started_at: float
    """Unix seconds, of its first call."""
    last_at: float
    """Unix seconds, of its last call."""
    steps: tuple[RecordedCallReport, ...] = ()
    """Empty in a listing."""


class RecordingsReport(Report):
    """Answer of `record list`, the newest first."""

    recordings: tuple[RecordingReport, ...]

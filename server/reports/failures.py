"""What a command answers that was not carried out, as data: the stable keys of an error."""

from __future__ import annotations

from server.reports.base import Report

__all__ = ["ErrorDetail", "ErrorReport"]


class ErrorDetail(Report):
    """Why a command could not be carried out."""

    kind: str
    message: str
    pointer: str | None = None


class ErrorReport(Report):
    """`{"error": {"kind", "message", "pointer"?}}`."""

    error: ErrorDetail

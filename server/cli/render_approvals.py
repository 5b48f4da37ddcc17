"""Draws standing consents for a person."""

from __future__ import annotations

import json
from datetime import datetime

from rich.console import Console
from rich.table import Table

from catalog.plain_text import plain_text
from server.reports import ApprovalReport, ApprovalsReport

__all__ = ["render_approvals"]


def render_approvals(console: Console, report: ApprovalsReport) -> None:
    """Draw a line for each consent with what revokes it."""
    if not report.approvals:
        console.print("nothing that is not free runs without asking")
        return
    table = Table("revoke by", "tool", "arguments", "from")
    for approval in report.approvals:
        shown = "any" if approval.arguments is None else json.dumps(approval.arguments)
        table.add_row(
            approval.id,
            plain_text(f"{approval.server}/{approval.tool}"),
            plain_text(shown),
            _source(approval),
        )
    console.print(table)


def _source(approval: ApprovalReport) -> str:
    if approval.given_at is None:
        return approval.source
    day = datetime.fromtimestamp(approval.given_at).date().isoformat()
    return f"{approval.source} on {day}" + ("" if approval.holds else "; the tool changed: asked again")

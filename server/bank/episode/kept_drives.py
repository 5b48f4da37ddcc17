"""Drives of a bank, kept as they were answered, so that models can be trained on them later."""

from __future__ import annotations

from server.bank.context import Context
from server.reports import RepairReport
from server.training.from_drives import run_of
from server.training.secrets import redacted_report
from skills_store.drives import KeptDrive

__all__ = ["keep_drive"]


def keep_drive(report: RepairReport, context: Context) -> None:
    """Keep the report of a drive without its secrets; one in which the model said nothing is not kept."""
    if report.drive is None or not report.drive.snapshots:
        return
    clean = redacted_report(report, context.redact)
    name = run_of(clean.drive.snapshots if clean.drive is not None else ())
    kept = KeptDrive(id=name, at=context.clock(), report=clean.model_dump(mode="json"))
    context.store.drives(context.principal).add(kept)

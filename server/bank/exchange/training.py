"""Training data out of the bank: its runs, beside files of searches and drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread

from catalog.tools import Snapshot
from server.bank.context import Context
from server.bank.exchange.attributing import Attribution, attributed
from server.reports import RepairReport
from server.training.episode import Episode
from server.training.export import Exported, ExportOptions, export_episodes
from server.training.from_drives import episodes_of_drive, read_drive
from server.training.from_traces import Seen, episodes_of, read_record

__all__ = ["TrainingRequest", "export_training"]


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """What is exported, beside the runs that the bank keeps."""

    options: ExportOptions = field(default_factory=ExportOptions)
    records: Sequence[Path] = ()
    """Records of searches."""
    drives: Sequence[Path] = ()
    """Reports of driven models."""
    traces: int = 10_000
    """Newest runs of the bank, and newest drives, that are looked at; 0: none."""
    attribution: Attribution = "execution"
    """Whose labels the steps of runs have where it has some."""


async def export_training(request: TrainingRequest, context: Context) -> Exported:
    """Return the files of an export; no tool is called and no server is started.

    Raises:
        TrainingError: a file cannot be read, or there is nothing to export.
        BackendError: a judge is wanted and cannot be asked.
    """
    traces = context.store.traces(request.traces) if request.traces else []
    recorded = await anyio.to_thread.run_sync(_recorded, request.records)
    # A record names who made each candidate, so it wins over the same run in the store.
    seen = await attributed([*map(Seen, traces), *recorded], request.attribution, context)
    return await anyio.to_thread.run_sync(_exported, seen, request, context, context.store.snapshot())


def _recorded(paths: Sequence[Path]) -> list[Seen]:
    return [one for path in paths for one in read_record(path)]


def _exported(seen: list[Seen], request: TrainingRequest, context: Context, snapshot: Snapshot) -> Exported:
    episodes = episodes_of(seen, snapshot)
    episodes += _driven(request, context)
    return export_episodes(episodes, request.options, context.redact)


def _driven(request: TrainingRequest, context: Context) -> list[Episode]:
    """Return the episodes of the drives in the bank and in files, each drive once."""
    kept = context.store.drives(context.principal).drives(request.traces)
    found: dict[str, Episode] = {}
    for drive in kept:
        report = RepairReport.model_validate(drive.report)
        found |= {one.id: one for one in episodes_of_drive(report, at=drive.at)}
    for path in request.drives:
        found |= {one.id: one for one in episodes_of_drive(read_drive(path), path.name)}
    return list(found.values())

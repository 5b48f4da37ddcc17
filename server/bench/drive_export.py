"""The export part of the drive benchmark: drives of a bank as training data, read by the trainers it is for.

A few more tasks are driven, each right, wrong, and with experience told, so that every format has rows. What
the model says is scripted; the calls are real. A tiny random model then takes a step on each file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio.to_thread

from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.bank import Bank
from server.bank.exchange.training import TrainingRequest
from server.bench.drive_context import Drives
from server.bench.drive_report import ExportedFile, ExportMeasure
from server.driving.options import DriveOptions
from server.progress import Progress, ProgressListener
from server.requests import Budget, SolveRequest
from server.training.episode import Episode
from server.training.errors import TrainerUnusable
from server.training.export import Exported, ExportOptions
from server.training.launching import ExportCheck, Trainer, TrainOptions, check_export, rows_file, train
from server.verification import Checks

__all__ = ["measure_export"]

_WORDS = ("milk", "bread", "salt")
_EXPERIENCE = "SHA-256 is a tool of its own; MD5 gives another digest."
_BUDGET = Budget(seconds=60, calls=10, candidates=1, tokens=100_000)
_TRAINERS: tuple[Trainer, ...] = ("sft", "dpo", "grpo")


@dataclass(frozen=True, slots=True)
class _Checked:
    """What the trainer's Python found; both empty where it has no trainer."""

    check: ExportCheck | None = None
    steps: dict[str, str] = field(default_factory=dict[str, str])
    """How one step went, by file."""


async def measure_export(
    drives: Drives, python: Path | None, quick: bool, listener: ProgressListener
) -> ExportMeasure:
    """Return what trainers make of an export of the bank's drives.

    Args:
        drives: whose drives are exported.
        python: the interpreter that has the trainer's packages; None: this one.
        quick: whether no step is taken.
        listener: told what is going on.

    Raises:
        TrainerUnusable: a file cannot be read or learned from.
    """
    for word in _WORDS:
        for tool in ("hash_sha256", "hash_md5"):
            for experiences in ((), (_EXPERIENCE,)):
                await _drive(drives.bank, word, tool, experiences)
    options = ExportOptions(("episodes", "sft", "dpo", "grpo"), test_share=0.0)
    exported = await drives.bank.export_training(TrainingRequest(options))
    listener(Progress("bench", f"export: {exported.report.episodes} episodes"))
    with TemporaryDirectory(prefix="skillbank-bench-") as made:
        data = Path(made) / "data"
        for path, content in exported.files.items():
            (data / path).parent.mkdir(parents=True, exist_ok=True)
            (data / path).write_bytes(content)
        checked = await anyio.to_thread.run_sync(partial(_checked, data, python, quick))
    return _measure(exported, checked)


async def _drive(bank: Bank, word: str, tool: str, experiences: tuple[str, ...]) -> None:
    said = (
        {"tool": tool, "arguments": {"data": word}},
        {"tool": "finish", "arguments": {"digest": "$r1#/result"}},
    )
    backend = ScriptedBackend([json.dumps(one) for one in said], name="scripted:export")
    digest = hashlib.sha256(word.encode()).hexdigest()
    request = SolveRequest(
        checks=Checks((f"output.digest == '{digest}'",)),
        budget=_BUDGET,
        drive=DriveOptions(steps=2),
        experiences=experiences,
    )
    used = Bank(replace(bank.context, models=with_backend(backend)))
    await used.solve(f"Compute the SHA-256 hash of '{word}'. Output: digest.", request)


def _checked(data: Path, python: Path | None, quick: bool) -> _Checked:
    try:
        check = check_export(data, data.with_name("model"), python, _ignore)
    except TrainerUnusable as error:
        if "is not installed" in str(error):
            return _Checked()
        raise
    return _Checked(check, dict(_step(trainer, data, python) for trainer in (() if quick else _TRAINERS)))


def _step(trainer: Trainer, data: Path, python: Path | None) -> tuple[str, str]:
    """Take one step on the rows of a trainer; return the file and what came of it."""
    rows = rows_file(data, trainer)
    options = TrainOptions(
        trainer, data.with_name("model"), data.with_name(trainer), 1, batch=2, max_length=8_192
    )
    report = train(rows, options, python, _ignore)
    loss = report.losses[0]["loss"] if report.losses else "none"
    return rows.relative_to(data).as_posix(), f"loss {loss}"


def _ignore(line: str) -> None:
    del line


def _measure(exported: Exported, checked: _Checked) -> ExportMeasure:
    check = checked.check
    episodes = [Episode.model_validate_json(one) for one in exported.files["episodes.jsonl"].splitlines()]
    files = tuple(
        ExportedFile(
            file=path,
            rows=count,
            loaded=check.loaded.get(path, 0) if check is not None else 0,
            trained=checked.steps.get(path, ""),
        )
        for path, count in exported.report.rows.items()
    )
    return ExportMeasure(
        drives=len({one.provenance.id for one in episodes if one.provenance.source == "drive"}),
        episodes=len(episodes),
        files=files,
        template=check.template if check is not None else "",
        mask_rows=check.rows if check is not None else 0,
        mask_tokens=check.tokens if check is not None else 0,
        mask_learned=check.learned if check is not None else 0,
        mask_differences=check.differences if check is not None else 0,
        null_arguments=check.null_arguments if check is not None else 0,
        checked_by=check.versions if check is not None else "",
    )

"""An export as files: episodes first, every other format from them, and the card.

Pure: what was seen comes in, named bytes go out. Where they are put belongs to `server.cli.training`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, JsonValue

from catalog.canonical import JsonValue as CanonicalValue
from server.attribution.advantage import ALPHA
from server.training.card import render_card
from server.training.credit import credited
from server.training.episode import Episode
from server.training.errors import NothingToExport, TrainerUnusable
from server.training.formats import FORMATS, Row, verl_rows, verl_sft_rows
from server.training.grouping import split_of
from server.training.parquet import parquet_bytes
from server.training.secrets import Redact, redacted

__all__ = ["EXPORT_FORMATS", "ExportFormat", "ExportOptions", "Exported", "TrainingReport", "export_episodes"]

ExportFormat = Literal["episodes", "sft", "dpo", "grpo", "verl"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
_SPLITS = ("train", "test")


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What is written, and how credit and splits are made."""

    formats: tuple[ExportFormat, ...] = ("episodes", "sft", "dpo", "grpo")
    alpha: float = ALPHA
    test_share: float = 0.1
    """Part of the families that is kept for testing."""
    licences: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of servers' data, by server, as the operator says."""

    def __post_init__(self) -> None:
        if not 0 <= self.test_share < 1 or self.alpha < 0:
            raise ValueError("test_share is at least 0 and below 1, alpha at least 0")


class TrainingReport(BaseModel):
    """Answer of `export training`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    episodes: int
    right: int
    wrong: int
    unscored: int
    with_advantages: int
    families: int
    rows: dict[str, int]
    """By file."""
    output: str = ""
    """Folder they are in; empty until they are written."""


@dataclass(frozen=True, slots=True)
class Exported:
    """Files by path inside of the export, and what is told of them."""

    files: Mapping[str, bytes]
    report: TrainingReport


def export_episodes(episodes: Iterable[Episode], options: ExportOptions, redact: Redact) -> Exported:
    """Return the files of an export.

    Args:
        episodes: without advantages, splits not set.
        options: what is written.
        redact: takes secrets out.

    Raises:
        NothingToExport: there are no episodes.
        TrainerUnusable: verl is wanted and pyarrow is not here.
    """
    split = [
        one.model_copy(update={"split": split_of(one.family, options.test_share)})
        for one in credited(episodes, options.alpha)
    ]
    shown = [redacted(one, redact) for one in split]
    if not shown:
        raise NothingToExport(
            "nothing can be exported: no run here has a task in words and calls."
            " Solve tasks (skillbank solve TASK), or keep searches (repair --record FILE) and give them,"
            " or give --drive FILE"
        )
    rows = _rows(shown, options, redact)
    files = {path: _bytes(path, listed) for path, listed in rows.items()}
    counts = {path: len(listed) for path, listed in rows.items()}
    files["README.md"] = render_card(shown, counts, options.licences, options.alpha).encode()
    return Exported(files, _report(shown, counts))


def _rows(episodes: Sequence[Episode], options: ExportOptions, redact: Redact) -> dict[str, list[Row]]:
    """Return the rows of every file; the first of all is the master, which alone keeps experience."""
    found: dict[str, list[Row]] = {
        "episodes.jsonl": [cast("Row", one.model_dump(mode="json")) for one in episodes]
    }
    for split in _SPLITS:
        of = [one for one in episodes if one.split == split]
        for name, rows in FORMATS.items():
            if name.partition("-")[0] in options.formats:
                found[f"trl/{name}.{split}.jsonl"] = rows(of)
        if "verl" in options.formats:
            found[f"verl/rl.{split}.parquet"] = verl_rows(of)
            found[f"verl/sft.{split}.parquet"] = verl_sft_rows(of)
    return {
        path: [cast("Row", redact(cast("CanonicalValue", row))) for row in rows] if "/" in path else rows
        for path, rows in found.items()
        if rows
    }


def _bytes(path: str, rows: Sequence[Row]) -> bytes:
    if path.endswith(".parquet"):
        try:
            return parquet_bytes(rows)
        except ModuleNotFoundError as error:
            raise TrainerUnusable(
                "Parquet files for verl need pyarrow: pip install 'skillbank[train]', or leave out verl"
            ) from error
    return b"".join(json.dumps(cast("JsonValue", row), ensure_ascii=False).encode() + b"\n" for row in rows)


def _report(episodes: Sequence[Episode], counts: dict[str, int]) -> TrainingReport:
    scores = [one.outcome.score for one in episodes]
    return TrainingReport(
        episodes=len(episodes),
        right=scores.count(1.0),
        wrong=scores.count(0.0),
        unscored=scores.count(None),
        with_advantages=sum(any(s.advantage is not None for s in one.steps) for one in episodes),
        families=len({one.family for one in episodes}),
        rows=counts,
    )

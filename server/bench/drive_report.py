"""The report of the drive benchmark: how far a driven model gets by context template, as data and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from server.bench.measures import Spread

__all__ = [
    "ContextRow",
    "DriveBenchReport",
    "EnvironmentsMeasure",
    "ExportMeasure",
    "ExportedFile",
    "ReferencesRow",
    "render_drive_report",
]


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ContextRow(_Report):
    """One task, driven under one template in one window."""

    driver: str
    """`scripted policy`, or the model's name."""
    template: str
    window: int
    """Tokens of prompt and answer together."""
    task: str
    steps: int
    """That the task needs, its end included."""
    taken: int
    right: bool
    """It finished by itself, and what it did holds."""
    verified: bool
    """What it did holds in the end, where need be by what a repair made of it."""
    ended: str
    tokens: int
    """Prompts and answers of the whole drive."""
    largest_prompt: int
    """Tokens, estimated for the scripted policy."""
    seconds: float
    notes: str = ""


class EnvironmentsMeasure(_Report):
    """What the environment service does, over its own wire, with a hash server in every instance."""

    first_reset_ms: float
    """With the start of the worker process."""
    reset_ms: Spread
    """Of one instance after its first: its tool server is started anew each time."""
    step_ms: Spread
    """One tool call of one instance."""
    resets_per_second: float
    steps_per_second: float
    at_once: int
    """Instances at once, each with processes of its own."""
    resets_per_second_at_once: float
    """First resets of all of them together."""
    steps_per_second_at_once: float
    killed_told: str
    """Error code that the client of a killed worker sees."""
    killed_reset: bool
    """Whether the same session then played an episode to reward 1."""
    rewarded: int
    """Of the others, how many went on to reward 1."""


class ReferencesRow(_Report):
    """One environment of another package: what reference solutions are worth through the service."""

    environment: str
    tasks: int
    played: int
    right: int
    """References worth 1."""
    damaged_wrong: int
    """Damaged ones worth 0."""
    exceptions: tuple[str, ...] = ()
    """Every other task with both rewards and what the checker said."""


class ExportedFile(_Report):
    """One file of an export, read by what trains on it."""

    file: str
    rows: int
    loaded: int
    """Rows that `datasets` read."""
    trained: str
    """How a trainer took one step on it; empty: none did."""


class ExportMeasure(_Report):
    """An export of the drives of this run."""

    drives: int
    episodes: int
    files: tuple[ExportedFile, ...]
    template: str
    """The chat template whose marks masks are compared with."""
    mask_rows: int
    mask_tokens: int
    mask_learned: int
    """Tokens that are learned."""
    mask_differences: int
    """Tokens, or marks of them, that are not the template's own."""
    null_arguments: int
    """Arguments that no run gave and reading the file put in."""
    checked_by: str
    """Versions of the trainer's packages; empty: they are not here, and nothing was loaded."""


class DriveBenchReport(_Report):
    """Answer of `bench drive`; a part that was left out is empty."""

    bench: Literal["drive"] = "drive"
    quick: bool
    rows: tuple[ContextRow, ...] = ()
    environments: EnvironmentsMeasure | None = None
    references: tuple[ReferencesRow, ...] = ()
    export: ExportMeasure | None = None
    versions: dict[str, str]
    seconds: float
    notes: tuple[str, ...] = ()


def render_drive_report(report: DriveBenchReport) -> str:
    """Return the tables in Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    said = [*report.notes, f"{report.seconds:.0f} s in all; {versions}"]
    parts = [
        _contexts(report.rows),
        _environments(report.environments) if report.environments is not None else [],
        _references(report.references),
        _export(report.export) if report.export is not None else [],
        [f"- {note}" for note in said],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _contexts(every: Sequence[ContextRow]) -> list[str]:
    keys = dict.fromkeys((row.driver, row.template, row.window) for row in every)
    lines = [
        "| driver | template | window | tasks | right | verified in the end | steps needed | steps taken |"
        " tokens per task | largest prompt | ended by |",
        "|---|---|---:|---:|---:|---:|---|---:|---:|---:|---|",
    ]
    for driver, template, window in keys:
        rows = [r for r in every if (r.driver, r.template, r.window) == (driver, template, window)]
        lines.append(_line(driver, template, window, rows))
    return lines if keys else []


def _line(driver: str, template: str, window: int, rows: Sequence[ContextRow]) -> str:
    ended = ", ".join(f"{row.ended} at {row.taken} of {row.steps}" for row in rows if not row.right)
    needed = ", ".join(str(row.steps) for row in rows)
    right, count, verified = sum(row.right for row in rows), len(rows), sum(row.verified for row in rows)
    taken, tokens = sum(row.taken for row in rows), sum(row.tokens for row in rows) // count
    largest = max(row.largest_prompt for row in rows)
    return (
        f"| {driver} | {template} | {window} | {count} | **{right}** | {verified} | {needed} | {taken} |"
        f" {tokens} | {largest} | {ended or 'finished'} |"
    )


def _environments(measured: EnvironmentsMeasure) -> list[str]:
    again = "played to reward 1 after a reset" if measured.killed_reset else "could not go on"
    return [
        "| environment service | resets per second | steps per second | reset p50, ms | step p50, ms |",
        "|---|---:|---:|---:|---:|",
        f"| one instance | {measured.resets_per_second:.1f} | {measured.steps_per_second:.0f} |"
        f" {measured.reset_ms.median:.0f} | {measured.step_ms.median:.1f} |",
        f"| {measured.at_once} at once, each with new processes | {measured.resets_per_second_at_once:.1f} |"
        f" {measured.steps_per_second_at_once:.0f} | first: {measured.first_reset_ms:.0f} | |",
        "",
        f"- a killed worker: its client was told `{measured.killed_told}` and {again}; of the"
        f" {measured.at_once - 1} others **{measured.rewarded}** ended with reward 1",
    ]


def _references(rows: Sequence[ReferencesRow]) -> list[str]:
    if not rows:
        return []
    lines = [
        "| environment | tasks | played | references worth 1 | damaged worth 0 |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row.environment} | {row.tasks} | {row.played} | **{row.right}** | **{row.damaged_wrong}** |"
        for row in rows
    ]
    said = [f"- {row.environment} {one}" for row in rows for one in row.exceptions]
    return [*lines, *(["", *said] if said else [])]


def _export(measured: ExportMeasure) -> list[str]:
    lines = ["| file of an export | rows | read by datasets | a step in its trainer |", "|---|---:|---:|---|"]
    lines += [
        f"| {one.file} | {one.rows} | {one.loaded} | {one.trained or 'not asked for'} |"
        for one in measured.files
    ]
    if not measured.checked_by:
        return [
            *lines,
            "",
            "- nothing was loaded: the trainer's packages are not here; `--python` names them",
        ]
    return [
        *lines,
        "",
        f"- of {measured.drives} drives, {measured.episodes} episodes; masks of {measured.mask_rows} rows:"
        f" {measured.mask_learned} of {measured.mask_tokens} tokens are learned,"
        f" **{measured.mask_differences}** differ from the marks of {measured.template};"
        f" {measured.null_arguments} null arguments; {measured.checked_by}",
    ]

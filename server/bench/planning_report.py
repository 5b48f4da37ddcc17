"""The report of the planning benchmark: what becomes of a model's plans, as data and as a table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from server.bench.planning_tape import About
from server.bench.planning_ways import CONDITIONS

__all__ = ["PlanReport", "PlanningBenchReport", "Way", "render_planning_report", "ways_of"]


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlanReport(_Report):
    """One plan for one task, asked for in one way."""

    task: str
    condition: str
    parseable: bool
    existing_tools: bool = False
    """Every tool that is called is there."""
    schema_valid: bool = False
    """Every argument that is written out fits its tool's schema, and none is missing."""
    executed: bool = False
    """It ran to its end as it was, every output produced."""
    right: bool = False
    """It passed the task's checks as it was."""
    repaired: bool = False
    """It passed them as it was, or after deterministic repair."""
    right_on_held_out: bool | None = None
    """Whether what passed also does so on other inputs, None when nothing passed or there are none."""
    is_whole: bool = True
    """Whether every tool was in the prompt."""
    view_tokens: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    """That the model took."""
    faults: tuple[str, ...] = ()
    """What was wrong with it as it was."""


class Way(_Report):
    """All plans of one condition."""

    condition: str
    plans: int
    parseable: int
    existing_tools: int
    schema_valid: int
    executed: int
    right: int
    repaired: int
    held_out: int
    """Of those repaired and with other inputs, right on those too."""
    held_out_of: int
    median_seconds: float
    mean_prompt_tokens: float
    mean_uncached_tokens: float
    mean_output_tokens: float


class PlanningBenchReport(_Report):
    """The whole benchmark."""

    bench: Literal["planning"] = "planning"
    quick: bool
    recorded: bool
    """Whether completions were replayed from a tape rather than asked for now."""
    about: About
    tasks: int
    changed_prompts: int
    """Replayed completions whose prompt is another one today."""
    whole_up_to: int
    """Tokens of catalog up to which every tool is shown."""
    versions: dict[str, str]
    seconds: float
    ways: tuple[Way, ...]
    whole_against_retrieved: tuple[Way, ...] = ()
    """On the tasks that were asked both ways: every tool shown, and those retrieved for the task."""
    plans: tuple[PlanReport, ...]


def ways_of(plans: Sequence[PlanReport]) -> tuple[Way, ...]:
    """Return what became of the plans of each condition, in the order of `CONDITIONS`."""
    conditions = [c.name for c in CONDITIONS if any(plan.condition == c.name for plan in plans)]
    return tuple(_way(name, [plan for plan in plans if plan.condition == name]) for name in conditions)


def _way(name: str, plans: Sequence[PlanReport]) -> Way:
    tried = [plan.right_on_held_out for plan in plans if plan.right_on_held_out is not None]
    return Way(
        condition=name,
        plans=len(plans),
        parseable=sum(plan.parseable for plan in plans),
        existing_tools=sum(plan.existing_tools for plan in plans),
        schema_valid=sum(plan.schema_valid for plan in plans),
        executed=sum(plan.executed for plan in plans),
        right=sum(plan.right for plan in plans),
        repaired=sum(plan.repaired for plan in plans),
        held_out=sum(tried),
        held_out_of=len(tried),
        median_seconds=statistics.median(plan.seconds for plan in plans),
        mean_prompt_tokens=statistics.fmean(plan.input_tokens for plan in plans),
        mean_uncached_tokens=statistics.fmean(plan.input_tokens - plan.cached_tokens for plan in plans),
        mean_output_tokens=statistics.fmean(plan.output_tokens for plan in plans),
    )


def render_planning_report(report: PlanningBenchReport) -> str:
    """Return the report as Markdown that reads well on a terminal too."""
    about = report.about
    details = [about.model, about.quantisation, about.runtime, about.machine]
    model = ", ".join(part for part in details if part)
    source = "replayed from a recording" if report.recorded else "asked for in this run"
    lines = [
        *_table(report.ways),
        "",
        f"- {report.tasks} tasks over real servers, one plan each at temperature 0; {model}",
        f"- completions {source}{': ' + about.recorded if report.recorded and about.recorded else ''};"
        " the tool servers are real and ran now",
    ]
    if report.changed_prompts:
        lines.append(f"- {report.changed_prompts} completions answer a prompt that is another one today")
    if report.whole_against_retrieved:
        lines += ["", "The whole catalog against tools retrieved for each task, where both were asked:", ""]
        lines += _table(report.whole_against_retrieved)
        lines.append(f"\n- a catalog of up to {report.whole_up_to} tokens is shown whole")
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    lines += [f"- {'quick size; ' if report.quick else ''}{report.seconds:.0f} s in all; {versions}"]
    return "\n".join(lines) + "\n"


def _table(ways: Sequence[Way]) -> list[str]:
    lines = [
        "| plans | n | parseable | existing tools | schema-valid | executed | right | right after repair"
        " | of those on other inputs | prompt tokens (not cached) | answer tokens | s, median |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {way.condition} | {way.plans} | {way.parseable} | {way.existing_tools} | {way.schema_valid}"
        f" | {way.executed} | **{way.right}** | **{way.repaired}** | {way.held_out} of {way.held_out_of}"
        f" | {way.mean_prompt_tokens:.0f} ({way.mean_uncached_tokens:.0f}) | {way.mean_output_tokens:.0f}"
        f" | {way.median_seconds:.1f} |"
        for way in ways
    ]
    return lines

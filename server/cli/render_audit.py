"""Draws the audit of a bank for a person."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from server.cli.render import heading, plain, table
from server.reports.audit import AuditReport, RateReport, SavedPerUse, SkillStanding

__all__ = ["render_audit"]


def render_audit(console: Console, report: AuditReport) -> None:
    """Draw the answer of `audit`."""
    _render_skills(console, report)
    _render_taken(console, report)
    for merge in report.merge:
        said = f"  {merge.merge} could be one with {merge.keep}: {merge.why}"
        console.print(plain(said), soft_wrap=True)
    _render_growth(console, report)


def _render_skills(console: Console, report: AuditReport) -> None:
    if not report.skills:
        console.print("no skill is in use yet", style="dim")
        return
    drawn = table("skill", "state", "right, 95 %", "with, without", "evidence", "calls saved", "what speaks")
    for skill in report.skills:
        contrast = skill.contrast
        drawn.add_row(
            plain(f"{skill.name}@{skill.version}", "bold"),
            skill.state,
            _rate(skill.unasked) + (f", {skill.asked.of} asked for" if skill.asked.of else ""),
            ", ".join(f"{rate.right}/{rate.of}" for rate in (contrast.guided, contrast.withheld)),
            f"{contrast.evidence:.2g} of {contrast.needed:g}",
            _saved(skill.calls_saved),
            plain(_said(skill), limit=160),
        )
    console.print(drawn)


def _rate(rate: RateReport) -> str:
    return f"{rate.right}/{rate.of} ({rate.low:.0%} to {rate.high:.0%})" if rate.of else "–"


def _saved(saved: SavedPerUse | None) -> str:
    return f"{saved.mean:+.1f} ({saved.low:+.1f} to {saved.high:+.1f})" if saved else "–"


def _said(skill: SkillStanding) -> str:
    paper = "the paper's rule would suppress it" if skill.contrast.paper_would_suppress else ""
    said = [skill.due or skill.suspicion, *skill.notes, paper]
    return "; ".join(part for part in said if part)


def _render_taken(console: Console, report: AuditReport) -> None:
    for step in report.taken:
        undo = f"  (undo: {step.undo})" if step.undo else ""
        console.print(
            Text.assemble(
                "  ",
                plain(f"{step.skill}@{step.version}", "bold"),
                f" {step.step}: ",
                plain(step.reason),
                undo,
            ),
            soft_wrap=True,
        )


def _render_growth(console: Console, report: AuditReport) -> None:
    growth, budget = report.growth, report.budget
    heading(console, "Bank")
    states = ", ".join(f"{count} {state}" for state, count in growth.by_state.items()) or "no skills"
    console.print(f"  {states}; {growth.versions} versions, {growth.versions_in_30_days} of the last 30 days")
    console.print(
        f"  {growth.uses} uses, {growth.traces} runs and {growth.recorded_calls} recorded calls kept,"
        f" {growth.bytes / 1_000_000:.1f} MB"
    )
    bound = f" of {budget.most_active}" if budget.most_active else ""
    console.print(f"  budget: {budget.active}{bound} active skills, {budget.megabytes:.2f} MB")
    verb = "would be" if report.dry_run else "are"
    if budget.to_guidance:
        console.print(f"  {', '.join(budget.to_guidance)} {verb} guidance only: over the budget")
    dropped = report.retention
    if dropped.runs or dropped.recorded_calls or dropped.drives:
        console.print(
            f"  forgotten as too old: {dropped.runs} runs, {dropped.recorded_calls} recorded calls,"
            f" {dropped.drives} drives"
        )

"""Commands on experience: what earlier runs taught, what it was worth, and forgetting it."""

from __future__ import annotations

from datetime import UTC, datetime

import click
from rich.console import Console

from server.cli.options import session_command
from server.cli.render import plain, table
from server.cli.session import Session
from server.reports.experience import DroppedReport, ExperienceReport, UnitReport

__all__ = ["experience"]


@click.group()
def experience() -> None:
    """Look at the lessons of earlier runs, and forget them.

    A lesson says when to use it and what to do. Half of the attempts at tasks it fits go without
    any, and a lesson that does not help is dropped.
    """


@experience.command("list")
@session_command
def list_units(session: Session) -> int:
    """List what was learned, the most used first."""
    session.show(session.with_bank(lambda bank: bank.list_experience()), _render_list)
    return 0


@experience.command("show")
@click.argument("unit")
@session_command
def show(session: Session, *, unit: str) -> int:
    """Show one UNIT: its words, the runs it stands on, and its attempts with and without it."""
    session.show(session.with_bank(lambda bank: bank.show_experience(unit)), _render_unit)
    return 0


@experience.command("drop")
@click.argument("units", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Forget everything that was learned.")
@session_command
def drop(session: Session, *, units: tuple[str, ...], every: bool) -> int:
    """Forget UNITS, or everything with --all. Runs and skills stay."""
    if bool(units) == every:
        raise click.UsageError("name the units to forget, or say --all")
    session.show(session.with_bank(lambda bank: bank.drop_experience(units)), _render_dropped)
    return 0


def _render_list(console: Console, report: ExperienceReport) -> None:
    if not report.units:
        console.print("nothing learned yet: solve and explore write lessons", style="dim")
        return
    drawn = table("unit", "kind", "when to use", "lesson", "with", "without")
    for told in report.units:
        unit, tally = told.unit, told.unit.tally
        drawn.add_row(
            plain(unit.id, "bold"),
            unit.kind,
            plain(unit.when_to_use, limit=60),
            plain(unit.content, limit=80),
            f"{tally.guided_right}/{tally.guided}",
            f"{tally.unguided_right}/{tally.unguided}",
        )
    console.print(drawn)


def _render_unit(console: Console, report: UnitReport) -> None:
    unit, tally = report.unit, report.unit.tally
    console.print(plain(unit.id, "bold"), f"{unit.kind}, worded by {unit.written_by}")
    console.print("when to use", plain(unit.when_to_use))
    console.print("lesson", plain(unit.content))
    console.print("tools", plain(", ".join(map(str, unit.tools))))
    console.print(
        f"confidence {unit.confidence:.2f}, until {datetime.fromtimestamp(unit.expires_at, UTC):%Y-%m-%d}"
    )
    console.print(
        f"with it {tally.guided_right} of {tally.guided} right, {tally.helped} by following it;"
        f" without {tally.unguided_right} of {tally.unguided}"
    )
    if report.contrast is not None:
        console.print(f"contrast {report.contrast:+.2f}")
    console.print("evidence", plain(", ".join(unit.evidence) or "none"))


def _render_dropped(console: Console, report: DroppedReport) -> None:
    console.print(f"forgot {len(report.dropped)} lesson{'s' * (len(report.dropped) != 1)}")

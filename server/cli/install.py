"""The command that makes skillbank one of the servers of an MCP client."""

from __future__ import annotations

from pathlib import Path

import click

from server.cli.answers import InstallReport
from server.cli.errors import NeedsApproval
from server.cli.options import session_command
from server.cli.session import Session
from server.host_install import CLIENTS, Client, Installation, plan_installation, write_installation

__all__ = ["install"]


@click.command()
@click.argument("client", type=click.Choice(CLIENTS))
@click.option("--project", is_flag=True, help="Only for the project in this folder, not for the user.")
@click.option("--dry-run", is_flag=True, help="Show the change and write nothing.")
@click.option("--yes", "-y", is_flag=True, help="Write it without asking.")
@session_command
def install(session: Session, *, client: Client, project: bool, dry_run: bool, yes: bool) -> int:
    """Make skillbank one of the servers of CLIENT: claude (Claude Code), claude-desktop, cursor, vscode.

    Shows the change of the client's file first. Everything else in it stays, comments too; the file as
    it was is kept beside it. A file that cannot be read is refused, with the place.

    \b
    Examples:
      skillbank install cursor --dry-run
      skillbank install vscode --project --yes
    """
    if project and client == "claude-desktop":
        raise click.UsageError("Claude Desktop has no files of projects")
    settings = session.settings
    named = ("--config", str(settings.config_path.absolute())) if settings.config_is_named else ()
    folder = Path.cwd() if project else None
    planned = plan_installation(client, Path.home(), settings.environment, folder=folder, options=named)
    written, kept = _write(session, planned, dry_run=dry_run, yes=yes)
    report = InstallReport(
        client=client,
        file=str(planned.path),
        diff=planned.diff,
        written=written,
        kept=None if kept is None else str(kept),
    )
    session.show(report, lambda console, told: console.print(_told(told), markup=False, highlight=False))
    return 0


def _write(session: Session, planned: Installation, *, dry_run: bool, yes: bool) -> tuple[bool, Path | None]:
    if planned.is_change and not session.as_json:
        session.say(planned.diff)
    if dry_run or not planned.is_change:
        return False, None
    if not (yes or (session.interactive and session.confirm("Write this?"))):
        raise NeedsApproval(f"{planned.path} was not changed: say --yes to write it")
    return True, write_installation(planned)


def _told(report: InstallReport) -> str:
    if not report.diff:
        return f"{report.file} has it already"
    if not report.written:
        return f"{report.file} was not changed"
    kept = f"; as it was: {report.kept}" if report.kept else ""
    return f"{report.file} is written{kept}. Restart {report.client} to see it."

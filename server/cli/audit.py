"""The command that keeps the bank good: looks at every skill in use, and does what is due."""

from __future__ import annotations

import click

from server.cli.options import session_command
from server.cli.render_audit import render_audit
from server.cli.session import Session

__all__ = ["audit"]


@click.command()
@click.argument("names", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Say what is due, and do nothing.")
@session_command
def audit(session: Session, *, names: tuple[str, ...], dry_run: bool) -> int:
    """Look at the skills in use, or at NAMES alone, and take the steps that are due.

    Skills made stale by a changed tool are verified again, and repaired where they do not pass. The
    tests of the most used skills, and of those something speaks against, run in fresh processes.
    What fails is restricted to guidance, then suppressed, then retired, one step at a time; each step
    has its reason, and 'skills restore' takes it back. What a person wrote or pinned is only told.
    Old traces are dropped, and the budget of the bank is kept.

    \b
    Examples:
      skillbank audit --dry-run
      skillbank audit order_status
    """
    report = session.with_bank(lambda bank: bank.audit(names, dry_run=dry_run))
    session.show(report, render_audit)
    return 0

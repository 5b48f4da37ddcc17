"""Commands on skills that are there, from list to delete; `recordings` has save."""

from __future__ import annotations

import functools

import click
from pydantic import JsonValue

from server.cli.code import add_code
from server.cli.errors import NeedsApproval
from server.cli.options import inputs_option, session_command
from server.cli.recordings import save
from server.cli.render import render_run
from server.cli.render_skills import (
    render_deleted,
    render_proposed_skill,
    render_skill,
    render_skill_moved,
    render_skills,
    render_tests,
)
from server.cli.session import Session
from server.reports import exit_code
from skills_store.skill import Skill

__all__ = ["skills"]


@click.group()
def skills() -> None:
    """Look at skills, run and test them, approve or reject what is proposed, take one back."""


@skills.command("list")
@session_command
def list_skills(session: Session) -> int:
    """List every skill with its state, inputs and how often it was right."""
    report = session.with_bank(lambda bank: bank.list_skills())
    session.show(report, render_skills)
    return 0


@skills.command("show")
@click.argument("name")
@click.option("--version", type=click.IntRange(min=1), help="Which version. Default: the one in use.")
@session_command
def show(session: Session, *, name: str, version: int | None) -> int:
    """Show skill NAME: why it is in its state, on what evidence, what it needs, cost and saved."""
    report = session.with_bank(lambda bank: bank.show_skill(name, version))
    session.show(report, render_skill)
    return 0


@skills.command("run")
@click.argument("name")
@inputs_option
@click.option("--version", type=click.IntRange(min=1), help="Which version. Default: the one in use.")
@click.option("--trace", is_flag=True, help="Show each executed step.")
@session_command
def run(
    session: Session, *, name: str, inputs: dict[str, JsonValue], version: int | None, trace: bool
) -> int:
    """Run skill NAME on inputs and print its outputs.

    \b
    Example:
      skillbank skills run celsius_to_fahrenheit --inputs '{"celsius": 21}'
    """
    report = session.with_bank(lambda bank: bank.run_skill(name, inputs, version))
    session.show(report, functools.partial(render_run, trace=trace))
    return exit_code(report.status, report.faults)


@skills.command("test")
@click.argument("name")
@click.option("--version", type=click.IntRange(min=1), help="Which version. Default: the one in use.")
@session_command
def test(session: Session, *, name: str, version: int | None) -> int:
    """Run the replay tests of skill NAME again; exit code 1 when one does not pass."""
    report = session.with_bank(lambda bank: bank.test_skill(name, version))
    session.show(report, render_tests)
    return 0 if report.passed else 1


@skills.command("approve")
@click.argument("name")
@click.option("--version", type=click.IntRange(min=1), help="Which version. Default: the one in use.")
@click.option("--yes", "-y", is_flag=True, help="Approve without asking.")
@session_command
def approve(session: Session, *, name: str, version: int | None, yes: bool) -> int:
    """Make the proposed skill NAME active: from now on clients see and call it as a tool.

    On a terminal it shows what is approved and asks once; elsewhere it needs --yes. A skill that a
    check shows to be wrong cannot be approved.

    \b
    Examples:
      skillbank skills approve save_note
      skillbank skills approve save_note --version 2 --yes
    """
    proposed = session.with_bank(lambda bank: bank.proposal(name, version))
    if not yes:
        _ask_to_approve(session, proposed)
    report = session.with_bank(lambda bank: bank.approve(proposed.name, proposed.version))
    session.show(report, render_skill_moved)
    return 0


def _ask_to_approve(session: Session, proposed: Skill) -> None:
    named = f"{proposed.name}@{proposed.version}"
    if not session.interactive:
        raise NeedsApproval(f"nobody could be asked, so {named} stays proposed: say --yes to approve it")
    render_proposed_skill(session.err, proposed)
    if not session.confirm(f"Approve {named}? Clients can then call it.", default=False):
        raise NeedsApproval(f"not approved: {named} stays proposed")


@skills.command("restore")
@click.argument("name")
@click.option("--version", type=click.IntRange(min=1), help="Which version. Default: the one in use.")
@session_command
def restore(session: Session, *, name: str, version: int | None) -> int:
    """Take back the last step that curation took against skill NAME.

    One step: from guidance only back to active, from suppressed back to guidance, from retired back
    to proposed. What spoke against it is told in its history; the evidence begins anew.
    """
    report = session.with_bank(lambda bank: bank.restore(name, version))
    session.show(report, render_skill_moved)
    return 0


@skills.command("reject")
@click.argument("name")
@click.option("--version", type=click.IntRange(min=1), help="Which version. Default: the one in use.")
@click.option("--reason", required=True, metavar="TEXT", help="Why not; kept with it.")
@session_command
def reject(session: Session, *, name: str, version: int | None, reason: str) -> int:
    """Turn down the proposed skill NAME; it stays readable and is not proposed again.

    \b
    Example:
      skillbank skills reject save_note --reason 'writes to the wrong notebook'
    """
    report = session.with_bank(lambda bank: bank.reject(name, reason, version))
    session.show(report, render_skill_moved)
    return 0


@skills.command("rollback")
@click.argument("name")
@click.argument("version", type=click.IntRange(min=1))
@session_command
def rollback(session: Session, *, name: str, version: int) -> int:
    """Put VERSION of skill NAME back in use; later versions stay readable.

    Only an active version can be in use; of another one it says what to do first, with exit code 1.

    \b
    Example:
      skillbank skills rollback celsius_to_fahrenheit 1
    """
    report = session.with_bank(lambda bank: bank.rollback(name, version))
    session.show(report, render_skill_moved)
    return 0


@skills.command("retire")
@click.argument("name")
@click.option(
    "--reason", default="retired by a person", show_default=True, metavar="TEXT", help="Kept with it."
)
@session_command
def retire(session: Session, *, name: str, reason: str) -> int:
    """Take skill NAME out of use; it stays readable."""
    report = session.with_bank(lambda bank: bank.retire(name, reason))
    session.show(report, render_skill_moved)
    return 0


@skills.command("pin")
@click.argument("name")
@click.argument("version", type=click.IntRange(min=1), required=False)
@session_command
def pin(session: Session, *, name: str, version: int | None) -> int:
    """Keep VERSION of skill NAME in use, by default the one that is.

    Until it is unpinned the system neither puts another version in its place nor moves its state,
    except that a changed tool makes it stale.

    \b
    Example:
      skillbank skills pin celsius_to_fahrenheit 1
    """
    report = session.with_bank(lambda bank: bank.pin(name, version))
    session.show(report, render_skill_moved)
    return 0


@skills.command("unpin")
@click.argument("name")
@session_command
def unpin(session: Session, *, name: str) -> int:
    """Let the system move skill NAME again; the version in use stays it."""
    report = session.with_bank(lambda bank: bank.unpin(name))
    session.show(report, render_skill_moved)
    return 0


@skills.command("delete")
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Delete without asking.")
@session_command
def delete(session: Session, *, name: str, yes: bool) -> int:
    """Remove skill NAME for good: every version with its tests, its history and its uses.

    Nothing of it can be read afterwards; retiring takes it out of use and keeps it. A skill
    that another one calls is not deleted. On a terminal it asks once; elsewhere it needs --yes.

    \b
    Example:
      skillbank skills delete celsius_to_fahrenheit --yes
    """
    if not (yes or session.interactive):
        raise NeedsApproval(f"nobody could be asked, so {name} is still there: say --yes to delete it")
    if not yes and not session.confirm(f"Delete {name} with all its versions for good?", default=False):
        raise NeedsApproval(f"not deleted: {name} is still there")
    report = session.with_bank(lambda bank: bank.delete(name))
    session.show(report, render_deleted)
    return 0


skills.add_command(save)
skills.add_command(add_code)

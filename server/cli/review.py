"""The command that goes through what waits for a person: each with its diff, approved or not."""

from __future__ import annotations

import json

import click
from pydantic import JsonValue

from server.cli.options import session_command
from server.cli.render_recordings import render_saved
from server.cli.render_review import render_review, render_review_item
from server.cli.render_skills import render_skill_moved
from server.cli.session import Session
from server.reports import ReviewItem

__all__ = ["review"]


@click.command()
@click.argument("names", nargs=-1)
@session_command
def review(session: Session, *, names: tuple[str, ...]) -> int:
    """Go through the skills that wait for a person, or those NAMES alone.

    Each is shown with what it changes, the checks it did not pass and its tests. On a terminal it
    asks what to do: approve, reject with a reason that is remembered, edit the workflow in your
    editor and have it tested again, or leave it. Elsewhere it only lists them.

    \b
    Examples:
      skillbank review
      skillbank review save_note
    """
    report = session.with_bank(lambda bank: bank.review_queue())
    if names:
        waiting = tuple(item for item in report.waiting if item.name in names)
        if missing := sorted(set(names) - {item.name for item in waiting}):
            raise click.UsageError(f"nothing waits under the name {', '.join(missing)}")
        report = report.model_copy(update={"waiting": waiting})
    if not session.interactive:
        session.show(report, render_review)
        return 0
    for item in report.waiting:
        render_review_item(session.out, item)
        _decide(session, item)
    if not report.waiting:
        render_review(session.out, report)
    return 0


def _decide(session: Session, item: ReviewItem) -> None:
    choices = click.Choice(["approve", "reject", "edit", "leave"])
    answer = click.prompt("What about it?", type=choices, default="leave", err=True)
    match answer:
        case "approve":
            moved = session.with_bank(lambda bank: bank.approve(item.name, item.version))
            render_skill_moved(session.out, moved)
        case "reject":
            reason = click.prompt("Why not?", err=True)
            moved = session.with_bank(lambda bank: bank.reject(item.name, reason, item.version))
            render_skill_moved(session.out, moved)
        case "edit":
            _edit(session, item)
        case _:
            return


def _edit(session: Session, item: ReviewItem) -> None:
    skill = session.with_bank(lambda bank: bank.show_skill(item.name, item.version))
    text = json.dumps(skill.workflow.to_json(), indent=2, ensure_ascii=False)
    edited = click.edit(text, extension=".json")
    if edited is None or edited.strip() == text:
        click.echo("nothing was changed", err=True)
        return
    try:
        document: JsonValue = json.loads(edited)
    except ValueError as error:
        raise click.UsageError(f"what you wrote is no JSON: {error}") from error
    report = session.with_bank(lambda bank: bank.revise(item.name, document))
    render_saved(session.out, report)

"""Commands on recordings: what clients called by hand, kept so that it can become a skill."""

from __future__ import annotations

import functools
import json

import click
from pydantic import JsonValue

from server.cli.options import SKILL_NAME, examples_option, session_command
from server.cli.ports import BankPort
from server.cli.render_recordings import render_forgotten, render_recording, render_recordings, render_saved
from server.cli.session import Session
from server.reports import ForgottenReport
from server.requests import SaveRequest

__all__ = ["record", "save"]


class _Named(click.ParamType[tuple[str, JsonValue]]):
    """NAME=VALUE, the value as JSON where it is some, else as text."""

    name = "name=value"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, JsonValue]:
        name, equals, text = str(value).partition("=")
        if not (equals and name.isidentifier()):
            self.fail(f"{value!r} is not NAME=VALUE", param, ctx)
        return name, _json_or_text(text)


def _json_or_text(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except ValueError:
        return text


@click.group()
def record() -> None:
    """Look at the calls that clients made by hand, and forget them.

    A client's calls through call_tool are kept by conversation. skillbank skills save makes a
    skill of one.
    """


@record.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many at most.")
@session_command
def list_recordings(session: Session, *, limit: int) -> int:
    """List the conversations whose calls were kept, the newest first."""
    session.show(session.with_bank(lambda bank: bank.recordings(limit)), render_recordings)
    return 0


@record.command("show")
@click.argument("recording")
@session_command
def show(session: Session, *, recording: str) -> int:
    """Show the calls of one RECORDING, numbered as --call of skillbank skills save takes them."""
    session.show(session.with_bank(lambda bank: bank.show_recording(recording)), render_recording)
    return 0


@record.command("prune")
@click.argument("recordings", nargs=-1)
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Forget all but the newest N.")
@session_command
def prune(session: Session, *, recordings: tuple[str, ...], keep: int | None) -> int:
    """Forget the named RECORDINGS, or all but the newest.

    Skills that were made of them stay.

    \b
    Examples:
      skillbank record prune 7f3a
      skillbank record prune --keep 10
    """
    if bool(recordings) == (keep is not None):
        raise click.UsageError("name recordings, or say how many to --keep")
    named = recordings
    if keep is not None:
        kept = session.with_bank(lambda bank: bank.recordings(_ALL))
        named = tuple(one.name for one in kept.recordings[keep:])
    forgotten = {name: session.with_bank(functools.partial(_forget, name)) for name in dict.fromkeys(named)}
    session.show(ForgottenReport(forgotten=forgotten), render_forgotten)
    return 0


_ALL = 1_000_000


async def _forget(name: str, bank: BankPort) -> int:
    return await bank.forget_recording(name)


@click.command("save")
@click.argument("name", type=SKILL_NAME)
@click.option("--recording", metavar="ID", help="Conversation to compile. Default: what was done last.")
@click.option("--trace", metavar="ID", help="Run to compile, by the trace id that came with its answer.")
@click.option(
    "--call",
    "calls",
    multiple=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Only this call of the conversation. May be given several times.",
)
@click.option("--task", metavar="TEXT", help="The task in words; the values it says become inputs.")
@click.option(
    "--input",
    "named",
    multiple=True,
    type=_Named(),
    metavar="NAME=VALUE",
    help="A value of the calls that becomes an input of this name. May be given several times.",
)
@examples_option
@session_command
def save(
    session: Session,
    *,
    name: str,
    recording: str | None,
    trace: str | None,
    calls: tuple[int, ...],
    task: str | None,
    named: tuple[tuple[str, JsonValue], ...],
    examples: tuple[dict[str, JsonValue], ...],
) -> int:
    """Compile what was done already into skill NAME: a client's calls, or a run.

    Data flow between the calls is recovered, the values that --task says or --input names become
    typed inputs, and the result is tested before anybody can call it.

    \b
    Examples:
      skillbank skills save order_status --task 'Where is order A-17?'
      skillbank skills save order_status --recording 7f3a --call 2 --call 3 --input order=A-17
    """
    if recording is not None and trace is not None:
        raise click.UsageError("give --recording or --trace, not both")
    request = SaveRequest(
        name=name,
        recording=recording,
        trace=trace,
        calls=calls,
        task=task,
        inputs=dict(named),
        examples=examples,
    )
    report = session.with_bank(lambda bank: bank.save(request))
    session.show(report, render_saved)
    return 0 if report.skill is not None else 1

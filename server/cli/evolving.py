"""The command that evolves a bank over servers: shows what it would call, asks, holds rounds, tells each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from catalog.errors import ServerUnavailable
from catalog.whole_file import write_whole
from server.bank.upstreams.exploration import Exploration
from server.cli.errors import FAILED, NeedsApproval
from server.cli.options import EXISTING, check_folders, session_command
from server.cli.render_evolving import render_evolution
from server.cli.render_exploring import render_plan
from server.cli.session import Session
from server.evolving.evolve import evolve as hold_rounds
from server.evolving.options import EvolveOptions
from server.evolving.practice import read_user_tasks
from server.execution.consent import Consent, NoConsent
from server.exploration.errors import ExplorationError, UnknownServer
from server.exploration.options import ExplorationOptions
from server.exploration.report import ExplorationPlan
from server.exploration.tasks import render_tasks

__all__ = ["evolve"]

_FILE = click.Path(dir_okay=False, path_type=Path)
_DEFAULTS = EvolveOptions()


@click.command()
@click.argument("servers", nargs=-1, required=True, metavar="SERVER...")
@click.option(
    "--rounds", default=_DEFAULTS.rounds, show_default=True, type=click.IntRange(1), help="Rounds at most."
)
@click.option(
    "--budget-calls",
    default=_DEFAULTS.budget_calls,
    show_default=True,
    type=click.IntRange(1),
    help="Calls in all rounds; what admission runs again for a skill comes on top.",
)
@click.option(
    "--picked",
    "picked",
    default=_DEFAULTS.tasks,
    show_default=True,
    type=click.IntRange(1),
    help="Tasks of a round.",
)
@click.option(
    "--attempts",
    default=_DEFAULTS.attempts,
    show_default=True,
    type=click.IntRange(1),
    help="Attempts at each task of a round.",
)
@click.option("--tasks", type=EXISTING, metavar="FILE", help="Your own tasks, to be mixed in.")
@click.option(
    "--mix",
    default=_DEFAULTS.mix,
    show_default=True,
    type=click.FloatRange(0.0, 1.0),
    help="Share of a round's tasks that are your own.",
)
@click.option(
    "--seconds",
    default=_DEFAULTS.seconds,
    show_default=True,
    type=click.FloatRange(0.0, min_open=True),
    help="Of one attempt.",
)
@click.option(
    "--rate",
    "calls_per_second",
    default=_DEFAULTS.calls_per_second,
    show_default=True,
    type=click.FloatRange(0.0, min_open=True),
    help="Calls per second of exploring at most.",
)
@click.option(
    "--call-seconds",
    default=_DEFAULTS.call_timeout_seconds,
    show_default=True,
    type=click.FloatRange(0.0, min_open=True),
    help="A call of exploring without an answer for so long counts as hung.",
)
@click.option("--seed", default=0, show_default=True, help="Of made-up values.")
@click.option("--out", type=_FILE, metavar="FILE", help="Write the tasks that were made there.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@session_command
def evolve(
    session: Session,
    *,
    servers: tuple[str, ...],
    rounds: int,
    budget_calls: int,
    picked: int,
    attempts: int,
    tasks: Path | None,
    mix: float,
    seconds: float,
    calls_per_second: float,
    call_seconds: float,
    seed: int,
    out: Path | None,
    yes: bool,
) -> int:
    """Explore SERVERs, solve tasks, and learn from them, in rounds under a budget.

    Each round makes new tasks, picks those that are solved about half the time, attempts them, learns
    from what came right, teaches what did not, and examines with values that were never practised.
    What may be called is what skillbank explore may call; nothing that writes is approved meanwhile.

    \b
    Examples:
      skillbank evolve clock
      skillbank evolve clock units --rounds 2 --budget-calls 600 --yes --json
      skillbank evolve units --tasks mine.jsonl --mix 0.25 --out made.jsonl
    """
    check_folders({"--out": out})
    options = _options(
        rounds=rounds,
        budget_calls=budget_calls,
        tasks=picked,
        attempts=attempts,
        mix=mix,
        seconds=seconds,
        calls_per_second=calls_per_second,
        call_timeout_seconds=call_seconds,
        seed=seed,
    )
    own = () if tasks is None else read_user_tasks(tasks)
    named = tuple(dict.fromkeys(servers))
    _ask(session, named, options, asks=not yes)
    unattended = replace(session, wiring=replace(session.wiring, consent=_nobody))
    report = unattended.with_bank(lambda bank: hold_rounds(bank, named, options, own, session.say))
    if out is not None:
        try:
            write_whole(out, render_tasks(report.made).encode())
        except OSError as error:
            session.show(report, render_evolution)
            session.say(f"the tasks were not written, --json shows them too: {error}")
            return FAILED
        report = report.model_copy(update={"files": {"tasks": str(out)}})
    session.show(report, render_evolution)
    return 0


def _options(**said: Any) -> EvolveOptions:  # noqa: ANN401  (the fields of it)
    try:
        return EvolveOptions(**said)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _nobody(is_interactive: bool) -> Consent:
    """Return who is asked for approvals while rounds are held: nobody, at a terminal too."""
    del is_interactive
    return NoConsent()


def _ask(session: Session, servers: tuple[str, ...], options: EvolveOptions, *, asks: bool) -> None:
    """Show what would be explored and ask; where no server can be, that is refused before anything is called.

    A server that cannot be explored is named, and the rest goes on: its tasks may be your own.
    """
    asked = ExplorationOptions(
        budget_calls=options.budget_calls, tasks=options.tasks, calls_per_second=options.calls_per_second
    )
    plans: list[ExplorationPlan] = []
    problems: list[ExplorationError | ServerUnavailable] = []
    for name in servers:
        try:
            wanted = Exploration(name, asked)
            plans.append(session.with_bank(lambda bank, wanted=wanted: bank.plan_exploration(wanted)))
        except UnknownServer:
            raise
        except (ExplorationError, ServerUnavailable) as error:
            problems.append(error)
    if not plans:
        raise problems[0]
    for problem in problems:
        session.say(f"not explored: {problem}")
    if not asks:
        return
    for plan in plans:
        render_plan(session.err, plan)
    session.say(
        f"{options.budget_calls} calls at most in all, in {options.rounds} rounds of exploring and solving"
    )
    if not session.interactive:
        raise NeedsApproval("nothing was called: look at what would be, then say --yes")
    if not session.confirm("Evolve over it?"):
        raise NeedsApproval("nothing was called")

"""The command that explores a server: shows what it would call, asks, explores, writes what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import cast

import click
from click.core import ParameterSource

from catalog.whole_file import write_whole
from server.bank.upstreams.exploration import Exploration
from server.cli.errors import FAILED, MISUSE, WORLD, NeedsApproval
from server.cli.options import EXISTING, check_folders, session_command
from server.cli.render_exploring import render_exploration, render_plan
from server.cli.session import Session
from server.exploration.errors import ProfileRejected
from server.exploration.health.files import render_health, render_junit, render_sarif
from server.exploration.health.rules import Severity
from server.exploration.options import Difficulty, ExplorationOptions
from server.exploration.profile import Profile, parse_profile, render_profile
from server.exploration.report import ExplorationReport
from server.exploration.tasks import render_tasks

__all__ = ["explore"]

_FILE = click.Path(dir_okay=False, path_type=Path)
_DEFAULTS = ExplorationOptions()


@click.command()
@click.argument("server")
@click.option(
    "--budget-calls",
    default=_DEFAULTS.budget_calls,
    show_default=True,
    type=click.IntRange(1),
    help="Calls of the server in all; making skills of tasks runs these again on top.",
)
@click.option(
    "--difficulty",
    default="3",
    type=click.Choice(["1", "2", "3"]),
    show_default=True,
    help="Of the hardest tasks: 1 one call, 2 several, 3 chained.",
)
@click.option("--style", default="", metavar="TEXT", help="How tasks shall be worded, for a model.")
@click.option(
    "--tasks",
    default=_DEFAULTS.tasks,
    show_default=True,
    type=click.IntRange(0),
    help="Tasks wanted at most.",
)
@click.option("--seed", default=0, show_default=True, help="Of made-up values.")
@click.option(
    "--rate",
    "calls_per_second",
    default=_DEFAULTS.calls_per_second,
    show_default=True,
    help="Calls per second at most.",
)
@click.option(
    "--call-seconds",
    default=_DEFAULTS.call_timeout_seconds,
    show_default=True,
    help="A call without an answer for so long counts as hung.",
)
@click.option("--profile", type=EXISTING, metavar="FILE", help="Explore as this edited profile says.")
@click.option(
    "--write-profile", type=_FILE, metavar="FILE", help="Write the server's profile as YAML and call nothing."
)
@click.option("--force", is_flag=True, help="Let --write-profile replace a file that is there.")
@click.option("--out", type=_FILE, metavar="FILE", help="Write the tasks there, a JSON object a line.")
@click.option(
    "--health",
    type=_FILE,
    metavar="FILE",
    help="Write the health report there for the server's author: text, JSON where FILE ends in .json.",
)
@click.option("--sarif", type=_FILE, metavar="FILE", help="Write the health report there as SARIF.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Write the health report there as JUnit XML.")
@click.option("--learn/--no-learn", default=True, help="Whether skills are made of the tasks.")
@click.option(
    "--ci",
    is_flag=True,
    help="Do not ask, learn nothing, and exit with 1 on findings as bad as --fail-on.",
)
@click.option(
    "--fail-on",
    default="error",
    type=click.Choice(["error", "warning", "note"]),
    show_default=True,
    help="For --ci.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@session_command
def explore(
    session: Session,
    *,
    server: str,
    budget_calls: int,
    difficulty: str,
    style: str,
    tasks: int,
    seed: int,
    calls_per_second: float,
    call_seconds: float,
    profile: Path | None,
    write_profile: Path | None,
    force: bool,
    out: Path | None,
    health: Path | None,
    sarif: Path | None,
    junit: Path | None,
    learn: bool,
    ci: bool,
    fail_on: str,
    yes: bool,
) -> int:
    """Explore a SERVER that nobody has tasks for: what it can do, tasks with checked solutions, its health.

    Only tools that may repeat are called, in fresh processes: those that are pure or read, and all of
    a server that a fresh process restores. It shows what it would call and asks. Skills come of the
    tasks by the normal admission. Health findings name the call that shows them.

    \b
    Examples:
      skillbank explore clock
      skillbank explore clock --budget-calls 200 --out tasks.jsonl --sarif health.sarif --yes
      skillbank explore clock --ci --fail-on warning --junit health.xml
    """
    files = {"--out": out, "--health": health, "--sarif": sarif, "--junit": junit}
    check_folders({"--write-profile": write_profile, **files})
    try:
        options = ExplorationOptions(
            budget_calls=budget_calls,
            tasks=0 if ci and out is None else tasks,
            difficulty=cast("Difficulty", int(difficulty)),
            style=style,
            seed=seed,
            calls_per_second=calls_per_second,
            call_timeout_seconds=call_seconds,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    asked = Exploration(server, options, learn=learn and not ci)
    if profile is not None:
        asked = _as_profiled(asked, parse_profile(profile))
    if write_profile is not None:
        if write_profile.exists() and not force:
            raise click.UsageError(f"{write_profile} is there already; --force replaces it")
        return _describe(session, asked, write_profile)
    if not (yes or ci):
        _ask(session, asked)
    report = session.with_bank(lambda bank: bank.explore(asked))
    threshold = cast("Severity", fail_on)
    try:
        report = _written(report, files, threshold if ci else "warning")
    except OSError as error:
        session.show(report, render_exploration)
        session.say(f"not everything was written: {error}")
        return FAILED
    session.show(report, render_exploration)
    if ci and report.health.reaches(threshold):
        return 1
    if report.withheld and not ci:
        return MISUSE
    return WORLD if report.unreachable else 0


def _as_profiled(asked: Exploration, profile: Profile) -> Exploration:
    """Return the exploration as an edited profile wants it; what the command line says goes first.

    Raises:
        ProfileRejected: it is another server's.
    """
    if profile.name != asked.server:
        said = f"the profile is that of {profile.name!r}, not of {asked.server!r}: 'name' says whose it is"
        raise ProfileRejected(said)
    wanted, context = profile.preference, click.get_current_context()
    is_said = {
        name: context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        for name in ("difficulty", "style")
    }
    options = replace(
        asked.options,
        difficulty=asked.options.difficulty if is_said["difficulty"] else wanted.difficulty,
        style=asked.options.style if is_said["style"] else wanted.style,
        most_calls=wanted.operations,
        most_entities=wanted.entities,
        chain_length=wanted.operations,
        background=profile.background,
        meanings=profile.meanings(),
    )
    return replace(asked, options=options, only=profile.tools(), entities=profile.entity_of())


def _describe(session: Session, asked: Exploration, path: Path) -> int:
    """Write the server's profile and call nothing."""
    described = session.with_bank(lambda bank: bank.profile_server(asked))
    write_whole(path, render_profile(described).encode())
    told = f"wrote {path}: edit it, then skillbank explore {asked.server} --profile {path}"
    session.show(described, lambda console, _: console.print(told, markup=False, soft_wrap=True))
    return 0


def _ask(session: Session, asked: Exploration) -> None:
    """Show what would be called and ask; without a person at hand only --yes lets it begin."""
    plan = session.with_bank(lambda bank: bank.plan_exploration(asked))
    render_plan(session.err, plan)
    if not session.interactive:
        raise NeedsApproval("nothing was called: look at what would be, then say --yes")
    if not session.confirm("Explore it?"):
        raise NeedsApproval("nothing was called")


def _written(
    report: ExplorationReport,
    wanted: Mapping[str, Path | None],
    fail_on: Severity,
) -> ExplorationReport:
    """Write what is wanted, by option; return the report with the files named."""
    files: dict[str, str] = {}
    for option, path in wanted.items():
        if path is not None:
            write_whole(path, _file_text(report, option, path, fail_on).encode())
            files[{"--out": "tasks"}.get(option, option.removeprefix("--"))] = str(path)
    return report.model_copy(update={"files": files})


def _file_text(report: ExplorationReport, option: str, path: Path, fail_on: Severity) -> str:
    match option:
        case "--out":
            return render_tasks(report.tasks)
        case "--sarif":
            return render_sarif(report.health, version("skillbank"))
        case "--junit":
            return render_junit(report.health, fail_on)
        case "--health" if path.suffix == ".json":
            return report.health.model_dump_json(indent=2) + "\n"
        case _:
            return render_health(report.health)

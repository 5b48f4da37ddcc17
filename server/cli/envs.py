"""The commands on environments: serve them to trainers and agents of others, list which there are."""

from __future__ import annotations

from pathlib import Path

import click
from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.text import Text

from server.cli.options import session_command
from server.cli.render import plain
from server.cli.service import ADDRESS
from server.cli.session import Session
from server.progress import Progress

__all__ = ["EnvironmentsReport", "envs"]


class ListedEnvironment(BaseModel):
    """One environment that can be served."""

    model_config = ConfigDict(frozen=True)

    name: str
    about: str
    fetched: bool
    """Whether its packages are here; else serving it fetches them."""


class EnvironmentsReport(BaseModel):
    """Answer of `envs list`."""

    model_config = ConfigDict(frozen=True)

    environments: tuple[ListedEnvironment, ...]


@click.group()
def envs() -> None:
    """Serve environments that others train and test agents in: tasks, tools and rewards."""


@envs.command("list")
@session_command
def list_environments(session: Session) -> int:
    """List the environments that come with other packages, and whether those are fetched.

    Your own are files of tasks over your configured servers: envs serve --tasks NAME=FILE.
    """
    from server.environments.definitions import BUILT_IN, is_fetched

    listed = tuple(
        ListedEnvironment(name=name, about=about, fetched=is_fetched(name))
        for name, about in BUILT_IN.items()
    )
    session.show(EnvironmentsReport(environments=listed), _render)
    return 0


@envs.command("serve")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--tasks",
    multiple=True,
    metavar="NAME=FILE",
    help="Serve a file's tasks over the configured servers, under this name. Can be given several times.",
)
@click.option(
    "--http",
    "address",
    type=ADDRESS,
    default="127.0.0.1:8790",
    show_default=True,
    metavar="HOST:PORT",
    help="Where; only on this machine. Port 0 picks a free one.",
)
@click.option(
    "--max-instances", type=click.IntRange(1), default=32, show_default=True, help="Instances at once."
)
@click.option(
    "--max-steps", type=click.IntRange(1), default=200, show_default=True, help="Steps of one episode."
)
@click.option(
    "--max-message-bytes",
    type=click.IntRange(1024),
    default=4 * 2**20,
    show_default=True,
    help="Of one message, either way.",
)
@click.option(
    "--idle-seconds",
    type=click.FloatRange(0, min_open=True),
    default=3600.0,
    show_default=True,
    help="After so long without a request an instance is ended.",
)
@click.option(
    "--step-seconds",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    help="Bound of one step; an instance that needs longer is ended.",
)
@session_command
def serve_envs(
    session: Session,
    *,
    names: tuple[str, ...],
    tasks: tuple[str, ...],
    address: tuple[str, int],
    max_instances: int,
    max_steps: int,
    max_message_bytes: int,
    idle_seconds: float,
    step_seconds: float,
) -> int:
    """Serve environments over OpenEnv's wire, and AgentEvolver's under /agentevolver.

    NAME is one of those that skillbank envs list shows; its packages are fetched when they are not
    here. Each instance is a process of its own with tool servers of its own. The first environment is
    served at the address itself, every one also under its name. Tools that are not free can be called
    where their server has a reset mode or they are allowed (skillbank effects set).

    \b
    Examples:
      skillbank envs serve --tasks mine=tasks.jsonl
      skillbank envs serve bfcl tau-retail --max-instances 16
    """
    from server.environments.definitions import Definition, built_in, of_task_file
    from server.environments.errors import EnvironmentFailure
    from server.environments.limits import Limits
    from server.environments.serving import serve_environments
    from server.surface import AddressUnusable

    def say(progress: Progress) -> None:
        session.say(progress.message)

    chosen: dict[str, Definition] = {}
    try:
        for given in tasks:
            name, file = _named(given)
            chosen[name] = of_task_file(name, file, session.settings)
        for name in names:
            chosen[name] = built_in(name, session.settings, say)
    except EnvironmentFailure as error:
        raise click.UsageError(str(error)) from error
    if not chosen:
        raise click.UsageError("name an environment (skillbank envs list), or give --tasks NAME=FILE")
    limits = Limits(
        instances=max_instances,
        steps=max_steps,
        message_bytes=max_message_bytes,
        idle_seconds=idle_seconds,
        step_seconds=step_seconds,
    )

    def tell(url: str) -> None:
        session.say(f"environments at {url}: {', '.join(chosen)}")

    async def work() -> None:
        try:
            await serve_environments(chosen, limits, address, tell)
        except AddressUnusable as error:
            raise click.UsageError(str(error)) from error

    session.run(work)
    return 0


_RESERVED = frozenset({"agentevolver", "health", "metadata", "schema", "reset", "step", "state", "mcp", "ws"})


def _named(text: str) -> tuple[str, Path]:
    name, equals, file = text.partition("=")
    if not (equals and file and name.isascii() and name.replace("-", "").replace("_", "").isalnum()):
        raise click.BadParameter(f"{text!r} is not NAME=FILE", param_hint="--tasks")
    if name in _RESERVED:
        raise click.BadParameter(f"{name!r} is a route of the wire: choose another", param_hint="--tasks")
    return name, Path(file)


def _render(out: Console, report: EnvironmentsReport) -> None:
    for one in report.environments:
        state = "fetched" if one.fetched else "fetched when it is first served"
        out.print(Text(f"{one.name:<12} {plain(one.about)} ({state})"), soft_wrap=True)

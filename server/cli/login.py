"""Commands that log a person in to a server over HTTP, and out again."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING

import click
from anyio import to_thread

from catalog.config import ServerSpec, expand, save_config
from server.cli.adoption import Choice, adopt
from server.cli.answers import LoginReport, LogoutReport
from server.cli.options import session_command
from server.cli.render_servers import render_login, render_logout
from server.cli.session import Session

if TYPE_CHECKING:
    from catalog.login import LoggedIn, LoggedOut

__all__ = ["log_in_to", "login", "logout"]

_WAIT_SECONDS = 300.0


@click.command()
@click.argument("server")
@click.option("--no-browser", is_flag=True, help="Only show the address to open; open no browser.")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=_WAIT_SECONDS,
    show_default=True,
    help="Seconds until the login is given up.",
)
@session_command
def login(session: Session, *, server: str, no_browser: bool, wait_seconds: float) -> int:
    """Log in to SERVER, one that is reached over HTTP and asks for OAuth.

    Opens the login in your browser and waits for it to come back to an address of this machine.
    The tokens are kept in the keyring of the operating system where there is one, else in a file
    that only you can read; they are renewed by themselves. At a terminal, classes are then proposed
    for the tools of a server that has none.

    \b
    Examples:
      skillbank login search
      skillbank login search --no-browser
    """
    spec = _spec(session, server)
    found = log_in_to(session, spec, browser=not no_browser, wait_seconds=wait_seconds)
    if found.status == "logged_in" and session.interactive:
        _classify(session, server)
    place = None if spec.secrets is None else spec.secrets.place
    report = LoginReport(server=server, status=found.status, scopes=found.scopes, kept_in=place)
    session.show(report, render_login)
    return 0


@click.command()
@click.argument("server")
@session_command
def logout(session: Session, *, server: str) -> int:
    """Forget the login to SERVER, and have its tokens revoked where the server offers that."""
    from catalog.login import log_out

    spec = _spec(session, server)

    async def work() -> LoggedOut:
        return await log_out(spec)

    done = session.run(work)
    session.show(
        LogoutReport(server=server, was_logged_in=done.was_logged_in, revoked=done.revoked), render_logout
    )
    return 0


def log_in_to(
    session: Session, spec: ServerSpec, *, browser: bool, wait_seconds: float = _WAIT_SECONDS
) -> LoggedIn:
    """Log in to an expanded server, with the address shown and a browser opened on it.

    Raises:
        LoginFailed: the login came to nothing.
        SecretsUnusable: the tokens cannot be kept.
    """
    from catalog.login import log_in

    async def visit(url: str) -> None:
        session.say(f"log in to {spec.name} here: {url}")
        if browser and not await to_thread.run_sync(webbrowser.open, url):
            session.say("no browser could be opened: open the address yourself, on this machine")

    async def work() -> LoggedIn:
        return await log_in(spec, visit, wait_seconds=wait_seconds)

    return session.run(work)


def _classify(session: Session, server: str) -> None:
    """Propose classes for the tools of a server that nobody could list before, where it has none."""
    config = session.settings.load_config()
    if server in config.effects.effects:
        return
    probed = session.run(lambda: session.wiring.probe([config.servers[server]], session.settings))
    adopted = adopt(session, probed, config.document, Choice(take_proposal=False, effects_file=None))
    session.wiring.remember(probed, session.settings)
    save_config(adopted.document, session.settings.config_path)


def _spec(session: Session, server: str) -> ServerSpec:
    """Return a configured server, expanded, with a place for its tokens.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    config = session.settings.load_config()
    if server not in config.servers:
        known = ", ".join(sorted(config.servers)) or "none"
        raise click.UsageError(f"no server {server!r} is configured; there are: {known}")
    kept = config.keeping(session.settings.open_secrets()).servers[server]
    session.ask_inputs([kept])
    return expand(kept, session.settings.environment)

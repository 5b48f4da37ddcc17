"""Commands on what tools do to the world: effect classes, reset modes, standing consents."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase

import click

from catalog.config import save_config, with_allow, with_effects, with_reset
from catalog.effects import Effect, EffectTable, Reset
from catalog.tools import ToolId
from server.cli.options import session_command
from server.cli.render_servers import render_effects
from server.cli.session import Session
from server.reports import EffectsReport, ToolEffect

__all__ = ["effects"]


@click.group()
def effects() -> None:
    """Show and change what tools do to the world: pure, read, write or unknown.

    Only pure and read tools are repeated in a repair. The rest run once, and only with consent.
    """


@effects.command("list")
@session_command
def list_effects(session: Session) -> int:
    """List the effect class of every known tool and where it comes from."""
    report = session.with_bank(lambda bank: bank.list_effects())
    session.show(report, render_effects)
    return 0


@effects.command("set")
@click.argument("target", metavar="SERVER[/TOOL]")
@click.argument("effect", metavar="[CLASS]", required=False, type=click.Choice([e.value for e in Effect]))
@click.option(
    "--reset",
    type=click.Choice([mode.value for mode in Reset]),
    help="How the server's state is restored: by a fresh process, with private folders too, or not.",
)
@click.option(
    "--allow/--no-allow",
    default=None,
    help="Whether plans may run these tools once without asking, though they are not free.",
)
@session_command
def set_effects(
    session: Session, *, target: str, effect: str | None, reset: str | None, allow: bool | None
) -> int:
    """Set the class of SERVER/TOOL, or of every tool of SERVER that has none of its own.

    TOOL may be a pattern such as 'get_*'. CLASS is pure (same answer for the same arguments),
    read, write or unknown. Kept in the configuration under 'skillbank', which other hosts ignore.

    \b
    Examples:
      skillbank effects set clock pure
      skillbank effects set 'tables/get_*' read
      skillbank effects set tables --reset process
      skillbank effects set mail/send --allow
    """
    server, _, pattern = target.partition("/")
    if effect is None and reset is None and allow is None:
        raise click.UsageError("give a CLASS, --reset or --allow")
    if reset is not None and pattern:
        raise click.UsageError("--reset is of a whole server: give SERVER without a tool")
    config = session.settings.load_config()
    if server not in config.servers:
        known = ", ".join(sorted(config.servers)) or "none"
        raise click.UsageError(f"no server {server!r} is configured; there are: {known}")
    document = config.document
    tools = pattern or "*"
    if effect is not None:
        document = with_effects(document, server, {tools: Effect(effect)})
    if reset is not None:
        document = with_reset(document, server, Reset(reset))
    if allow is not None:
        document = with_allow(document, server, tools, allowed=allow)
    save_config(document, session.settings.config_path)
    if effect is not None:
        session.with_bank(lambda bank: bank.recheck_effects(server, tools))
    if pattern:
        _doubt_unknown(session, server, pattern)
    session.show(_configured(session.settings.load_config().effects, server), render_effects)
    return 0


def _doubt_unknown(session: Session, server: str, pattern: str) -> None:
    """Say so when a server's tools are known and none of them is meant: most likely a slip."""
    report = session.with_bank(lambda bank: bank.list_effects())
    known = [effect.tool for effect in report.effects if effect.server == server]
    if known and not any(fnmatchcase(tool, pattern) for tool in known):
        near = ", ".join(get_close_matches(pattern, known, n=3)) or "see `skillbank effects list`"
        session.say(f"{server} listed no tool {pattern!r} when it was last asked; near: {near}. It is kept.")


def _configured(table: EffectTable, server: str) -> EffectsReport:
    """Return what the configuration now says of a server."""
    classes = table.effects.get(server, {})
    consents = [p for p in table.allow.get(server, ()) if p not in classes]
    return EffectsReport(
        effects=tuple(
            ToolEffect(
                server=server,
                tool=pattern,
                effect=table.effect(ToolId(server, pattern)),
                reason="configured"
                + (", may run once without asking" if pattern in table.allow.get(server, ()) else ""),
            )
            for pattern in (*classes, *consents)
        ),
        reset={server: table.reset_mode(server)},
    )

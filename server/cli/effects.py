"""Commands on what tools do to the world: effect classes, reset modes, standing consents."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from fnmatch import fnmatchcase

import click
from pydantic import JsonValue

from catalog.config import (
    Config,
    ResetCheck,
    save_config,
    with_allow,
    with_effects,
    with_reset,
    with_reset_check,
)
from catalog.effects import Effect, Reset
from catalog.errors import ServerUnavailable
from catalog.tools import ToolId
from server.cli.answers import ResetCheckReport
from server.cli.errors import NeedsApproval
from server.cli.options import JSON_OBJECT, TOOL_PATTERN, session_command
from server.cli.render_approvals import render_approvals
from server.cli.render_servers import render_effects, render_labels, render_reset_check, render_trial
from server.cli.session import Session
from server.reports import EffectsReport, ToolEffect
from server.reset_trial import ResetTrial, TrialCall, observers, propose_write

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


@effects.command("labels")
@session_command
def list_labels(session: Session) -> int:
    """List what every known tool does with information, and why: what the flow check goes by.

    private: gives your data. untrusted: gives text that strangers wrote. public_sink: may send text
    away. destructive: may lose something. The configuration says otherwise under 'labels', and
    grants under 'flows' what the check forbids.
    """
    report = session.with_bank(lambda bank: bank.list_labels())
    session.show(report, render_labels)
    return 0


@effects.command("set")
@click.argument("target", metavar="SERVER[/TOOL]")
@click.argument("effect", metavar="[CLASS]", required=False, type=click.Choice([e.value for e in Effect]))
@click.option(
    "--reset",
    type=click.Choice([mode.value for mode in Reset]),
    help="How the server's state is restored: by a fresh process, with private folders too, or not.",
)
@click.option("--force", is_flag=True, help="Set a reset mode that was tried and did not hold.")
@click.option(
    "--allow/--no-allow",
    default=None,
    help="Whether plans may run these tools once without asking, though they are not free.",
)
@session_command
def set_effects(
    session: Session, *, target: str, effect: str | None, reset: str | None, force: bool, allow: bool | None
) -> int:
    """Set the class of SERVER/TOOL, or of every tool of SERVER that has none of its own.

    TOOL may be a pattern such as 'get_*'. CLASS is pure (same answer for the same arguments),
    read, write or unknown. Kept in the configuration under 'skillbank', which other hosts ignore. A
    pure or read tool whose definition changes later is unknown until you set it again.

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
    config = _config_with(session, server)
    document = config.document
    tools = pattern or "*"
    if effect is not None:
        document = with_effects(document, server, {tools: Effect(effect)})
    if reset is not None:
        _check_not_refuted(config, server, Reset(reset), force=force)
        document = with_reset(document, server, Reset(reset))
    if allow is not None:
        document = with_allow(document, server, tools, allowed=allow)
    save_config(document, session.settings.config_path)
    if effect is not None:
        session.with_bank(lambda bank: bank.recheck_effects(server, tools))
    if pattern:
        _doubt_unknown(session, server, pattern)
    session.show(_configured(session.settings.load_config(), server), render_effects)
    return 0


def _config_with(session: Session, server: str) -> Config:
    config = session.settings.load_config()
    if server not in config.servers:
        known = ", ".join(sorted(config.servers)) or "none"
        raise click.UsageError(f"no server {server!r} is configured; there are: {known}")
    return config


def _check_not_refuted(config: Config, server: str, mode: Reset, *, force: bool) -> None:
    check = config.reset_checks.get(server)
    if check is not None and check.mode is mode and check.verdict == "refuted" and not force:
        raise click.UsageError(f"{check.told} (--force sets it all the same)")


def _doubt_unknown(session: Session, server: str, pattern: str) -> None:
    """Say so when a server's tools are known and none of them is meant: most likely a slip."""
    report = session.with_bank(lambda bank: bank.list_effects())
    known = [effect.tool for effect in report.effects if effect.server == server]
    if known and not any(fnmatchcase(tool, pattern) for tool in known):
        near = ", ".join(get_close_matches(pattern, known, n=3)) or "see `skillbank effects list`"
        session.say(f"{server} listed no tool {pattern!r} when it was last asked; near: {near}. It is kept.")


@effects.command("approvals")
@session_command
def list_approvals(session: Session) -> int:
    """List every standing consent to calls that are not free, and what revokes it.

    Those of the configuration ('allow', by 'effects set --allow'), and those that were remembered when
    somebody answered "always" over MCP or said 'effects approve'.
    """
    session.show(session.with_bank(lambda bank: bank.list_approvals()), render_approvals)
    return 0


@effects.command("approve")
@click.argument("target", metavar="SERVER/TOOL", type=TOOL_PATTERN)
@click.option(
    "--arguments",
    type=JSON_OBJECT,
    metavar="JSON|@FILE",
    help="What the arguments must be, texts as patterns such as 'notes_*'; a call with others is asked "
    "about. Default: whatever they are.",
)
@session_command
def approve_calls(session: Session, *, target: str, arguments: dict[str, JsonValue] | None) -> int:
    """Let one tool that is not free run once per command without asking, until it changes.

    \b
    Examples:
      skillbank effects approve mail/send
      skillbank effects approve tables/insert_row --arguments '{"table": "notes_*", "row": "*"}'
    """
    server, _, tool = target.partition("/")
    _config_with(session, server)
    report = session.with_bank(lambda bank: bank.approve_calls(ToolId(server, tool), arguments))
    session.show(report, render_approvals)
    return 0


@effects.command("revoke")
@click.argument("approval", metavar="ID|SERVER/TOOL")
@session_command
def revoke_approval(session: Session, *, approval: str) -> int:
    """Take back a standing consent, named as 'effects approvals' lists it."""
    server, slash, pattern = approval.partition("/")
    if slash:
        config = _config_with(session, server)
        if pattern not in config.effects.allow.get(server, ()):
            raise click.UsageError(
                f"the configuration does not allow {approval}: see skillbank effects approvals"
            )
        document = with_allow(config.document, server, pattern, allowed=False)
        save_config(document, session.settings.config_path)
        report = session.with_bank(lambda bank: bank.list_approvals())
    else:
        report = session.with_bank(lambda bank: bank.revoke_approval(approval))
    session.show(report, render_approvals)
    return 0


class _ToolCall(click.ParamType[TrialCall]):
    """TOOL, or TOOL=JSON with its arguments."""

    name = "tool=json"

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> TrialCall:
        tool, _, arguments = str(value).partition("=")
        return TrialCall(tool, JSON_OBJECT.convert(arguments or "{}", param, ctx))


@effects.command("verify")
@click.argument("server")
@click.option(
    "--reset",
    type=click.Choice([mode.value for mode in Reset if mode is not Reset.NONE]),
    help="The mode to try. Default: the configured one.",
)
@click.option(
    "--write",
    "writes",
    multiple=True,
    type=_ToolCall(),
    metavar="TOOL=JSON",
    help="A call that changes something; several are made in order. Default: one is proposed.",
)
@click.option(
    "--read",
    "reads",
    multiple=True,
    type=_ToolCall(),
    metavar="TOOL=JSON",
    help="A call that shows the change. Default: the read tools that need no arguments.",
)
@click.option("--yes", "-y", is_flag=True, help="Make the calls without asking.")
@session_command
def verify_reset(
    session: Session,
    *,
    server: str,
    reset: str | None,
    writes: tuple[TrialCall, ...],
    reads: tuple[TrialCall, ...],
    yes: bool,
) -> int:
    """Try whether a fresh process of SERVER really restores it, as its reset mode claims.

    Writes in one fresh process, looks whether the next one still shows it, and whether files
    changed in the working folder, in HOME or in paths the server is given. Shows the calls and asks
    before any is made. The verdict is kept with its date in the configuration; a mode that does not
    hold is withdrawn. Exit code 0 only when it holds.

    \b
    Examples:
      skillbank effects verify notes --reset process
      skillbank effects verify notes --write 'add_note={"text": "x"}' --read list_notes
    """
    config = _config_with(session, server)
    mode = Reset(reset) if reset is not None else config.effects.reset_mode(server)
    if mode is Reset.NONE:
        raise click.UsageError(f"{server} has no reset mode: say which to try with --reset")
    spec = config.keeping(session.settings.open_secrets()).servers[server]
    session.ask_inputs([spec])
    trial = _trial(session, config, ResetTrial(spec, mode, writes, reads))
    if not session.as_json:
        render_trial(session.err, trial)
    if not (yes or (session.interactive and session.confirm("Make these calls in fresh processes?"))):
        raise NeedsApproval("nothing was called: say --yes to make these calls")
    found = session.run(lambda: session.wiring.try_reset(trial, session.settings))
    check = ResetCheck(mode, found.verdict, date.today().isoformat(), found.why)
    withdrawn = found.verdict == "refuted" and config.effects.reset_mode(server) is mode
    save_config(with_reset_check(config.document, server, check), session.settings.config_path)
    report = ResetCheckReport(
        server=server,
        mode=mode,
        verdict=found.verdict,
        why=found.why,
        on=check.on,
        withdrawn=withdrawn,
    )
    session.show(report, render_reset_check)
    return 0 if found.verdict == "holds" else 1


def _trial(session: Session, config: Config, asked: ResetTrial) -> ResetTrial:
    """Return the trial with what was not said filled in from the tools that the server lists."""
    if asked.writes and asked.reads:
        return asked
    (probed,) = session.run(lambda: session.wiring.probe([asked.spec], session.settings))
    if probed.status == "unreachable":
        raise ServerUnavailable(asked.spec.name, "; ".join(probed.problems) or "it does not answer")
    proposed = None if asked.writes else propose_write(probed.tools, config.effects)
    trial = replace(
        asked,
        writes=asked.writes or ((proposed,) if proposed is not None else ()),
        reads=asked.reads or observers(probed.tools, config.effects),
    )
    if not trial.writes:
        raise click.UsageError("no tool is known to write that could be tried: name a call with --write")
    if not trial.reads:
        raise click.UsageError("no read tool works without arguments: name a call with --read")
    return trial


def _configured(config: Config, server: str) -> EffectsReport:
    """Return what the configuration now says of a server."""
    table = config.effects
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
        reset_checks={name: check.told for name, check in config.reset_checks.items() if name == server},
    )

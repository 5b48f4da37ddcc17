"""The command that takes over the tool servers of other hosts, shown before any is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from pydantic import JsonValue

from catalog.config import (
    Config,
    ConfigDocument,
    ServerSpec,
    load_config,
    parse_servers,
    save_config,
    with_inputs,
    with_server,
)
from catalog.errors import ConfigError
from server.cli.adoption import Choice, adopt, effects_option, yes_option
from server.cli.answers import AddedServer, InitReport, PlannedImport, SkippedImport
from server.cli.options import EXISTING, session_command
from server.cli.render_servers import render_init, render_plan
from server.cli.session import Session
from server.host_files import HostFile, ImportPlan, host_files, plan_import, read_host_file

__all__ = ["init"]

_NEEDS_APPROVAL = 3


@click.command()
@click.option(
    "--from",
    "files",
    multiple=True,
    type=EXISTING,
    metavar="FILE",
    help="A configuration to take over. Default: those of the hosts found on this machine.",
)
@yes_option
@effects_option
@session_command
def init(session: Session, *, files: tuple[Path, ...], yes: bool, effects_file: Path | None) -> int:
    """Take over the tool servers that your other MCP hosts already have.

    Reads the files of Claude Desktop, Claude Code (user, project and local scope), Cursor, VS Code
    and Codex and shows what each server would start before anything is started. Those files are not
    changed. At a terminal you are asked for the inputs that VS Code servers need.

    \b
    Examples:
      skillbank init
      skillbank init --from .mcp.json --yes
    """
    path = session.settings.config_path
    config = load_config(path, missing_ok=True)
    plan, unread = _plan(session, files, config)
    if not session.as_json:
        render_plan(session.err, plan)
    approved = bool(plan.servers) and _is_approved(session, plan, yes=yes)
    imported = _take_over(session, plan, config.document, Choice(yes, effects_file)) if approved else ()
    skipped = (
        *(SkippedImport(server=s.name, file=str(s.file.path), reason=s.reason) for s in plan.skipped),
        *unread,
    )
    report = InitReport(
        planned=tuple(
            PlannedImport(
                server=s.spec.name,
                starts=s.spec.launch,
                file=str(s.file.path),
                asks=tuple(str(asked["id"]) for asked in s.inputs),
            )
            for s in plan.servers
        ),
        imported=imported,
        skipped=skipped,
        config=str(path),
    )
    session.show(report, render_init)
    return _NEEDS_APPROVAL if plan.servers and not approved else 0


def _plan(
    session: Session, files: tuple[Path, ...], config: Config
) -> tuple[ImportPlan, tuple[SkippedImport, ...]]:
    """Return the plan over the named files, or over those found; a found one that is wrong is skipped."""
    named = [HostFile("named", path) for path in files]
    ours = session.settings.config_path.resolve()
    found = [
        file
        for file in host_files(Path.home(), Path.cwd(), session.settings.environment)
        if file.path.is_file() and file.path.resolve() != ours
    ]
    documents: list[tuple[HostFile, ConfigDocument]] = []
    unread: list[SkippedImport] = []
    for file in named or found:
        try:
            documents.append((file, read_host_file(file)))
        except ConfigError as error:
            if named:
                raise
            session.say(str(error))
            unread.append(SkippedImport(server=None, file=str(file.path), reason=str(error)))
    asked = config.document.get("inputs")
    plan = plan_import(documents, tuple(config.servers), asked if isinstance(asked, list) else ())
    return plan, tuple(dict.fromkeys(unread))


def _is_approved(session: Session, plan: ImportPlan, *, yes: bool) -> bool:
    if yes:
        return True
    if session.interactive:
        return session.confirm(
            f"Add these {len(plan.servers)} servers, and start each once to list its tools?"
        )
    session.say("Nobody could be asked, so nothing was started or added: say --yes to do it.")
    return False


def _take_over(
    session: Session, plan: ImportPlan, document: dict[str, JsonValue], choice: Choice
) -> tuple[AddedServer, ...]:
    for server in plan.servers:
        document = with_inputs(with_server(document, server.spec.name, server.entry), server.inputs)
    specs = _our_specs(session, plan, document)
    session.ask_inputs(specs)
    probed = session.run(lambda: session.wiring.probe(specs, session.settings))
    adopted = adopt(session, probed, document, choice)
    session.wiring.remember(probed, session.settings)
    save_config(adopted.document, session.settings.config_path)
    return adopted.servers


def _our_specs(session: Session, plan: ImportPlan, document: dict[str, JsonValue]) -> list[ServerSpec]:
    """Return the servers that would be started, as our configuration will read them."""
    ours = parse_servers(ConfigDocument(session.settings.config_path, document, lines={}))
    names = [server.spec.name for server in plan.servers if not server.spec.disabled]
    return [replace(ours[name], secrets=session.settings.open_secrets()) for name in names]

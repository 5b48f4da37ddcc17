"""Commands on tool servers: add one, see how all are. Taking over those of other hosts is `init`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from pydantic import JsonValue

from catalog.config import (
    ConfigDocument,
    expand,
    load_config,
    name_problem,
    parse_servers,
    save_config,
    with_server,
)
from catalog.errors import NeedsLogin, ServerUnavailable
from server.cli.adoption import Choice, adopt, effects_option, yes_option
from server.cli.login import log_in_to
from server.cli.model_speed import with_local_models
from server.cli.options import session_command
from server.cli.render_servers import render_added, render_doctor
from server.cli.session import Session

__all__ = ["add", "doctor"]


class _Pair(click.ParamType[tuple[str, str]]):
    """KEY=VALUE."""

    name = "key=value"

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        key, equals, text = str(value).partition("=")
        if not (key and equals):
            self.fail(f"{value!r} is not KEY=VALUE", param, ctx)
        return key, text


@click.command()
@session_command
def doctor(session: Session) -> int:
    """Connect to every configured server and say how it is.

    Of each: protocol, start time, tools, those quarantined and why, how many say what they do, what a
    strict host would refuse, changes, the latest calls that failed by the server. The models that play a
    role are looked at too: reachable, what structured answers they enforce, and of local ones the tokens
    per second. Exit code 1 when any of them, or the configuration, is not well; what strict hosts refuse
    does not count.
    """
    report = with_local_models(session, session.with_bank(lambda bank: bank.doctor()))
    session.show(report, render_doctor)
    well = all(server.status in ("ok", "idle") for server in report.servers)
    usable = all(model.usable for model in report.models)
    return 0 if well and usable and not report.problems else 1


@click.command()
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ARGS...]")
@click.option("--url", metavar="URL", help="Address of a server over HTTP (over SSE when it ends in /sse).")
@click.option(
    "--header", "headers", multiple=True, type=_Pair(), metavar="KEY=VALUE", help="Sent with each request."
)
@click.option(
    "--env", "variables", multiple=True, type=_Pair(), metavar="KEY=VALUE", help="Set for the command."
)
@click.option("--force", is_flag=True, help="Write it although the name is taken or it cannot be started.")
@yes_option
@effects_option
@session_command
def add(
    session: Session,
    *,
    name: str,
    command: tuple[str, ...],
    url: str | None,
    headers: tuple[tuple[str, str], ...],
    variables: tuple[tuple[str, str], ...],
    force: bool,
    yes: bool,
    effects_file: Path | None,
) -> int:
    """Add a tool server called NAME: start it once, list its tools, propose what they do.

    Keep secrets out of the file: '${TOKEN}' in single quotes is read from the environment when the
    server starts.

    \b
    Examples:
      skillbank add clock -- mcp-server-time --local-timezone Europe/Berlin
      skillbank add search --url https://example.org/mcp --header 'Authorization=Bearer ${TOKEN}'
    """
    path = session.settings.config_path
    config = load_config(path, missing_ok=True)
    if (problem := name_problem(name)) is not None:
        raise click.UsageError(problem)
    if name in config.servers and not force:
        raise click.UsageError(f"server {name!r} is there already: replace it with --force")
    entry = _entry(command, url, dict(headers), dict(variables))
    asked: dict[str, JsonValue] = {"inputs": config.document.get("inputs", [])}
    document = ConfigDocument(path, {**asked, "mcpServers": {name: entry}}, lines={})
    spec = parse_servers(document)[name]
    if spec.is_ourselves:
        raise click.UsageError("this would start skillbank itself, which would start itself again")
    session.say(f"starting {name}: {spec.launch}")
    spec = replace(spec, secrets=session.settings.open_secrets())
    session.ask_inputs([spec])
    probed = session.run(lambda: session.wiring.probe([spec], session.settings))
    if (
        probed[0].needs_login
        and session.interactive
        and session.confirm(f"{name} needs a login. Log in now?")
    ):
        log_in_to(session, expand(spec, session.settings.environment), browser=True)
        probed = session.run(lambda: session.wiring.probe([spec], session.settings))
    if probed[0].needs_login and not force:
        raise NeedsLogin(name, f"not added; --force adds it all the same, then: skillbank login {name}")
    if probed[0].status == "unreachable" and not force:
        why = "; ".join(p.removeprefix(f"{name}: ") for p in probed[0].problems) or "it does not answer"
        raise ServerUnavailable(name, f"{why} (not added; --force adds it all the same)")
    changed = with_server(config.document, name, entry)
    adopted = adopt(session, probed, changed, Choice(yes, effects_file))
    session.wiring.remember(probed, session.settings)
    save_config(adopted.document, path)
    session.show(adopted.servers[0], render_added)
    return 0


def _entry(
    command: tuple[str, ...], url: str | None, headers: dict[str, str], variables: dict[str, str]
) -> dict[str, JsonValue]:
    if bool(command) == bool(url):
        raise click.UsageError("give either a command after -- or --url")
    if headers and not url:
        raise click.UsageError("--header goes with --url")
    if variables and url:
        raise click.UsageError("--env goes with a command")
    entry: dict[str, JsonValue] = {"url": url} if url else {"command": command[0], "args": list(command[1:])}
    if headers:
        entry["headers"] = dict(headers)
    if variables:
        entry["env"] = dict(variables)
    return entry

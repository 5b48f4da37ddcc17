"""Commands that run the whole: serve, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from server.cli.options import session_command
from server.cli.ports import ServeRequest
from server.cli.session import Session
from server.surface_options import SurfaceOptions, ToolSchemas

__all__ = ["ADDRESS", "demo", "serve"]


class _Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, the host in brackets when it is an IPv6 address."""

    name = "host:port"

    def convert(
        self,
        value: Any,  # noqa: ANN401
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, int]:
        host, colon, port = str(value).rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        if not (colon and bare and port.isascii() and port.isdigit() and int(port) < 65_536):
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)
        return bare, int(port)


ADDRESS = _Address()


@click.command()
@click.option("--http", "address", type=ADDRESS, metavar="HOST:PORT", help="Over HTTP. Default: stdio.")
@click.option(
    "--publish",
    type=click.IntRange(min=0),
    metavar="N",
    help="List at most N skills as tools, those with the most successes. Default: as configured, else 12.",
)
@click.option(
    "--publish-tools",
    type=click.Choice(["portable", "original"]),
    is_flag=False,
    flag_value="portable",
    help="List the tools of your servers too, as a gateway. original: with their own input schemas.",
)
@click.option(
    "--bare",
    multiple=True,
    metavar="SERVER",
    help="List this server's tools under their own names where those are free. Can be given several times.",
)
@click.option("--no-token", is_flag=True, help="Ask for no token over HTTP; only on this machine.")
@click.option(
    "--issuer",
    metavar="URL",
    help="Take tokens of this OAuth authorization server instead; each subject has a bank of its own.",
)
@click.option(
    "--resource", metavar="URL", help="Public address that those tokens are for. Default: that of --http."
)
@click.option(
    "--admin", is_flag=True, help="Also offer tools that add and remove servers and decide on skills."
)
@click.option(
    "--telemetry",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Add a line of JSON for each span there. OTEL_EXPORTER_OTLP_ENDPOINT sends them too (extra otel).",
)
@click.option("--telemetry-content", is_flag=True, help="Spans hold arguments and results too.")
@session_command
def serve(
    session: Session,
    *,
    address: tuple[str, int] | None,
    publish: int | None,
    publish_tools: ToolSchemas | None,
    bare: tuple[str, ...],
    no_token: bool,
    issuer: str | None,
    resource: str | None,
    admin: bool,
    telemetry: Path | None,
    telemetry_content: bool,
) -> int:
    """Offer the bank as an MCP server, over stdio unless --http says where.

    \b
    Examples:
      skillbank serve
      skillbank serve --http 127.0.0.1:8765
      skillbank serve --http 127.0.0.1:8765 --issuer https://login.example.org
      skillbank serve --publish 40
      skillbank serve --publish-tools --bare github
    In an MCP client's configuration:
      {"mcpServers": {"skillbank": {"command": "skillbank", "args": ["serve"]}}}
    """
    servers = session.settings.load_config().servers
    if unknown := [server for server in bare if server not in servers]:
        raise click.BadParameter(f"no server {unknown[0]!r} is configured", param_hint="--bare")
    if bare and publish_tools is None:
        raise click.UsageError("--bare names servers whose tools are listed: it needs --publish-tools")
    if address is None and (no_token or issuer is not None):
        raise click.UsageError("--no-token and --issuer go with --http")
    if resource is not None and issuer is None:
        raise click.UsageError("--resource goes with --issuer")
    if no_token and issuer is not None:
        raise click.UsageError("give --no-token or --issuer, not both")
    options = SurfaceOptions(publish_tools, publish, bare=frozenset(bare), admin=admin)
    request = ServeRequest(
        address,
        not no_token,
        _address_of(issuer),
        _address_of(resource),
        telemetry,
        telemetry_content,
        options,
    )
    session.ask_inputs(servers.values())
    session.run(lambda: session.wiring.serve(session.settings, request))
    return 0


def _address_of(url: str | None) -> str | None:
    """Return an address that is safe to send tokens to and to take keys from."""
    if url is None:
        return None
    parts = urlsplit(url)
    is_here = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if parts.hostname is None or not (parts.scheme == "https" or (parts.scheme == "http" and is_here)):
        raise click.UsageError(f"{url!r} must be an https address, or http on this machine")
    return url


@click.command()
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Keep configuration and store of the demo there. Default: a temporary folder.",
)
@click.option("--story", metavar="NAME", help="Tell only this one of the stories. Default: all.")
@session_command
def demo(session: Session, *, keep: Path | None, story: str | None) -> int:
    """See all of it on real tool servers, with no model and no key.

    Repairs workflows that fail, verifies them, compiles them to skills and calls those as a client
    would, with other arguments; exit code 1 when an answer is not right. Needs the servers of:
    pip install 'skillbank[demo]'. Your own configuration and store are not touched.

    \b
    Examples:
      skillbank demo
      skillbank demo --story litres_per_100km --keep here
    """
    return session.run(lambda: session.wiring.run_demo(session.as_json, keep, story))

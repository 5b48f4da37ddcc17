"""Commands that run the whole: serve, demo, bench."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from server.bench.run import COMPILE_PARTS, STREAM_PARTS
from server.cli.options import EXISTING, session_command
from server.cli.ports import BenchRequest, ServeRequest
from server.cli.session import Session
from server.surface_options import SurfaceOptions, ToolSchemas

__all__ = ["bench", "demo", "serve"]


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


@click.command()
@click.option("--http", "address", type=_Address(), metavar="HOST:PORT", help="Over HTTP. Default: stdio.")
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


@click.command()
@click.argument("name", default="repair")
@click.option("--quick", is_flag=True, help="A smaller size that ends within a minute; says so.")
@click.option("--tasks", type=EXISTING, metavar="FILE", help="Your own cases, in the published format.")
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Replace this benchmark's table in a Markdown file.",
)
@click.option(
    "--model",
    metavar="MODEL",
    help="For planning, evolution: whose plans, or recorded:FILE; default: those recorded with them. For"
    " stream: who plans a part of it too.",
)
@click.option(
    "--tape",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="For planning, evolution: keep the model's answers there, and go on from it when run again.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice((*COMPILE_PARTS, *STREAM_PARTS)),
    help="For compile and stream: only this part. Can be given several times. Default: all.",
)
@click.option(
    "--keep",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="For compile, evolution: go on from what this file has, and add what is finished to it.",
)
@click.option(
    "--mcp-bench",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="For evolution: a checkout of MCP-Bench's repository; its tasks that need no network run too.",
)
@session_command
def bench(
    session: Session,
    *,
    name: str,
    quick: bool,
    tasks: Path | None,
    write: Path | None,
    model: str | None,
    tape: Path | None,
    parts: tuple[str, ...],
    keep: Path | None,
    mcp_bench: Path | None,
) -> int:
    """Measure the bank and print the numbers.

    NAME is repair, catalog, search, planning, compile, evolution, stream or problems.

    repair breaks workflows on the demo's servers, or with --tasks on those of --config where it is given.
    catalog measures what relaying costs, how soon it starts, and what it leaves behind. search needs no
    server; --tasks adds rows of MedCalc-Bench. planning measures a model's plans, asked for in three ways;
    without --model it replays recorded answers. compile makes skills of recorded sessions; at full size it
    fetches more servers from the package index, into environments in the user's cache folder. So does
    evolution, which repairs weak plans among ten more servers, with every part of the search and without it.
    stream shows what curation does to skills that harm or make no difference, on simulated streams, and what
    a bank is worth over streams of recurring tasks on the demo's servers: without a model, with a simulated
    one that says so, and with --model. problems asks --model the problems of --tasks: a file of HumanEval,
    MBPP, GSM8K or MATH, as published.

    \b
    Examples:
      skillbank bench repair --quick
      skillbank bench catalog --quick
      skillbank bench repair --tasks mine.json --config mine-servers.json --json
      skillbank bench planning --model local:qwen2.5-coder-1.5b --tape plans.jsonl
      skillbank bench compile --part accuracy --keep finished.jsonl
      skillbank bench stream --part suppression
      skillbank bench evolution --keep finished.jsonl --mcp-bench mcp-bench
      skillbank bench problems --tasks HumanEval.jsonl.gz --model local:qwen2.5-coder-1.5b
    """
    settings = session.settings
    request = BenchRequest(
        name=name,
        quick=quick,
        as_json=session.as_json,
        tasks=tasks,
        config=settings.config_path if tasks is not None and settings.config_is_named else None,
        write=write,
        model=model,
        tape=tape,
        settings=settings,
        parts=parts,
        keep=keep,
        mcp_bench=mcp_bench,
    )
    return session.run(lambda: session.wiring.run_bench(request))

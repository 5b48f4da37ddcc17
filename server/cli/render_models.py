"""Draws local models for a person: which there are, what was fetched, where one is served."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from server.cli.model_answers import FetchedModel, ListedModels, RuntimeAnswer, ServingModel
from server.cli.render import plain, table
from server.reports import LocalModelReport

__all__ = ["render_fetched", "render_local_models", "render_models", "render_serving"]

_ORIGINS = {"named": "named by SKILLBANK_LLAMA_SERVER", "path": "on PATH", "built": "built here"}
_SOURCES = {
    "hub": "from its hub",
    "packages": "out of packages, none of them installed",
    "kept": "here already",
}
_MEGABYTE = 10**6


def render_models(console: Console, report: ListedModels) -> None:
    """Draw the answer of `model list`."""
    drawn = table("model", "size", "licence", "here", "running", "good for", "source")
    for model in report.models:
        urls = [server.url for server in report.running if server.model == model.name]
        drawn.add_row(
            plain(model.name, "bold"),
            f"{model.bytes / _MEGABYTE:.0f} MB",
            model.licence,
            Text("yes", "green") if model.fetched else Text("no", "dim"),
            plain(", ".join(urls) or "-"),
            plain(model.good_for),
            plain(model.source, "dim"),
        )
    console.print(drawn)
    for server in report.running:
        kind = "shared" if server.shared else "private"
        console.print(plain(f"running: {server.model} at {server.url}, process {server.pid}, {kind}"))
    console.print(Text.assemble(("in  ", "dim"), plain(report.folder)), soft_wrap=True)
    _render_runtime(console, report.runtime)


def render_fetched(console: Console, report: FetchedModel) -> None:
    """Draw the answer of `model fetch`."""
    console.print(
        Text.assemble(
            plain(report.model, "bold"),
            f": {_SOURCES[report.origin]}, SHA-256 as pinned, licence {report.licence} ",
            plain(f"({report.source})", "dim"),
        ),
        soft_wrap=True,
    )
    console.print(plain(report.path, "dim"), soft_wrap=True)
    if report.runtime is not None:
        _render_runtime(console, report.runtime)
    console.print(f"use it as  --model local:{report.model}", soft_wrap=True)


def render_serving(console: Console, report: ServingModel) -> None:
    """Draw the answer of `model serve`."""
    console.print(
        Text.assemble(
            "serving ",
            plain(report.model, "bold"),
            f" at {report.url}, {report.slots} answers at once, {report.context_tokens} tokens of context",
        ),
        soft_wrap=True,
    )
    for use, how in (
        ("skillbank", f"--model {report.local}   (finds this server)"),
        ("others", f"{report.compatible}   with SKILLBANK_API_KEY={report.key}"),
        ("curl", f"-H 'Authorization: Bearer {report.key}' {report.url}/chat/completions"),
    ):
        console.print(Text.assemble((f"  {use:<10}", "dim"), plain(how)), soft_wrap=True)
    console.print("until Ctrl-C", style="dim")


def render_local_models(console: Console, models: Sequence[LocalModelReport]) -> None:
    """Draw how fast local models are."""
    for model in models:
        console.print(
            Text.assemble(
                plain(f"local:{model.name}", "bold"),
                f"  {model.prompt_tokens_per_second:.0f} tokens/s read, "
                f"{model.generated_tokens_per_second:.1f} written; {model.slots} answers at once, "
                f"{model.context_tokens} tokens of context; ",
                "kept running by model serve" if model.shared else "started when it is needed",
            ),
            soft_wrap=True,
        )


def _render_runtime(console: Console, runtime: RuntimeAnswer | None) -> None:
    if runtime is None:
        said = plain("none yet: skillbank model fetch NAME builds it once", "yellow")
    else:
        said = plain(f"{runtime.path}, {_ORIGINS[runtime.origin]}")
    console.print(Text.assemble(("llama-server  ", "dim"), said), soft_wrap=True)

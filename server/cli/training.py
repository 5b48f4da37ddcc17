"""The commands that write training data and train a local model on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from server.cli.options import EXISTING, session_command
from server.cli.render import plain
from server.cli.session import Session
from server.training.errors import OutputUnusable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from server.bank.exchange.attributing import Attribution
    from server.training.export import ExportFormat, TrainingReport
    from server.training.launching import TrainReport

__all__ = ["export_training", "train"]

_FORMATS = ("episodes", "sft", "dpo", "grpo", "verl")
_FOLDER = click.Path(file_okay=False, path_type=Path)


class _Licence(click.ParamType[tuple[str, str]]):
    """`SERVER=LICENCE`."""

    name = "server=licence"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        server, equals, licence = str(value).partition("=")
        if not (server and equals and licence):
            self.fail(f"{value!r} is not SERVER=LICENCE", param, ctx)
        return server, licence


@click.command("training")
@click.option(
    "--output", type=_FOLDER, default=Path("training"), show_default=True, help="Folder of the export."
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(_FORMATS),
    multiple=True,
    help="Beside the episodes: files for TRL (sft, dpo, grpo) or verl. May be given several times."
    " Default: episodes, sft, dpo and grpo.",
)
@click.option(
    "--record",
    "records",
    type=EXISTING,
    multiple=True,
    help="A search that repair --record FILE wrote: all its candidates. May be given several times.",
)
@click.option(
    "--drive",
    "drives",
    type=EXISTING,
    multiple=True,
    help="What solve TASK --driver react --json printed. May be given several times.",
)
@click.option(
    "--traces",
    type=click.IntRange(min=0),
    default=10_000,
    show_default=True,
    help="Newest runs of the bank that are looked at; 0: only the files given.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(min=0),
    default=0.1,
    show_default=True,
    help="Weight of the labels of steps beside the outcome, in advantages.",
)
@click.option(
    "--attribution",
    type=click.Choice(["execution", "ablation", "judge"]),
    default="execution",
    show_default=True,
    help="Who labels steps: the run, leaving steps out (answered from memory), or models.judge.",
)
@click.option(
    "--test-share",
    type=click.FloatRange(min=0, max=1, max_open=True),
    default=0.1,
    show_default=True,
    help="Part of the families of tasks that is kept for testing.",
)
@click.option(
    "--licence",
    "licences",
    type=_Licence(),
    multiple=True,
    help="Licence of a tool server's data, for the data card. May be given several times.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@session_command
def export_training(
    session: Session,
    *,
    output: Path,
    formats: tuple[str, ...],
    records: tuple[Path, ...],
    drives: tuple[Path, ...],
    traces: int,
    alpha: float,
    attribution: str,
    test_share: float,
    licences: tuple[tuple[str, str], ...],
    force: bool,
) -> int:
    """Write what the bank has seen as training data: episodes, TRL, verl, and a data card.

    Nothing is called. Experience is stripped from all files but episodes.jsonl, secrets from every file.
    A skill that is called training is exported by: skillbank export -- training.

    \b
    Examples:
      skillbank export training
      skillbank export training --record search.jsonl --format grpo --output data
    """
    from server.bank.exchange.training import TrainingRequest
    from server.training.export import EXPORT_FORMATS, ExportOptions

    if output.exists() and any(output.iterdir()) and not force:
        raise OutputUnusable(f"{output} is there already: --force replaces its files")
    given: tuple[ExportFormat, ...] = tuple(one for one in EXPORT_FORMATS if formats.count(one))
    wanted = given or ExportOptions().formats
    options = ExportOptions(wanted, alpha, test_share, dict(licences))
    request = TrainingRequest(options, records, drives, traces, cast("Attribution", attribution))
    exported = session.with_bank(lambda bank: bank.export_training(request))
    _write(output, exported.files)
    session.show(exported.report.model_copy(update={"output": str(output)}), _render_export)
    return 0


def _write(output: Path, files: Mapping[str, bytes]) -> None:
    """Write the files, the card last: an export without one is not whole."""
    for path, content in files.items():
        place = output / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        except OSError as error:
            raise OutputUnusable(f"{place} cannot be written: {error.strerror or error}") from error


def _render_export(console: Console, report: TrainingReport) -> None:
    console.print(plain(report.output, "bold"), soft_wrap=True)
    console.print(
        f"{report.episodes} episodes of {report.families} families: {report.right} right,"
        f" {report.wrong} wrong, {report.unscored} unscored; {report.with_advantages} with advantages"
    )
    for path, rows in report.rows.items():
        console.print(f"  {path}: {rows}", style="dim")


@click.command("train")
@click.argument("trainer", type=click.Choice(("sft", "dpo", "grpo")))
@click.option(
    "--model",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Folder of a model; nothing is downloaded.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    default=Path("training"),
    show_default=True,
    help="Folder of an export, or one file of rows.",
)
@click.option("--output", type=_FOLDER, required=True, help="Folder of the trained model, new or empty.")
@click.option("--steps", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--batch", type=click.IntRange(min=1), default=4, show_default=True, help="Rows at once.")
@click.option("--learning-rate", type=click.FloatRange(min=0, min_open=True), default=1e-6, show_default=True)
@click.option("--max-length", type=click.IntRange(min=1), default=8_192, show_default=True, help="Tokens.")
@click.option("--beta", type=click.FloatRange(min=0), default=0.1, show_default=True, help="Of dpo.")
@click.option(
    "--clip", type=click.FloatRange(min=0), default=0.2, show_default=True, help="Of grpo, both ways."
)
@click.option(
    "--boost",
    type=click.FloatRange(min=0),
    default=0.6,
    show_default=True,
    help="Of grpo: the upper clip for what went well with experience.",
)
@click.option(
    "--iterations", type=click.IntRange(min=1), default=2, show_default=True, help="Of grpo: updates a batch."
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--chat-template", type=EXISTING, help="A Jinja file in place of the model's own template.")
@click.option(
    "--python",
    type=EXISTING,
    help="The Python that has torch and TRL (skillbank[train]). Default: the one this runs in.",
)
@session_command
def train(
    session: Session,
    *,
    trainer: str,
    model: Path,
    data: Path,
    output: Path,
    steps: int,
    batch: int,
    learning_rate: float,
    max_length: int,
    beta: float,
    clip: float,
    boost: float,
    iterations: int,
    seed: int,
    chat_template: Path | None,
    python: Path | None,
) -> int:
    """Train a local model on an export: TRAINER is sft, dpo or grpo. Runs in a process of its own.

    Real models need a GPU with about 16 bytes for each parameter (1.7 B: 26 GB), dpo more; a CPU does for
    models of some million parameters. Measure the trained model on the test split before you use it.

    \b
    Examples:
      skillbank train sft --model ~/models/qwen3-0.6b --output tuned
      skillbank train grpo --model tuned --data training --output tuned-2 --boost 0.6
    """
    from server.training.launching import TrainOptions, rows_file
    from server.training.launching import train as run_training

    try:
        options = TrainOptions(
            trainer="sft" if trainer == "sft" else "dpo" if trainer == "dpo" else "grpo",
            model=model.absolute(),
            output=output.absolute(),
            steps=steps,
            batch=batch,
            learning_rate=learning_rate,
            max_length=max_length,
            beta=beta,
            epsilon=clip,
            boost=boost,
            iterations=iterations,
            seed=seed,
            chat_template=None if chat_template is None else chat_template.absolute(),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    report = run_training(rows_file(data, options.trainer), options, python, session.say)
    session.show(report, _render_train)
    return 0


def _render_train(console: Console, report: TrainReport) -> None:
    console.print(plain(report.output, "bold"), soft_wrap=True)
    console.print(f"{report.trainer}: {report.steps} steps over {report.rows} rows")
    for line in report.losses:
        console.print("  " + ", ".join(f"{key} {value}" for key, value in line.items()), style="dim")
    console.print(report.hardware, style="dim")

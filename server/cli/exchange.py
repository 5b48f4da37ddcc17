"""The commands that write a skill as files and take in files of others."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from server.cli.options import session_command
from server.cli.render import plain
from server.cli.render_skills import render_skill_moved
from server.cli.session import Session
from server.reports import ExportReport, ImportReport

__all__ = ["export", "import_file"]

_FORMATS = ("bundle", "skill-md", "arazzo", "mermaid", "server")


@click.command("export")
@click.argument("name")
@click.option(
    "--format",
    "format_",
    type=click.Choice(_FORMATS),
    default="bundle",
    show_default=True,
    help="A JSON bundle, an Agent Skill folder, Arazzo 1.1, a drawing, or a server of this one tool.",
)
@click.option("--version", type=click.IntRange(min=1), help="Which version. Default: the one in use.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder that the file or folder is put into. Default: this one.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@session_command
def export(
    session: Session, *, name: str, format_: str, version: int | None, output: Path, force: bool
) -> int:
    """Write skill NAME as files: for another bank, for other hosts, or to run by itself.

    \b
    Examples:
      skillbank export celsius_to_fahrenheit
      skillbank export celsius_to_fahrenheit --format skill-md --output ~/.claude/skills
      skillbank export celsius_to_fahrenheit --format server
    """
    report = session.with_bank(lambda bank: bank.export(name, version, format_))
    written = _write(report, output, force=force)
    session.show(report.model_copy(update={"written": tuple(map(str, written))}), _render_export)
    return 0


def _write(report: ExportReport, output: Path, *, force: bool) -> list[Path]:
    """Write the files and return what stands at the top: a file, or the folder that holds all of them."""
    tops = list(dict.fromkeys(output / path.split("/")[0] for path in report.files))
    if there := [top for top in tops if top.exists() and not force]:
        raise click.UsageError(f"{there[0]} is there already: --force replaces its files")
    for path, content in report.files.items():
        place = output / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        except OSError as error:
            raise click.FileError(str(place), error.strerror or str(error)) from error
    return tops


def _render_export(console: Console, report: ExportReport) -> None:
    for path in report.written:
        console.print(plain(path, "bold"), soft_wrap=True)
    console.print(f"{report.name}@{report.version} as {report.format}, {report.digest}", style="dim")


@click.command("import")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@session_command
def import_file(session: Session, *, file: Path) -> int:
    """Take in FILE: a bundle, or an Agent Skill package as folder, ZIP or tar file.

    Nothing of it is run. It is kept as shadow until its tests have passed on your own tool servers
    (skillbank skills test NAME) and you approve it.

    \b
    Example:
      skillbank import celsius_to_fahrenheit.skillbank.json
    """
    report = session.with_bank(lambda bank: bank.import_file(file.absolute()))
    session.show(report, _render_import)
    return 0


def _render_import(console: Console, report: ImportReport) -> None:
    render_skill_moved(console, report.skill)
    if report.calls:
        console.print(Text.assemble("with ", plain(", ".join(report.calls))))
    console.print(report.digest, style="dim")

"""The command that makes a skill of a Python function."""

from __future__ import annotations

from pathlib import Path

import click

from catalog.tools import ToolId
from server.cli.options import EXISTING, SKILL_NAME, session_command
from server.cli.render_recordings import render_saved
from server.cli.session import Session
from server.requests import SaveCodeRequest

__all__ = ["add_code"]


class _Grant(click.ParamType[tuple[str, ToolId]]):
    """NAME=SERVER/TOOL: what the function calls a tool by, and the tool."""

    name = "name=server/tool"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ToolId]:
        name, _, tool = str(value).partition("=")
        server, slash, tool_name = tool.partition("/")
        if not (name.isidentifier() and server and slash and tool_name):
            self.fail(f"{value!r} is not NAME=SERVER/TOOL", param, ctx)
        return name, ToolId(server, tool_name)


@click.command("add-code")
@click.argument("name", type=SKILL_NAME)
@click.option("--code", "code", type=EXISTING, required=True, help="Python file with the function.")
@click.option(
    "--tests",
    "tests",
    type=EXISTING,
    required=True,
    help="Its tests: Python asserts like 'assert f(1) == 2', read and never run, or a JSON list.",
)
@click.option("--entry", metavar="FUNCTION", help="Which function. Default: the last that is not private.")
@click.option(
    "--tool",
    "tools",
    multiple=True,
    type=_Grant(),
    metavar="NAME=SERVER/TOOL",
    help="A tool that it may call, by the name it calls it under. May be given several times.",
)
@click.option("--task", metavar="TEXT", help="The task in words that it is for.")
@session_command
def add_code(
    session: Session,
    *,
    name: str,
    code: Path,
    tests: Path,
    entry: str | None,
    tools: tuple[tuple[str, ToolId], ...],
    task: str | None,
) -> int:
    """Make skill NAME of a Python function and its tests.

    The function is annotated, takes and returns JSON, and is only ever run in a sandbox: without
    files, network, clock or other processes, and with no tool but those that --tool grants.

    \b
    Examples:
      skillbank skills add-code median --code median.py --tests test_median.py
      skillbank skills add-code hot --code hot.py --tests hot.json --tool now=weather/current
    """
    request = SaveCodeRequest(
        name=name,
        source=_text(code),
        tests=_text(tests),
        entry=entry,
        tools=dict(tools),
        task=task,
    )
    report = session.with_bank(lambda bank: bank.save_code(request))
    session.show(report, render_saved)
    return 0 if report.skill is not None else 1


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path}: {error}") from error

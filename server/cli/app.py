"""The `skillbank` command: its groups, and the one place where an error becomes an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final

import click

from server.cli.errors import FAILED, Failure, failure_of
from server.cli.ports import Wiring, product_wiring

__all__ = ["app", "main"]


_MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "add": "servers",
        "audit": "audit",
        "bench": "bench",
        "check": "workflows",
        "demo": "service",
        "doctor": "servers",
        "effects": "effects",
        "envs": "envs",
        "evolve": "evolving",
        "experience": "experience",
        "export": "exchange",
        "export training": "training",
        "import": "exchange",
        "explore": "exploring",
        "init": "init",
        "inputs": "inputs",
        "install": "install",
        "login": "login",
        "logout": "login",
        "model": "models",
        "record": "recordings",
        "repair": "workflows",
        "review": "review",
        "run": "workflows",
        "serve": "service",
        "skills": "skills",
        "solve": "workflows",
        "train": "training",
    }
)
"""The module of this package that each command is in, under the command's own name."""


_NAMED_OTHERWISE: Final[Mapping[str, str]] = MappingProxyType(
    {"export training": "export_training", "import": "import_file"}
)
"""Commands whose name no Python function can have."""


class _Commands(click.Group):
    """Imports a command's module when the command is chosen: a host waits for `serve` alone."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(_MODULES)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, whose name may be of two words."""
        if (name := " ".join(args[:2])) in _MODULES:
            return name, self.get_command(ctx, name), args[2:]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        module = _MODULES.get(cmd_name)
        if module is None:
            return None
        return getattr(import_module(f"server.cli.{module}"), _NAMED_OTHERWISE.get(cmd_name, cmd_name))


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="skillbank", prog_name="skillbank")
def app() -> None:
    """Gets better at your tools: runs, repairs and compiles workflows of tool calls into MCP tools.

    \b
    Start here:
      skillbank demo                               see all of it on real tool servers
      skillbank init                               take over the servers your editor has
      skillbank add clock -- mcp-server-time       or add one yourself
      skillbank serve                              offer the bank to your MCP client

    Every command takes --config, --store and --json. Exit codes: 0 done; 1 failed or unverified;
    2 misuse; 3 needs approval; 4 only the world stood in the way; 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None, wiring: Wiring | None = None) -> int:
    """Carry out a command line and return the exit code.

    Args:
        arguments: without the program's name; None: those of this process.
        wiring: the parts to stand on; None: the product's.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app.main(given, prog_name="skillbank", standalone_mode=False, obj=wiring or product_wiring())
    except BaseException as error:
        return _tell(error, as_json=_wants_json(given))
    return code if isinstance(code, int) else 0


def _wants_json(arguments: Sequence[str]) -> bool:
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in own


def _tell(error: BaseException, *, as_json: bool) -> int:
    """Print what went wrong and return its exit code; a defect of ours keeps its traceback."""
    failure = failure_of(error)
    if failure is None and not (as_json and isinstance(error, Exception)):
        raise error
    if failure is None:
        traceback.print_exception(error)
        failure = Failure("internal", f"{type(error).__name__}: {error}", FAILED)
    if as_json:
        click.echo(failure.to_report().model_dump_json(indent=2, exclude_none=True))
    elif isinstance(error, click.ClickException):
        error.show()
    else:
        click.echo(f"skillbank: {failure.message}", err=True)
    return failure.exit_code

"""The command lines that serve a bank: for the demo's own client, and for a person's."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from pydantic import JsonValue

from server.demo.report import Connect
from server.settings import Settings

__all__ = ["connect_client", "serve_command"]


def serve_command(settings: Settings) -> list[str]:
    """Return the command line that serves a bank over stdio."""
    return [*_program(), *_serve_arguments(settings)]


def connect_client(kept: Settings | None) -> Connect:
    """Return how a person connects a client.

    Args:
        kept: the demo's own bank when it stays; None: it is gone, and the person's own is served.
    """
    program, *options = _program_for_others()
    arguments = [*options, *(_serve_arguments(kept) if kept else ["serve"])]
    note = (
        "This serves what the demo made. `skillbank init` takes over the servers your client has."
        if kept
        else "This serves a bank of your own: `skillbank init` takes over the servers your client has, and "
        "`skillbank demo --keep FOLDER` keeps what the demo made."
    )
    entry: dict[str, JsonValue] = {"command": program, "args": list[JsonValue](arguments)}
    return Connect(
        command=f"claude mcp add skillbank -- {shlex.join([program, *arguments])}",
        snippet={"mcpServers": {"skillbank": entry}},
        note=note,
    )


def _serve_arguments(settings: Settings) -> list[str]:
    return ["serve", "--config", str(settings.config_path), "--store", str(settings.store_path)]


def _script() -> str | None:
    """Return the script installed beside this interpreter, None when there is none."""
    return shutil.which("skillbank", path=str(Path(sys.executable).parent))


def _program() -> list[str]:
    script = _script()
    return [script] if script else [sys.executable, "-m", "server.cli"]


def _program_for_others() -> list[str]:
    """Return the program as another process finds it: by name only where that means this one."""
    found, script = shutil.which("skillbank"), _script()
    is_this = found is not None and script is not None and Path(found).resolve() == Path(script).resolve()
    return ["skillbank"] if is_this else _program()

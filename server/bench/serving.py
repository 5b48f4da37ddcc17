"""`skillbank serve` as a child process with servers of our own behind it, for benchmarks.

Each gets a folder of its own with configuration and store, so that nothing of the user's is touched.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from mcp import Client, StdioServerParameters

__all__ = ["client_of", "serve_command", "write_config"]

_CLI = "from server.cli import main; main()"


def write_config(folder: Path, upstreams: Mapping[str, tuple[str, ...]]) -> Path:
    """Write the configuration of some upstreams, by name, and return its path."""
    config = folder / "config.json"
    document = {
        "mcpServers": {
            name: {"command": command[0], "args": list(command[1:])} for name, command in upstreams.items()
        },
        "skillbank": {"effects": {name: {"*": "pure"} for name in upstreams}},
    }
    config.write_text(json.dumps(document), encoding="utf-8")
    return config


def serve_command(folder: Path, upstreams: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the command that serves these upstreams with the store in that folder."""
    config, store = write_config(folder, upstreams), folder / "store.db"
    return (sys.executable, "-c", _CLI, "serve", "--config", str(config), "--store", str(store))


def client_of(command: tuple[str, ...]) -> Client:
    """Return a client that starts this command when it is entered."""
    program, *arguments = command
    return Client(StdioServerParameters(command=program, args=arguments), mode="auto")

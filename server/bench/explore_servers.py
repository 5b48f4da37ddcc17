"""The servers that the explore benchmark runs on: five of the demo's, and three that were set aside.

What is wrong with the three was written down when they were first surveyed, before exploration was
built, and none of its code or tests names them; only what a call can show counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from server.progress import ProgressListener
from server.provisioning.demo_servers import demo_document
from server.provisioning.fetched import fetch_environment

__all__ = ["DEMO_EXPLORED", "SET_ASIDE", "SetAside", "explored_document", "requirements"]

DEMO_EXPLORED = ("mathematics", "calculator", "hashlib", "time", "sqlite")
_ENVIRONMENT = "explored"


@dataclass(frozen=True, slots=True)
class SetAside:
    """A server with the defects it is known to have, by the rule that would find each."""

    name: str
    distribution: str
    version: str
    script: str
    arguments: tuple[str, ...]
    effects: Mapping[str, str]
    reset: str
    warts: tuple[str, ...]


SET_ASIDE: tuple[SetAside, ...] = (
    SetAside(
        "algebra",
        "symath-mcp",
        "0.1.0",
        "symath-mcp",
        (),
        {"*": "pure"},
        "none",
        ("disguised-error", "unknown-argument-ignored"),
    ),
    SetAside(
        "database",
        "mcp-server-sqlite",
        "2025.4.25",
        "mcp-server-sqlite",
        ("--db-path", "t.db"),
        {"*": "write"},
        "process+dirs",
        ("unreadable-text", "disguised-error", "unknown-argument-ignored"),
    ),
    SetAside(
        "todo",
        "todo-txt-mcp",
        "1.0.2",
        "todo-txt-mcp",
        ("todo.txt",),
        {"*": "write"},
        "process+dirs",
        ("disguised-error", "unknown-argument-ignored"),
    ),
)


def requirements() -> list[str]:
    """Return what is installed for the servers that were set aside."""
    return ["mcp<2", *(f"{server.distribution}=={server.version}" for server in SET_ASIDE)]


def explored_document(name: str, folder: Path, listener: ProgressListener) -> dict[str, JsonValue]:
    """Return the configuration document of one server, which works in a folder of its own.

    Raises:
        DemoServersMissing: it is one of the demo's and not installed.
        BenchError: it was set aside and cannot be installed.
    """
    aside = next((server for server in SET_ASIDE if server.name == name), None)
    if aside is None:
        return demo_document([name])
    python = fetch_environment(_ENVIRONMENT, requirements(), listener)
    command = str(Path(python).parent / aside.script)
    own: dict[str, JsonValue] = {"effects": {name: cast("JsonValue", dict(aside.effects))}}
    if aside.reset != "none":
        own["reset"] = {name: aside.reset}
    return {
        "mcpServers": {name: {"command": command, "args": [*aside.arguments], "cwd": str(folder)}},
        "skillbank": own,
    }

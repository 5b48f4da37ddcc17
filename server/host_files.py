"""Finds the tool servers that other hosts already have: their configuration files and entries.

How each format reads is `catalog.config`; what is done with an entry is the border's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from catalog.config import ConfigDocument, ServerSpec, parse_servers, read_document
from catalog.config.formats import SERVER_KEYS

__all__ = [
    "HostFile",
    "ImportPlan",
    "PlannedServer",
    "SkippedServer",
    "host_files",
    "plan_import",
    "read_host_file",
]


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file in which some host may keep its servers."""

    host: str
    path: Path


@dataclass(frozen=True, slots=True)
class PlannedServer:
    """A server that would be taken over: how it starts, and its entry for our configuration."""

    spec: ServerSpec
    entry: dict[str, JsonValue]
    file: HostFile


@dataclass(frozen=True, slots=True)
class SkippedServer:
    """A server that stays where it is, and why."""

    name: str
    reason: str
    file: HostFile


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What would be taken over, before anything is started or written."""

    servers: tuple[PlannedServer, ...]
    skipped: tuple[SkippedServer, ...]


def host_files(home: Path, folder: Path, environment: Mapping[str, str]) -> list[HostFile]:
    """Return the files of known hosts, those that exist or not.

    Args:
        home: the user's folder.
        folder: the project's folder.
        environment: `APPDATA`, `XDG_CONFIG_HOME` and `CODEX_HOME` move some of them.
    """
    desktop = "Claude/claude_desktop_config.json"
    settings = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    roaming = Path(environment.get("APPDATA") or home / "AppData" / "Roaming")
    codex = Path(environment.get("CODEX_HOME") or home / ".codex")
    return [
        HostFile("project", folder / ".mcp.json"),
        HostFile("Cursor, project", folder / ".cursor" / "mcp.json"),
        HostFile("VS Code, project", folder / ".vscode" / "mcp.json"),
        HostFile("Claude Code", home / ".claude.json"),
        HostFile("Claude Desktop", home / "Library" / "Application Support" / desktop),
        HostFile("Claude Desktop", roaming / desktop),
        HostFile("Claude Desktop", settings / desktop),
        HostFile("Cursor", home / ".cursor" / "mcp.json"),
        HostFile("Codex", codex / "config.toml"),
    ]


def plan_import(documents: Iterable[tuple[HostFile, ConfigDocument]], taken: Iterable[str]) -> ImportPlan:
    """Return which servers of these documents would be taken over.

    Args:
        documents: in order of precedence: the first to use a name keeps it.
        taken: names that are configured already.

    Raises:
        ConfigError: an entry is wrong; names file, line and key.
    """
    owners = dict.fromkeys(taken, "already configured")
    servers: list[PlannedServer] = []
    skipped: list[SkippedServer] = []
    for file, document in documents:
        for name, spec in parse_servers(document).items():
            reason = "starts skillbank itself" if spec.is_ourselves else owners.get(name)
            if reason is not None:
                skipped.append(SkippedServer(name, reason, file))
                continue
            owners[name] = f"the name is taken by the one of {file.path}"
            servers.append(PlannedServer(spec, _entry(document, spec), file))
    return ImportPlan(tuple(servers), tuple(skipped))


def read_host_file(file: HostFile) -> ConfigDocument:
    """Return the document of a host's file with every server entry checked.

    Raises:
        ConfigError: names file, line and key.
    """
    document = read_document(file.path)
    parse_servers(document)
    return document


def _entry(document: ConfigDocument, spec: ServerSpec) -> dict[str, JsonValue]:
    """Return the entry as written, with the folder it was written for put in."""
    tables = (document.data.get(key) for key in SERVER_KEYS)
    raw = next(table[spec.name] for table in tables if isinstance(table, dict) and spec.name in table)
    folder = json.dumps(spec.workspace)[1:-1]
    return json.loads(json.dumps(raw).replace("${workspaceFolder}", folder))

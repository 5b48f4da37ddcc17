"""Finds the tool servers that other hosts already have: their configuration files and entries.

How each format reads is `catalog.config`; what is done with an entry is the border's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import cast

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
    within: tuple[str, ...] = ()
    """Keys under which the servers are, where it is not the whole file."""


@dataclass(frozen=True, slots=True)
class PlannedServer:
    """A server that would be taken over: how it starts, and its entry for our configuration."""

    spec: ServerSpec
    entry: dict[str, JsonValue]
    file: HostFile
    inputs: tuple[dict[str, JsonValue], ...] = ()
    """What its entry asks for, each as our configuration will declare it."""


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
        environment: `APPDATA`, `XDG_CONFIG_HOME`, `CLAUDE_CONFIG_DIR` and `CODEX_HOME` move some.
    """
    desktop = "Claude/claude_desktop_config.json"
    settings = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    roaming = Path(environment.get("APPDATA") or home / "AppData" / "Roaming")
    codex = Path(environment.get("CODEX_HOME") or home / ".codex")
    applications = (home / "Library" / "Application Support", roaming, settings)
    claude = Path(environment.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
    return [
        HostFile("Claude Code, this project", claude, within=("projects", str(folder))),
        HostFile("project", folder / ".mcp.json"),
        HostFile("Cursor, project", folder / ".cursor" / "mcp.json"),
        HostFile("VS Code, project", folder / ".vscode" / "mcp.json"),
        HostFile("Claude Code", claude),
        *(HostFile("Claude Desktop", kept / desktop) for kept in applications),
        HostFile("Cursor", home / ".cursor" / "mcp.json"),
        *(HostFile("VS Code", kept / "Code" / "User" / "mcp.json") for kept in applications),
        HostFile("Codex", codex / "config.toml"),
    ]


def plan_import(
    documents: Iterable[tuple[HostFile, ConfigDocument]],
    taken: Iterable[str],
    asked: Sequence[JsonValue] = (),
) -> ImportPlan:
    """Return which servers of these documents would be taken over.

    Args:
        documents: in order of precedence: the first to use a name keeps it.
        taken: names that are configured already.
        asked: inputs that are configured already, as their entries.

    Raises:
        ConfigError: an entry is wrong; names file, line and key.
    """
    owners = dict.fromkeys(taken, "already configured")
    servers: list[PlannedServer] = []
    skipped: list[SkippedServer] = []
    inputs = {str(entry["id"]): entry for entry in asked if isinstance(entry, dict) and "id" in entry}
    for file, document in documents:
        for name, spec in parse_servers(document).items():
            reason = "starts skillbank itself" if spec.is_ourselves else owners.get(name)
            if reason is not None:
                skipped.append(SkippedServer(name, reason, file))
                continue
            owners[name] = f"the name is taken by the one of {file.path}"
            entry, wanted = _with_inputs(_entry(document, spec), spec, document, inputs)
            servers.append(PlannedServer(spec, entry, file, wanted))
    return ImportPlan(tuple(servers), tuple(skipped))


def read_host_file(file: HostFile) -> ConfigDocument:
    """Return the document of a host's file with every server entry checked.

    Raises:
        ConfigError: names file, line and key.
    """
    document = read_document(file.path).below(file.within)
    parse_servers(document)
    return document


def _entry(document: ConfigDocument, spec: ServerSpec) -> dict[str, JsonValue]:
    """Return the entry as written, with the folder it was written for put in."""
    tables = (document.data.get(key) for key in SERVER_KEYS)
    raw = next(table[spec.name] for table in tables if isinstance(table, dict) and spec.name in table)
    folder = spec.workspace or ""
    for body, text in (("workspaceFolder", folder), ("workspaceFolderBasename", PurePath(folder).name)):
        raw = _replaced(raw, f"${{{body}}}", text)
    entry = cast("dict[str, JsonValue]", raw)
    if spec.env_file is not None:
        entry["envFile"] = str(PurePath(folder, str(entry["envFile"])))
    return entry


def _with_inputs(
    entry: dict[str, JsonValue],
    spec: ServerSpec,
    document: ConfigDocument,
    known: dict[str, dict[str, JsonValue]],
) -> tuple[dict[str, JsonValue], tuple[dict[str, JsonValue], ...]]:
    """Return an entry with the inputs it names, renamed where one of that id asks something else."""
    listed = cast("list[dict[str, JsonValue]]", document.data.get("inputs", []))
    declared = {str(each["id"]): each for each in listed}
    wanted: list[dict[str, JsonValue]] = []
    for name in sorted(spec.inputs_named & declared.keys()):
        own, ours = declared[name], name
        if known.get(name, own) != own:
            ours = f"{spec.name}-{name}"
            own = {**own, "id": ours}
            entry = cast("dict[str, JsonValue]", _replaced(entry, f"${{input:{name}}}", f"${{input:{ours}}}"))
        known[ours] = own
        wanted.append(own)
    return entry, tuple(wanted)


def _replaced(value: JsonValue, old: str, new: str) -> JsonValue:
    """Return a JSON value with a text replaced in all its strings."""
    match value:
        case str():
            return value.replace(old, new)
        case list():
            return [_replaced(item, old, new) for item in value]
        case dict():
            return {key: _replaced(item, old, new) for key, item in value.items()}
        case _:
            return value

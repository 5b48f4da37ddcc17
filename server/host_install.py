"""Makes skillbank one of the servers of an MCP client: what would change in which file, and the change.

Everything else in the client's file stays as it is, comments included, and the file as it was is kept
beside it. Which files the clients have is `host_files`.
"""

from __future__ import annotations

import difflib
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import JsonValue

from catalog.config.splice import with_server_text
from catalog.errors import ConfigError
from catalog.whole_file import write_whole

__all__ = ["CLIENTS", "Client", "Installation", "plan_installation", "write_installation"]

Client = Literal["claude", "claude-desktop", "cursor", "vscode"]
_MARK: Final = "\ufeff"
"""What some editors begin a UTF-8 file with."""
CLIENTS: Final[tuple[Client, ...]] = ("claude", "claude-desktop", "cursor", "vscode")


@dataclass(frozen=True, slots=True)
class Installation:
    """What would become of a client's file."""

    client: Client
    path: Path
    before: str
    """Its text, empty where there is no file."""
    after: str

    @property
    def diff(self) -> str:
        """The change, as lines that go and come."""
        lines = difflib.unified_diff(
            self.before.splitlines(),
            self.after.splitlines(),
            str(self.path),
            str(self.path),
            lineterm="",
            n=2,
        )
        return "\n".join(lines)

    @property
    def is_change(self) -> bool:
        """Whether the file would not be as it is."""
        return self.before != self.after


def plan_installation(
    client: Client,
    home: Path,
    environment: Mapping[str, str],
    *,
    folder: Path | None = None,
    options: tuple[str, ...] = (),
) -> Installation:
    """Return what would be written for a client.

    Args:
        client: whose file.
        home: the user's folder.
        environment: moves some files, and finds the command.
        folder: the project whose clients alone shall have it, None: the user's.
        options: of `skillbank`, given before `serve`'s own.

    Raises:
        ConfigError: the file is there and cannot be read or changed; names file, line and key.
    """
    path = _path(client, home, environment, folder)
    key = "servers" if client == "vscode" else "mcpServers"
    kind: dict[str, JsonValue] = {} if client in ("cursor", "claude-desktop") else {"type": "stdio"}
    entry: dict[str, JsonValue] = {**kind, "command": _command(environment), "args": ["serve", *options]}
    before = _text(path)
    mark = _MARK if before.startswith(_MARK) else ""
    after = with_server_text(before.removeprefix(mark), path, (key, "skillbank"), entry)
    return Installation(client, path, before, mark + after)


def write_installation(planned: Installation) -> Path | None:
    """Write what was planned, and return where the file as it was is kept; None where there was none.

    Raises:
        ConfigError: the file changed since, or cannot be written; nothing was changed.
    """
    target = planned.path.resolve()
    if _text(planned.path) != planned.before:
        raise ConfigError("changed meanwhile: look at the change again", file=str(planned.path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        kept = _free_name(target) if target.exists() else None
        if kept is not None:
            shutil.copy2(target, kept)
        write_whole(target, planned.after.encode(), mode)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror or error}", file=str(planned.path)) from error
    return kept


def _path(client: Client, home: Path, environment: Mapping[str, str], folder: Path | None) -> Path:
    settings = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    if sys.platform == "darwin":
        settings = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        settings = Path(environment.get("APPDATA") or home / "AppData" / "Roaming")
    match client:
        case "claude" if folder is not None:
            return folder / ".mcp.json"
        case "claude":
            return Path(environment.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
        case "claude-desktop":
            return settings / "Claude" / "claude_desktop_config.json"
        case "cursor":
            return (folder or home) / ".cursor" / "mcp.json"
        case "vscode" if folder is not None:
            return folder / ".vscode" / "mcp.json"
        case "vscode":
            return settings / "Code" / "User" / "mcp.json"


def _command(environment: Mapping[str, str]) -> str:
    """Return the program by its name where `PATH` finds it, else by its whole path."""
    found = shutil.which("skillbank", path=environment.get("PATH"))
    beside = Path(sys.executable).parent / "skillbank"
    if found is not None and (not beside.exists() or Path(found).resolve() == beside.resolve()):
        return "skillbank"
    return str(beside) if beside.exists() else (found or "skillbank")


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8 text", file=str(path)) from error
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=str(path)) from error


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.before-skillbank{n or ''}") for n in range(1_000))
    return next(name for name in names if not name.exists())

"""Configuration files on disk: reading one, and replacing one whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from catalog.canonical import JsonValue
from catalog.config.document import read_document
from catalog.config.formats import parse_config
from catalog.config.model import Config
from catalog.errors import ConfigError
from catalog.whole_file import write_whole

__all__ = ["load_config", "save_config"]

_NEW_FILE_MODE = 0o600


def load_config(path: Path, *, missing_ok: bool = False) -> Config:
    """Return the configuration of a file.

    Args:
        path: JSON, or TOML when it ends so.
        missing_ok: whether no file is an empty configuration.

    Raises:
        ConfigError: names file, line and key.
    """
    if missing_ok and not path.exists():
        return Config(servers={}, path=path)
    return parse_config(read_document(path))


def save_config(document: Mapping[str, JsonValue], path: Path) -> None:
    """Write a configuration document in place of the file, whole or not at all.

    A new file is readable by its owner only, since it may come to hold secrets; an existing one
    keeps its mode.

    Raises:
        ConfigError: the folder cannot be written, or the file holds what a rewrite would lose.
    """
    target = path.resolve()
    _check_rewritable(target)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else _NEW_FILE_MODE
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text.encode(), mode)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror or error}", file=str(path)) from error


def _check_rewritable(path: Path) -> None:
    if path.suffix == ".toml":
        raise ConfigError("TOML is only read: use a JSON file as --config", file=str(path))
    if path.exists() and read_document(path).has_comments:
        raise ConfigError("has comments, which a rewrite would lose: edit it by hand", file=str(path))

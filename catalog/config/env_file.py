"""Files of variables that a server entry names (`envFile` of VS Code and Cursor).

Lines of `NAME=value`, quoted or not, `export` in front or not, and comments. Nothing in them is
expanded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from catalog.errors import ConfigError

__all__ = ["parse_env_file", "read_env_file"]

_MAX_BYTES: Final = 1_000_000
_LINE: Final = re.compile(
    r"""
    \s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)\s*=\s*
    (?: '(?P<literal>[^']*)'\s*(?:\#.*)? | "(?P<quoted>(?:[^"\\]|\\.)*)"\s*(?:\#.*)? | (?P<bare>(?!['"]).*) )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of a file.

    Raises:
        ConfigError: it cannot be read, or a line of it is no variable; names file and line.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    if len(raw) > _MAX_BYTES:
        raise ConfigError(f"over {_MAX_BYTES} bytes, which is no file of variables", file=str(path))
    try:
        return parse_env_file(raw.decode("utf-8-sig"), path)
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8 text", file=str(path)) from error


def parse_env_file(text: str, path: Path) -> dict[str, str]:
    """Return the variables of a text, a later line winning over an earlier one.

    Raises:
        ConfigError: a line is no variable; names file and line, never what stands there.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ConfigError("is no NAME=value", file=str(path), line=number)
        found[match["name"]] = _value(match)
    return found


def _value(match: re.Match[str]) -> str:
    if (literal := match["literal"]) is not None:
        return literal
    if (quoted := match["quoted"]) is not None:
        return re.sub(r"\\(.)", lambda escaped: _ESCAPED.get(escaped[1], escaped[1]), quoted)
    return re.split(r"\s#", match["bare"], maxsplit=1)[0].strip()

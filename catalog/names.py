"""Names of tools that every host accepts, one name for one tool of one server.

Hosts differ: some refuse dots, some a leading digit, all add prefixes of their own to a limit of
64. So names stay short, and the caller keeps the way back in a map from name to server and tool.
A name depends on its server and tool alone, never on what else there is, so that it is the same
after a restart and when other tools come or go.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from itertools import count
from typing import Final

__all__ = ["NAME_PATTERN", "SEPARATOR", "portable_name"]

NAME_PATTERN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""What a whole name matches on every host."""
SEPARATOR: Final = "__"

_HEX: Final = 8
_SHORTEST: Final = _HEX + 4
_REFUSED: Final = re.compile(r"[^A-Za-z0-9_-]+")
_RUN: Final = re.compile(r"_{2,}")


def portable_name(server: str, tool: str, taken: Mapping[str, tuple[str, str]], limit: int = 40) -> str:
    """Return the published name of a tool: `server__tool`, or a shorter likeness with eight hex digits.

    The digits are there wherever the name does not say server and tool exactly, so that two tools whose
    names look alike never compete for one; and where the plain name is taken, by a tool of our own say.

    Args:
        server: configured name of the server, empty for a name without prefix.
        tool: the tool's own name.
        taken: published names, each with the server and tool it stands for.
        limit: length in characters, 12 to 64.

    Raises:
        ValueError: the limit is outside of that range.
    """
    if not _SHORTEST <= limit <= 64:
        raise ValueError(f"a name's limit is {_SHORTEST} to 64 characters, not {limit}")
    wanted, plain = (server, tool), _plain(server, tool)
    is_exact = plain == (f"{server}{SEPARATOR}{tool}" if server else tool)
    if is_exact and len(plain) <= limit and taken.get(plain, wanted) == wanted:
        return plain
    for attempt in count():
        name = f"{plain[: limit - _HEX - 1].rstrip('_-')}_{_fingerprint(server, tool, attempt)}"
        if taken.get(name, wanted) == wanted:
            return name
    raise AssertionError("an endless count has ended")


def _plain(server: str, tool: str) -> str:
    label = _RUN.sub("_", _REFUSED.sub("_", server)).strip("_")
    own = _REFUSED.sub("_", tool) or "_"
    name = f"{label}{SEPARATOR}{own}" if label else own
    return name if NAME_PATTERN.match(name) else f"_{name}"


def _fingerprint(server: str, tool: str, attempt: int) -> str:
    said = "\0".join((server, tool, str(attempt)))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX]

"""Placeholders in the values of a server entry, in the dialects of the known hosts.

`${VAR}` and `${VAR:-default}` (Claude), `${env:VAR}` and `${workspaceFolder}` (Cursor, VS Code).
`$VAR` never expands. A placeholder that cannot be filled is an error, not the empty text and not
the placeholder itself: a server started with either fails later and elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["Unfilled", "interpolate"]

_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


class Unfilled(ValueError):  # noqa: N818
    """A placeholder nothing can be put in for; the message names it."""


def interpolate(text: str, environment: Mapping[str, str], workspace: str | None) -> str:
    """Return the text with every placeholder replaced.

    Args:
        text: a value as it stands in the configuration.
        environment: variables that may be named.
        workspace: what `${workspaceFolder}` stands for; None where there is no such folder.

    Raises:
        Unfilled: a variable without default is not set, or the placeholder is of another dialect.
    """
    return _PLACEHOLDER.sub(lambda match: _value(match.group(1), environment, workspace), text)


def _value(body: str, environment: Mapping[str, str], workspace: str | None) -> str:
    if body.startswith("input:"):
        raise Unfilled(f"${{{body}}} asks for input, which only an editor can do: use ${{VARIABLE}} instead")
    if body == "workspaceFolder":
        if workspace is None:
            raise Unfilled("${workspaceFolder} has no meaning here: no workspace is known")
        return workspace
    variable = _VARIABLE.fullmatch(body)
    if variable is None or "${" in body:
        raise Unfilled(f"placeholder ${{{body}}} is not understood")
    name, default = variable.groups()
    if name in environment:
        return environment[name]
    if default is None:
        raise Unfilled(f"environment variable {name} is not set and ${{{body}}} has no default")
    return default

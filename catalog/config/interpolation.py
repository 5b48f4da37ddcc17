"""Placeholders in the values of a server entry, in the dialects of the known hosts.

`${VAR}` and `${VAR:-default}` (Claude), `${env:VAR}` and the folders of an editor (Cursor, VS Code),
`${input:id}` (VS Code). `$VAR` never expands. A placeholder that cannot be filled is an error, not
the empty text and not the placeholder itself: a server started with either fails later and elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

__all__ = ["Fillers", "Unfilled", "inputs_named", "interpolate"]

_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)

_FOLDERS = ("workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "/")


class Unfilled(ValueError):  # noqa: N818
    """A placeholder nothing can be put in for; the message names it."""


@dataclass(frozen=True, slots=True)
class Fillers:
    """What placeholders stand for."""

    environment: Mapping[str, str]
    workspace: str | None
    """What `${workspaceFolder}` stands for; None where there is no such folder."""
    answer: Callable[[str], str]
    """Returns the answer to an input by its id, or raises `Unfilled`."""


def interpolate(text: str, fillers: Fillers) -> str:
    """Return the text with every placeholder replaced.

    Args:
        text: a value as it stands in the configuration.
        fillers: what may be named.

    Raises:
        Unfilled: a variable without default is not set, an input is not answered, or the
            placeholder is of another dialect.
    """
    return _PLACEHOLDER.sub(lambda match: _value(match.group(1), fillers), text)


def inputs_named(text: str) -> frozenset[str]:
    """Return the ids of the inputs that a text names."""
    bodies = (match.group(1) for match in _PLACEHOLDER.finditer(text))
    return frozenset(body.removeprefix("input:") for body in bodies if body.startswith("input:"))


def _value(body: str, fillers: Fillers) -> str:
    if body.startswith("input:"):
        return fillers.answer(body.removeprefix("input:"))
    if body in _FOLDERS:
        return _folder(body, fillers)
    variable = _VARIABLE.fullmatch(body)
    if variable is None or "${" in body:
        raise Unfilled(f"placeholder ${{{body}}} is not understood")
    name, default = variable.groups()
    if name in fillers.environment:
        return fillers.environment[name]
    if default is None:
        raise Unfilled(f"environment variable {name} is not set and ${{{body}}} has no default")
    return default


def _folder(body: str, fillers: Fillers) -> str:
    match body:
        case "pathSeparator" | "/":
            return os.sep
        case "userHome":
            home = fillers.environment.get("HOME") or fillers.environment.get("USERPROFILE")
            if not home:
                raise Unfilled("${userHome} has no meaning here: neither HOME nor USERPROFILE is set")
            return home
        case _ if fillers.workspace is None:
            raise Unfilled(f"${{{body}}} has no meaning here: no workspace is known")
        case "workspaceFolderBasename":
            return PurePath(fillers.workspace).name
        case _:
            return fillers.workspace

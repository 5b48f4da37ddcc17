"""Which files changed in the places a tool server could leave something: a look before, a look after.

Bounded: folders that hold too much are looked at near their top only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from catalog.config import ServerSpec

__all__ = ["FileState", "Place", "changed_files", "is_only_home", "look_at", "watched_places"]

_MAX_FILES: Final = 50_000
_HOME_DEPTH: Final = 3

FileState = Mapping[str, tuple[int, int]]
"""Size and time of change in nanoseconds, by path."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder to look at."""

    folder: Path
    depth: int | None
    """How far down to look, None: all the way."""
    is_home: bool = False
    """Whether other programs write there too."""

    def holds(self, path: str) -> bool:
        """Return whether a path is one of those looked at here."""
        root, found = self.folder.resolve(), Path(path)
        if not found.is_relative_to(root):
            return False
        return self.depth is None or len(found.relative_to(root).parts) - 1 <= self.depth


@dataclass
class _Look:
    found: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    def take(self, path: str) -> None:
        try:
            status = os.lstat(path)
        except OSError:  # gone since it was listed
            return
        self.found[path] = (status.st_size, status.st_mtime_ns)


def watched_places(spec: ServerSpec, environment: Mapping[str, str]) -> tuple[Place, ...]:
    """Return where an expanded server would leave something: its working folder, HOME, paths it is given."""
    values = (value for name, value in spec.env.items() if name != "HOME")
    given = [
        Path(text)
        for text in (word.rpartition("=")[2] for word in (*spec.args, *values))
        if os.path.isabs(text)
    ]
    home = spec.env.get("HOME") or environment.get("HOME")
    return (
        Place(Path(spec.cwd or "."), None),
        *(Place(path, None) if path.is_dir() else Place(path.parent, 0) for path in given),
        *((Place(Path(home), _HOME_DEPTH, is_home=True),) if home else ()),
    )


def look_at(places: Iterable[Place]) -> FileState:
    """Return the state of every file in these places; blocks."""
    look = _Look()
    for place in places:
        root = str(place.folder.resolve())
        for folder, folders, files in os.walk(root):
            deep = len(Path(folder).relative_to(root).parts)
            if place.depth is not None and deep >= place.depth:
                folders.clear()
            for name in files:
                look.take(os.path.join(folder, name))
            if len(look.found) > _MAX_FILES:
                break
    return look.found


def changed_files(before: FileState, after: FileState) -> frozenset[str]:
    """Return the paths that came, went or changed."""
    return frozenset(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def is_only_home(path: str, places: Iterable[Place]) -> bool:
    """Return whether a path is in none of the places but HOME, where other programs write too."""
    return not any(place.holds(path) for place in places if not place.is_home)

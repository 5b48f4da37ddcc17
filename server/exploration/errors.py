"""What an exploration refuses, as typed errors.

ExplorationError
  NothingToExplore
  └── UnknownServer
  TaskFileRejected
  ProfileRejected
"""

from __future__ import annotations

__all__ = ["ExplorationError", "NothingToExplore", "ProfileRejected", "TaskFileRejected", "UnknownServer"]


class ExplorationError(Exception):
    """An exploration cannot be carried out as asked."""


class NothingToExplore(ExplorationError):  # noqa: N818
    """No tool of the server may be called; says what would change that."""


class UnknownServer(NothingToExplore):
    """No server of that name is configured."""


class TaskFileRejected(ExplorationError):  # noqa: N818
    """A file of tasks cannot be used; names file and line."""


class ProfileRejected(ExplorationError):  # noqa: N818
    """A file with an environment profile cannot be used; names file and place."""

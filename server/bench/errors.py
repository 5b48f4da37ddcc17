"""The benchmarks' error tree.

BenchError
├── DemoServersMissing   the tool servers of the reference tasks are not installed
└── TasksRejected        a file of tasks cannot be read or says something impossible
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["BenchError", "DemoServersMissing", "TasksRejected"]


class BenchError(Exception):
    """Why a benchmark could not be run."""


class DemoServersMissing(BenchError):  # noqa: N818  (read as a finding)
    """Tool servers that the reference tasks need and this environment lacks; `servers` names them."""

    def __init__(self, servers: Iterable[str]) -> None:
        self.servers = tuple(sorted(servers))
        named = ", ".join(self.servers)
        super().__init__(f"not installed: {named}. They come with: pip install 'skillbank[demo]'")


class TasksRejected(BenchError):  # noqa: N818
    """A file of tasks that cannot be used; the message names the file, the task and the field."""

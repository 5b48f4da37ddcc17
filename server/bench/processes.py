"""What the kernel says of processes: which descend from this one, and how much memory one holds.

Read from `/proc`, which only Linux has; elsewhere `can_look` is false and nothing can be said.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["can_look", "descendants", "named", "resident_bytes"]

_PROC = Path("/proc")


def can_look() -> bool:
    """Return whether this system shows its processes."""
    return (_PROC / "self" / "stat").exists()


def descendants(of: int | None = None) -> dict[int, str]:
    """Return the processes under one, this one by default: id to command line. Zombies count.

    One whose parent has ended belongs to another parent and is not found by this; give it a mark
    in its command line and use `named`.
    """
    parents = {pid: parent for pid in _ids() if (parent := _parent(pid)) is not None}
    found: dict[int, str] = {}
    wanted = {os.getpid() if of is None else of}
    while wanted:
        wanted = {pid for pid, parent in parents.items() if parent in wanted and pid not in found}
        found |= {pid: _command_line(pid) for pid in wanted}
    return found


def named(mark: str) -> dict[int, str]:
    """Return all processes, orphans too, whose command line contains the mark."""
    lines = {pid: _command_line(pid) for pid in _ids() if pid != os.getpid()}
    return {pid: line for pid, line in lines.items() if mark in line}


def resident_bytes(pid: int) -> int:
    """Return how much memory a process holds.

    Raises:
        ProcessLookupError: there is no such process.
    """
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except FileNotFoundError as error:
        raise ProcessLookupError(pid) from error
    return pages * os.sysconf("SC_PAGE_SIZE")


def _ids() -> list[int]:
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]


def _parent(pid: int) -> int | None:
    try:
        after_name = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2]
    except (FileNotFoundError, ProcessLookupError):
        return None  # it has just ended
    return int(after_name.split()[1])


def _command_line(pid: int) -> str:
    try:
        return (
            (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        )
    except (FileNotFoundError, ProcessLookupError):
        return ""

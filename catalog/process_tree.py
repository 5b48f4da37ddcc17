"""Which running processes belong to a tool server, and how they are ended: whole, and only they.

Every child carries a mark in its environment that its descendants inherit, also those behind
wrappers and those that lead sessions of their own. The mark names the process that started it, so
that whoever starts next can tell what a killed predecessor left behind from the children of one
that still runs; no register has to be kept, and none can be stale. What cleared its environment is
found by its session and its parents. A process is pinned before it is signalled, so that a recycled
number is never mistaken for it. Where there is no `/proc`, the child's process group is all there is.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

__all__ = ["MARK_VARIABLE", "ProcessTree", "descendants", "end_orphans", "is_running", "new_mark"]

MARK_VARIABLE: Final = "SKILLBANK_CHILD"
"""Variable that every child is given: `NAMESPACE:PID:START:CHILD` of the process that started it."""

_TERMINATE_GRACE_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.01
_ROUNDS: Final = 5
"""How often what was born meanwhile is looked for before killing is given up."""


@dataclass(frozen=True, slots=True)
class _Running:
    """One process at one moment. Number and start time together are never used twice."""

    pid: int
    parent: int
    group: int
    session: int
    start: int
    """Clock ticks after the machine's start."""
    mark: str | None = None
    """Of the child it belongs to; None where it has none that we may see, or nobody looked."""

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.start


def new_mark() -> str:
    """Return the mark of one more child of this process."""
    own = _running(os.getpid())
    start = own.start if own is not None else 0
    return f"{_namespace()}:{os.getpid()}:{start}:{secrets.token_hex(8)}"


class _Census:
    """All processes at one moment, read once for everybody who asks meanwhile."""

    def __init__(self) -> None:
        self._turn = anyio.Lock()
        self._begun = 0
        self._latest: Mapping[int, _Running] = {}

    async def take(self) -> Mapping[int, _Running]:
        """Return the running processes by number, as they were at some moment after the call."""
        begun_before = self._begun
        async with self._turn:
            if self._begun == begun_before:
                with anyio.CancelScope(shield=True):  # others wait for it too
                    self._begun += 1
                    self._latest = await to_thread.run_sync(_everybody_marked)
        return self._latest


_census: RunVar[_Census] = RunVar("census")
"""One for all trees of an event loop: servers that end together are looked for together."""


async def _take_census() -> Mapping[int, _Running]:
    try:
        census = _census.get()
    except LookupError:
        _census.set(census := _Census())
    return await census.take()


class ProcessTree:
    """One child with everything that came of it.

    Args:
        leader: number of the child, which leads a session of its own.
        mark: what its environment carries.
    """

    def __init__(self, leader: int, mark: str) -> None:
        self._leader = leader
        self._mark = mark
        started = _running(leader)
        self._start = started.start if started is not None else 0
        self._members: set[tuple[int, int]] = {(leader, self._start)}

    async def look(self) -> None:
        """Find the members there are now; those found once stay members wherever they go."""
        everybody = await _take_census()
        young = [process for process in everybody.values() if process.start >= self._start]
        self._members |= {process.key for process in young if process.mark == self._mark}
        # The number of a group is not used again while anybody is in it: one of us in it makes it ours.
        if any(self._is_in_group(process) for process in young if process.key in self._members):
            self._members |= {process.key for process in young if self._is_in_group(process)}
        self._members |= _descendants(self._members, everybody)

    def is_alive(self) -> bool:
        """Return whether anybody that was found is still there."""
        if not _has_proc():
            return _signal_group(self._leader, 0)
        return any(_is_alive(*member) for member in self._members)

    async def end(self) -> None:
        """Ask everybody to terminate, then kill who does not, those born meanwhile too."""
        await self.look()
        if not self.is_alive():
            return
        self._signal(signal.SIGTERM)
        await _until_gone(self.is_alive)
        for _ in range(_ROUNDS):
            await self.look()
            if not self.is_alive():
                return
            self._signal(signal.SIGKILL)
            await _until_gone(self.is_alive)

    def kill(self) -> None:
        """Kill at once whoever is known; what is left is for `end`."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if not _has_proc():
            _signal_group(self._leader, number)
            return
        for member in self._members:
            _signal(*member, number)

    def _is_in_group(self, process: _Running) -> bool:
        return self._leader in (process.group, process.session)


async def end_orphans() -> int:
    """End what processes of ours that were killed have left running, and return how many there were.

    The children of one that still runs are left alone.
    """
    orphans = _orphans(await _take_census())
    for number in (signal.SIGTERM, signal.SIGKILL):
        for orphan in orphans:
            _signal(*orphan, number)
        await _until_gone(lambda: any(_is_alive(*orphan) for orphan in orphans))
    return len(orphans)


def descendants(pid: int) -> list[int]:
    """Return the numbers of the running processes that came of a process, as far as parents tell."""
    everybody = _everybody()
    root = everybody.get(pid)
    return [] if root is None else sorted(found for found, _ in _descendants([root.key], everybody))


def is_running(pid: int) -> bool:
    """Return whether there is a process of this number that has not ended."""
    return _running(pid) is not None


def _orphans(everybody: Mapping[int, _Running]) -> frozenset[tuple[int, int]]:
    namespace = _namespace()
    marked = {
        process.key
        for process in everybody.values()
        if process.mark is not None and _is_abandoned(process.mark, namespace, everybody)
    }
    return frozenset(marked | _descendants(marked, everybody))


def _is_abandoned(mark: str, namespace: int, everybody: Mapping[int, _Running]) -> bool:
    try:
        there, owner, start = (int(part) for part in mark.split(":")[:3])
    except ValueError:
        return False  # not one of our marks
    living = everybody.get(owner)
    return there == namespace and (living is None or living.start != start)


def _mark_of(pid: int) -> str | None:
    """Return the mark of a process of this user, None where it has none."""
    name = f"{MARK_VARIABLE}=".encode()
    found = next((v for v in _environment(pid).split(b"\0") if v.startswith(name)), None)
    if found is None or not _is_same_user(pid):
        return None
    return found[len(name) :].decode("ascii", "replace")


def _descendants(roots: Iterable[tuple[int, int]], everybody: Mapping[int, _Running]) -> set[tuple[int, int]]:
    children: dict[int, list[_Running]] = {}
    for process in everybody.values():
        children.setdefault(process.parent, []).append(process)
    found: set[tuple[int, int]] = set()
    waiting = [pid for pid, start in roots if pid in everybody and everybody[pid].start == start]
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child.key not in found:
                found.add(child.key)
                waiting.append(child.pid)
    return found


def _everybody() -> dict[int, _Running]:
    """Return the processes that have not ended, by number; empty where there is no `/proc`."""
    if not _has_proc():
        return {}
    found = (_running(int(name)) for name in os.listdir("/proc") if name.isdecimal())
    return {process.pid: process for process in found if process is not None}


def _everybody_marked() -> dict[int, _Running]:
    """Return the processes that have not ended, each with its mark; this takes milliseconds."""
    return {pid: replace(process, mark=_mark_of(pid)) for pid, process in _everybody().items()}


def _running(pid: int) -> _Running | None:
    """Return a process that has not ended, or None."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None  # it has ended, or there is no `/proc`
    if fields[0] in (b"Z", b"X"):
        return None
    return _Running(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has ended, or belongs to somebody else


def _is_same_user(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.geteuid()
    except OSError:
        return False  # it has ended


def _is_alive(pid: int, start: int) -> bool:
    now = _running(pid)
    return now is not None and now.start == start


def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")


def _namespace() -> int:
    """Return which set of process numbers ours belong to: a container has others."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _signal(pid: int, start: int, number: signal.Signals) -> None:
    """Signal a process unless it has ended."""
    try:
        pinned = os.pidfd_open(pid)
    except OSError:
        return  # it has ended
    try:
        if _is_alive(pid, start):
            signal.pidfd_send_signal(pinned, number)
    except (ProcessLookupError, PermissionError):
        pass  # it has just ended, or took on another user's rights
    finally:
        os.close(pinned)


def _signal_group(leader: int, number: int) -> bool:
    """Send a signal to the group that a child leads; return whether anybody is in it."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _until_gone(is_there: Callable[[], bool]) -> None:
    with anyio.move_on_after(_TERMINATE_GRACE_SECONDS):
        while is_there():
            await anyio.sleep(_POLL_SECONDS)

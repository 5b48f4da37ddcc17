"""Long runs against real child processes: whether memory stays flat, and whether anything is left.

Each returns what was measured; what is acceptable is the caller's, a test or a benchmark.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from catalog.config import Config, ServerSpec
from catalog.connections import open_connections
from catalog.process_tree import descendants, is_running
from catalog.result import CallSuccess
from catalog.testing.defects import defect_command, read_log
from catalog.tools import ToolId

__all__ = ["Growth", "Leftovers", "connect_repeatedly", "list_and_call_repeatedly", "living"]

_SERVER = "endured"


@dataclass(frozen=True, slots=True)
class Growth:
    """Memory of this process over a number of cycles."""

    cycles: int
    before_bytes: int
    """Resident, after a tenth of the cycles went ahead to warm up."""
    after_bytes: int

    @property
    def bytes_per_cycle(self) -> float:
        """How much a cycle kept on average; negative where memory was given back."""
        return (self.after_bytes - self.before_bytes) / self.cycles


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What connecting and leaving again and again left behind."""

    cycles: int
    started: int
    """Processes that were started in all, those of the servers' own included."""
    living: tuple[int, ...]
    """Of these, the numbers of those that still run."""
    descendants: tuple[int, ...]
    """Processes that came of this one and were not there before."""


async def list_and_call_repeatedly(cycles: int) -> Growth:
    """List the tools of one child process and call one of them, so many times.

    Raises:
        RuntimeError: a call failed.
    """
    async with open_connections(_config("none"), eras={_SERVER: "legacy"}) as connections:

        async def once(number: int) -> None:
            await connections.relist(_SERVER)
            outcome = await connections.call(ToolId(_SERVER, "good"), {"n": number})
            if not isinstance(outcome, CallSuccess):
                raise RuntimeError(f"call {number} failed: {outcome.message}")

        for number in range(max(1, cycles // 10)):
            await once(number)
        before = _resident_bytes()
        for number in range(cycles):
            await once(number)
        return Growth(cycles, before, _resident_bytes())


async def connect_repeatedly(cycles: int, defect: str = "breeds") -> Leftovers:
    """Connect to a child process and leave it, so many times, and look for what is left.

    Args:
        cycles: how often.
        defect: of the server (`catalog.testing.defects`).
    """
    there_before = frozenset(descendants(os.getpid()))
    with tempfile.TemporaryDirectory(prefix="skillbank-") as folder:
        log = Path(folder) / "log"
        for _ in range(cycles):
            async with open_connections(_config(defect, log), eras={_SERVER: "legacy"}) as connections:
                await connections.snapshot()
        entries = read_log(log)
    started = [entry[key] for entry in entries for key in ("started", "bred") if key in entry]
    left = tuple(pid for pid in descendants(os.getpid()) if pid not in there_before)
    return Leftovers(cycles, len(started), tuple(living(started)), left)


def living(pids: Iterable[int]) -> list[int]:
    """Return those of these processes that have not ended."""
    return [pid for pid in pids if is_running(pid)]


def _config(defect: str, log: Path | None = None) -> Config:
    command, args = defect_command(defect, log)
    return Config({_SERVER: ServerSpec(_SERVER, command=command, args=args)})


def _resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

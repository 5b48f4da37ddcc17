"""Programs that do not outlive us; one run to its end, its lines as they come, its group gone on cancel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from catalog.plain_text import plain_text

__all__ = ["Ended", "dying_with_us", "run_program"]

_BECOME = """
import os, signal, sys
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Asks the kernel for death with its parent, and becomes another program."""

_KEPT_LINES = 200
_LONGEST_LINE = 2_000


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    exit_code: int
    lines: tuple[str, ...]
    """The last ones it wrote, on either stream."""

    def last_words(self, count: int = 6) -> str:
        """Return its last lines that say something, joined."""
        said = [line.strip() for line in self.lines if line.strip()]
        return plain_text(" / ".join(said[-count:]), 700)


def dying_with_us(command: Sequence[str]) -> list[str]:
    """Return a command line that does the same and is killed when we are; on Linux, elsewhere it lives on."""
    return [sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), *command]


async def run_program(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    on_line: Callable[[str], None] | None = None,
) -> Ended:
    """Run a program in a folder and return how it ended; when cancelled, kill it with all its children.

    One that is not there ends like one that fails, and its last words say so.
    """
    kept: deque[str] = deque(maxlen=_KEPT_LINES)
    process = await anyio.open_process(
        dying_with_us(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,
    )
    try:
        await _read_lines(process, kept, on_line)
        code = await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
            await process.aclose()
    return Ended(code, tuple(kept))


async def _read_lines(process: Process, kept: deque[str], on_line: Callable[[str], None] | None) -> None:
    assert process.stdout is not None
    rest = ""
    async for chunk in TextReceiveStream(process.stdout, errors="replace"):
        *lines, rest = (rest + chunk).replace("\r", "\n").split("\n")
        for line in lines:
            kept.append(line[:_LONGEST_LINE])
            if on_line is not None:
                on_line(line)
        rest = rest[-_LONGEST_LINE:]
    kept.append(rest)

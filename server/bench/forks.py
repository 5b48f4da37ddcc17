"""The parent of forked tool servers, for as long as a benchmark runs (`server.bench.forked_servers`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from server.bench import forked_servers
from server.bench.forked_servers import stand_in_command

__all__ = ["Forks", "open_forks"]

_QUIET = {"FASTMCP_SHOW_SERVER_BANNER": "false"}
"""A banner costs a server more than all else of its start."""
_READY_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Forks:
    """Where fresh processes of console scripts are forked."""

    socket: str | None
    """None: this system cannot fork, and every process is started."""

    def command(self, command: list[str]) -> list[str]:
        """Return the command that gives a fresh process of what a command of a console script starts."""
        return command if self.socket is None else stand_in_command(self.socket, command)


@asynccontextmanager
async def open_forks() -> AsyncGenerator[Forks]:
    """Start the parent, and end it afterwards.

    Raises:
        TimeoutError: it did not come up.
    """
    if not hasattr(os, "fork"):
        yield Forks(None)
        return
    with TemporaryDirectory(prefix="skillbank-forks-") as folder:
        place = str(Path(folder, "s"))
        command = [sys.executable, str(forked_servers.__file__), "--parent", place]
        environment = {**os.environ, **_QUIET}
        async with await anyio.open_process(command, stderr=subprocess.DEVNULL, env=environment) as parent:
            assert parent.stdin is not None
            assert parent.stdout is not None
            try:
                with anyio.fail_after(_READY_SECONDS):
                    await BufferedByteReceiveStream(parent.stdout).receive_until(b"\n", 64)
                yield Forks(place)
            finally:
                await parent.stdin.aclose()

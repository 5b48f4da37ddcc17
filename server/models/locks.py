"""A lock between processes that the kernel takes back when its holder dies. POSIX only."""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from server.models.step import Report, Step

__all__ = ["hold_lock", "is_locked"]

_POLL_SECONDS = 0.1


@asynccontextmanager
async def hold_lock(path: Path, report: Report, waiting: str) -> AsyncGenerator[None]:
    """Hold the lock of a file while the context is open.

    Args:
        path: created where it is missing, and left there: removing it would let two hold it.
        report: is told once where another process holds it.
        waiting: what is said then.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        told = False
        while not _try(descriptor):
            if not told:
                report(Step(waiting))
                told = True
            await anyio.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def is_locked(descriptor: int) -> bool:
    """Return whether another process holds the lock of an open file."""
    if not _try(descriptor):
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""Which llama-servers of this user are running: one file each, locked for as long as its server lives.

The lock is inherited by the server's process and taken back by the kernel when that ends, however it
ends. So a lease whose lock is free is of a dead server, and no process id has to be believed.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ConfigDict, ValidationError

from server.models.locks import is_locked

__all__ = ["Lease", "LeaseFile", "create_lease", "end_orphans", "running_servers"]


class Lease(BaseModel):
    """A running server, as it is written down for other processes of the same user."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    path: str
    """Of the weights, which say better than a name which model it is."""
    url: str
    """Base URL of its OpenAI-compatible API."""
    key: str
    """Without it the server answers nobody."""
    slots: int
    """Alternatives that one request may ask for."""
    context_tokens: int
    pid: int
    owner_pid: int
    """The skillbank that started it."""
    shared: bool
    """Whether other processes may use it; else it ends with its owner's work."""


@dataclass(frozen=True, slots=True)
class LeaseFile:
    """A lease while its server starts: its lock is ours until it is published, then the server's alone."""

    path: Path
    file: IO[bytes]

    def publish(self, lease: Lease) -> None:
        """Say that the server is ready."""
        self.file.write(lease.model_dump_json().encode())
        self.file.close()

    def close(self) -> None:
        """Remove it; the server has ended, or never was."""
        self.path.unlink(missing_ok=True)
        self.file.close()


def create_lease(folder: Path, model: str) -> LeaseFile:
    """Return a new lease of ours, empty until it is published; only this user can read it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = f"{model}-{os.getpid()}-{secrets.token_hex(4)}"
    unnamed = folder / f".{name}"
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    path = folder / f"{name}.json"
    unnamed.rename(path)  # nobody sees it before it is locked
    return LeaseFile(path, os.fdopen(descriptor, "wb"))


def running_servers(folder: Path) -> list[Lease]:
    """Return the servers that run; leases of dead ones are removed."""
    return [lease for _, lease in _leases(folder) if lease is not None]


def end_orphans(folder: Path) -> None:
    """End the private servers whose owner is gone, where the system did not end them with it."""
    for path, lease in _leases(folder):
        if lease is not None and not lease.shared and not _is_alive(lease.owner_pid):
            os.kill(lease.pid, signal.SIGKILL)
            path.unlink(missing_ok=True)


def _leases(folder: Path) -> Iterator[tuple[Path, Lease | None]]:
    """Yield the lease of each living server, None while it starts."""
    for path in sorted(folder.glob("*.json")):
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            continue  # it ended meanwhile
        try:
            if is_locked(descriptor):
                yield path, _read(path)
            else:
                path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _read(path: Path) -> Lease | None:
    try:
        return Lease.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None  # not ready yet, or just ended


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

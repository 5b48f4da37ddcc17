"""Drives that are kept for training: what a model was shown and said, step by step, as the bank reported it.

A drive repeats most of its prompt at every step, so it is kept packed.
"""

from __future__ import annotations

import json
import zlib
from threading import RLock
from typing import Protocol

from pydantic import BaseModel, ConfigDict, JsonValue

__all__ = ["DRIVES_KEPT", "DriveStore", "KeptDrive", "MemoryDrives", "packed", "unpacked"]

DRIVES_KEPT = 1_000
"""Drives of one principal; adding one more drops the one that was kept first."""


class KeptDrive(BaseModel):
    """One drive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """Digest of what the model was shown and said."""
    at: float
    """Unix seconds."""
    report: dict[str, JsonValue]
    """As `solve` answered it (`server.reports.RepairReport`), secrets taken out."""


class DriveStore(Protocol):
    """The drives of one principal."""

    def add(self, drive: KeptDrive) -> None:
        """Keep a drive in place of one of the same id."""
        ...

    def drives(self, limit: int) -> list[KeptDrive]:
        """Return the newest, the newest first."""
        ...

    def drop(self, before: float) -> int:
        """Forget those from before a time (Unix seconds); return how many."""
        ...


def packed(drive: KeptDrive) -> bytes:
    """Return a drive as it is kept."""
    text = json.dumps(drive.model_dump(mode="json"), ensure_ascii=False, allow_nan=False)
    return zlib.compress(text.encode("utf-8", "surrogatepass"))


def unpacked(content: bytes) -> KeptDrive:
    """Return what was packed.

    Raises:
        ValueError: it was not.
    """
    try:
        text = zlib.decompress(content).decode("utf-8", "surrogatepass")
    except zlib.error as error:
        raise ValueError(f"a kept drive cannot be unpacked: {error}") from error
    return KeptDrive.model_validate(json.loads(text))


class MemoryDrives:
    """Drives that live as long as their process."""

    def __init__(self) -> None:
        self._kept: dict[str, KeptDrive] = {}
        self._lock = RLock()

    def add(self, drive: KeptDrive) -> None:
        with self._lock:
            self._kept.pop(drive.id, None)
            self._kept[drive.id] = drive
            while len(self._kept) > DRIVES_KEPT:
                del self._kept[next(iter(self._kept))]

    def drives(self, limit: int) -> list[KeptDrive]:
        with self._lock:
            return list(reversed(self._kept.values()))[:limit]

    def drop(self, before: float) -> int:
        with self._lock:
            old = [drive.id for drive in self._kept.values() if drive.at < before]
            for name in old:
                del self._kept[name]
            return len(old)

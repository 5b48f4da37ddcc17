"""Bounds what a trace holds: a large value becomes its digest and a preview, the whole one a file.

Files are named by digest, so equal values are written once and a file never changes. Reading one
back checks it against its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from catalog.canonical import JsonValue, canonical_json
from catalog.whole_file import write_whole
from skills_store.trace import PREVIEW_BYTES

__all__ = ["Bounded", "Redact", "Spill", "bounded", "unredacted"]

PREVIEW_CHARACTERS = 1_000

Redact = Callable[[JsonValue], JsonValue]


def unredacted(value: JsonValue) -> JsonValue:
    """Return the value as it is: the redaction of a run that knows no secrets."""
    return value


@dataclass(frozen=True, slots=True)
class Bounded:
    """A value as a trace keeps it, with the digest of the whole."""

    value: JsonValue
    digest: str


@dataclass(frozen=True, slots=True)
class Spill:
    """A folder of large values, each in a file named by its digest."""

    folder: Path

    def keep(self, digest: str, content: bytes) -> None:
        """Write a value's canonical bytes unless they are there; readers never see half a file."""
        path = self.path(digest)
        if path.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, content)

    def read(self, digest: str) -> bytes:
        """Return the canonical bytes of a value.

        Raises:
            FileNotFoundError: it was never spilled here.
            ValueError: the file is not what its name says.
        """
        content = self.path(digest).read_bytes()
        if _digest(content) != digest:
            raise ValueError(f"{self.path(digest)} does not hold the value it is named after")
        return content

    def path(self, digest: str) -> Path:
        """Return the file of a digest, whether or not it is there."""
        return self.folder / (digest.removeprefix("sha256:") + ".json")


def bounded(value: JsonValue, spill: Spill | None = None, *, limit_bytes: int = PREVIEW_BYTES) -> Bounded:
    """Return the value, or its digest, size and preview when its JSON passes the limit.

    Args:
        value: already redacted.
        spill: where the whole of a large value is kept; None: nowhere.
        limit_bytes: size of canonical JSON up to which a value is kept as it is.
    """
    content = canonical_json(value)
    digest = _digest(content)
    if len(content) <= limit_bytes:
        return Bounded(value, digest)
    if spill is not None:
        spill.keep(digest, content)
    preview = content[: PREVIEW_CHARACTERS * 4].decode(errors="ignore")[:PREVIEW_CHARACTERS]
    return Bounded(cast("JsonValue", {"$digest": digest, "size": len(content), "preview": preview}), digest)


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"

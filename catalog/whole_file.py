"""Writes a file whole or not at all, also when the process or the machine stops meanwhile."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Put content in place of a file; readers see the old file or the new one.

    Args:
        path: its folder exists.
        content: bytes.
        mode: permissions of the file, its owner's alone by default.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            os.chmod(temporary, mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise

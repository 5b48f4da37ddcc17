"""Which llama-server is used: the one that is named, the one on PATH, or the one that was built here."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from server.models.errors import NotFetched
from server.models.shelf import Shelf

__all__ = ["PINNED_SOURCES", "Runtime", "available_processors", "built_runtime", "find_runtime"]

PINNED_SOURCES: Final = "0.3.36"
"""Version of the source package whose llama.cpp is built where no binary can be had."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A llama-server that can be run."""

    path: Path
    origin: Literal["named", "path", "built"]


def find_runtime(shelf: Shelf, named: Path | None, search_path: str | None) -> Runtime | None:
    """Return the llama-server to use, None where there is none yet.

    Args:
        named: by a person; then it is that one or an error.
        search_path: folders to look in, as PATH has them; None: those of the process.

    Raises:
        NotFetched: the named one cannot be run.
    """
    if named is not None:
        if not os.access(named, os.X_OK) or named.is_dir():
            raise NotFetched(f"SKILLBANK_LLAMA_SERVER names {named}, which cannot be run")
        return Runtime(named, "named")
    if found := shutil.which("llama-server", path=search_path):
        return Runtime(Path(found), "path")
    built = built_runtime(shelf)
    return Runtime(built, "built") if built.is_file() else None


def built_runtime(shelf: Shelf) -> Path:
    """Return where the runtime built for this version and this kind of processor is, or will be.

    It is compiled for the processor at hand and may stop on another, so a folder that several
    machines share holds one for each kind.
    """
    kind = f"{platform.machine()}-{_processor_features()}"
    return shelf.runtimes / f"llama-server-{PINNED_SOURCES}-{kind}" / "llama-server"


def available_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor_features() -> str:
    """Return a short name for what the processor can do, where the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return "native"  # not Linux: one kind per machine type
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", text, re.MULTILINE)
    names = " ".join(sorted(flags[1].split())) if flags else ""
    return hashlib.sha256(names.encode()).hexdigest()[:8]

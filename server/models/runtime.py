"""Which llama-server is used: the one that is named, the one on PATH, or the one that was built here."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from server.models.errors import NotFetched
from server.models.known import KNOWN_MODELS, KnownModel
from server.models.shelf import Shelf
from server.settings import Settings

__all__ = ["PINNED_SOURCES", "SLOTS", "Host", "Runtime", "available_processors", "built_runtime", "host_of"]

PINNED_SOURCES: Final = "0.3.36"
"""Version of the source package whose llama.cpp is built where no binary can be had."""

SLOTS: Final = 4
"""Alternatives that one request may ask for, unless said otherwise."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A llama-server that can be run."""

    path: Path
    origin: Literal["named", "path", "built"]


@dataclass(frozen=True, slots=True)
class Host:
    """This machine, as far as having a model on it needs it."""

    shelf: Shelf
    named_runtime: Path | None = None
    """A llama-server that a person named, None: the one that is found."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What programs that are started here inherit; its PATH is searched."""

    def runtime(self) -> Runtime | None:
        """Return the llama-server to use, None where there is none yet.

        Raises:
            NotFetched: the named one cannot be run.
        """
        if (named := self.named_runtime) is not None:
            if not named.is_file() or not os.access(named, os.X_OK):
                raise NotFetched(f"SKILLBANK_LLAMA_SERVER names {named}, which cannot be run")
            return Runtime(named, "named")
        if found := shutil.which("llama-server", path=self.environment.get("PATH", "")):
            return Runtime(Path(found), "path")
        built = built_runtime(self.shelf)
        return Runtime(built, "built") if built.is_file() else None


def host_of(settings: Settings, known: tuple[KnownModel, ...] = KNOWN_MODELS) -> Host:
    """Return this machine as the settings describe it."""
    return Host(Shelf(settings.cache_path, known), settings.runtime_path, settings.environment)


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

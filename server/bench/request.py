"""What one benchmark is asked, and what it answers: the same for all of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from server.bench.errors import BenchError
from server.progress import Progress
from server.settings import Settings, read_settings

__all__ = ["BenchRequest", "Measured", "show_progress"]


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """What is to be measured, and how it is printed."""

    name: str
    quick: bool = False
    """A size that ends within a minute."""
    as_json: bool = False
    tasks: Path | None = None
    """Cases of others, None: those that come with the benchmark."""
    config: Path | None = None
    """The servers those cases call, None: the demo's."""
    write: Path | None = None
    """A Markdown file whose table of this benchmark is replaced."""
    model: str | None = None
    """Who plans: a model as configurations name it, or recorded:FILE; None: what was recorded with it."""
    tape: Path | None = None
    """Where the model's answers are kept, None: nowhere."""
    settings: Settings | None = field(default=None, compare=False)
    """Where models are configured, None: those of this process."""
    parts: tuple[str, ...] = ()
    """Parts of the benchmark, empty: all it has."""
    keep: Path | None = None
    """File that finished pieces are read from and added to, None: nothing is kept."""
    mcp_bench: Path | None = None
    """A checkout of MCP-Bench's repository, None: its tasks are left out."""
    python: Path | None = None
    """The interpreter that has the trainer's packages, None: this one."""

    @property
    def configured(self) -> Settings:
        """The settings under which models are found."""
        return self.settings or read_settings()

    def parts_of(self, known: tuple[str, ...]) -> tuple[str, ...]:
        """Return the parts that are wanted, in the order they were named.

        Raises:
            BenchError: one of them is not among those known.
        """
        if strange := [part for part in self.parts if part not in known]:
            raise BenchError(f"no part {strange[0]!r} here; there are {', '.join(known)}")
        return self.parts or known


@dataclass(frozen=True, slots=True)
class Measured:
    """What a benchmark found, as a value and as a table in Markdown."""

    report: BaseModel
    table: str
    written: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tables by the mark they are written at, where there are several; empty: the one, at its own mark."""


def show_progress(progress: Progress) -> None:
    """Tell a benchmark's progress on stderr."""
    if progress.stage == "bench":
        print(progress.message, file=sys.stderr)

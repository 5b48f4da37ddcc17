"""One installed version of the official conformance suite, and what a run of it came to."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

RUN_SECONDS = 900


@dataclass(frozen=True)
class Counts:
    """What a run of the suite came to."""

    code: int
    passed: int
    failed: int
    failing: tuple[str, ...]
    """Scenarios with a failed check."""
    told: str


class Suite:
    """One installed version of the suite."""

    def __init__(self, folder: Path) -> None:
        self._binaries = folder / "node_modules" / ".bin"

    def run(self, *arguments: str, environment: dict[str, str] | None = None) -> Counts:
        """Run it and return its counts."""
        path = f"{self._binaries}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [str(self._binaries / "conformance"), *arguments],
            env={**os.environ, **(environment or {}), "PATH": path},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        told = done.stdout + done.stderr
        total = re.findall(r"^Total: (\d+) passed, (\d+) failed", told, re.MULTILINE)
        summary = re.findall(r"^✗ ([\w/.-]+): ", told, re.MULTILINE)
        passed, failed = map(int, total[-1]) if total else (0, 0)
        return Counts(done.returncode, passed, failed, tuple(summary), told)

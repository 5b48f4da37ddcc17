"""Gets the official conformance suite from npm, each version once, and runs it on Node 22."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import pytest

HERE = Path(__file__).parent
NODE = "node@22"  # the suite needs it; what is installed here may be older
INSTALL_SECONDS = 600
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


@pytest.fixture(scope="session")
def suites() -> dict[str, Suite]:
    return {}


@pytest.fixture
def suite(request: pytest.FixtureRequest, suites: dict[str, Suite]) -> Suite:
    """Return the version of the suite that the test is marked with."""
    version = request.node.get_closest_marker("suite").args[0]
    if version not in suites:
        suites[version] = Suite(_installed(version))
    return suites[version]


def _installed(version: str) -> Path:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: the conformance suite comes from there")
    folder = platformdirs.user_cache_path("skillbank") / "conformance" / version
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        package = f"@modelcontextprotocol/conformance@{version}"
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), NODE, package]
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if done.returncode:
            pytest.skip(f"npm does not give {package}: {done.stderr.strip()[-300:]}")
        complete.touch()
    return folder


@pytest.fixture(scope="session")
def fixture_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the real server in front of the fixture's tools and yield its address."""
    with served("fixture_bank.py", tmp_path_factory.mktemp("bank")) as url:
        yield url


@contextmanager
def served(program: str, folder: Path) -> Iterator[str]:
    """Run a program of this folder that prints its address once it serves."""
    log = folder / "stderr"
    with log.open("wb") as errors:
        command = [sys.executable, str(HERE / program), str(folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, log.read_text()[-2_000:]
            yield url
        finally:
            process.terminate()
            process.wait(30)

"""Gets the official conformance suite from npm, each version once, and runs it on Node 22."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # modules of this folder; it is no package

from suite import Suite  # noqa: E402

NODE = "node@22"  # the suite needs it; what is installed here may be older
INSTALL_SECONDS = 600


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
            if process.stdout is not None:
                process.stdout.close()

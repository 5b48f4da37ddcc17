"""Installs the packages of real servers, each environment once, into a folder of the user's cache.

A folder is known by what is in it, so that a changed pin gets a new one; an installation that did
not come to its end counts as none.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import platformdirs
from real_servers import Environment

__all__ = ["InstallFailed", "install"]

_INSTALL_SECONDS = 900
_SHOWN_LINES = 12


class InstallFailed(Exception):  # noqa: N818
    """A registry did not give what is pinned; the message says what it or its client said."""


def install(environments: Mapping[str, Environment]) -> dict[str, Path]:
    """Return the folder of each environment, installed if it was not.

    Raises:
        InstallFailed: one could not be installed.
    """
    cache = platformdirs.user_cache_path("skillbank") / "real-servers"
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache / "lock"), ThreadPoolExecutor() as pool:
        places = pool.map(lambda item: _installed(cache, *item), environments.items())
        return dict(zip(environments, places, strict=True))


def _installed(cache: Path, name: str, environment: Environment) -> Path:
    known = json.dumps([environment.model_dump(mode="json"), sys.version_info[:2], sys.prefix])
    folder = cache / f"{name}-{hashlib.sha256(known.encode()).hexdigest()[:12]}"
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        _fill(folder, environment)
        complete.touch()
    return folder


def _fill(folder: Path, environment: Environment) -> None:
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    match environment.registry:
        case "pypi":
            _run([sys.executable, "-m", "venv", str(folder)], folder.parent)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", *quiet]
            _run([*pip, *environment.packages], folder)
        case "npm":
            folder.mkdir()
            (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
            npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
            _run([*npm, *environment.packages], folder)


def _run(command: Sequence[str], folder: Path) -> None:
    shown = " ".join(command)
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise InstallFailed(f"not done within {_INSTALL_SECONDS} s: {shown}") from error
    if done.returncode:
        said = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        tail = "\n".join(said[-_SHOWN_LINES:])
        raise InstallFailed(f"exit code {done.returncode}: {shown}\n{tail}\nIs the registry reachable?")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other runs on this machine out until done."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

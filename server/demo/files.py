"""The files the stories read: those of the benchmarks, and a second workbook and repository.

The second ones are what a skill is tried on before it is admitted, and what a client asks about.
"""

from __future__ import annotations

import os
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

from server.provisioning.demo_files import REPOSITORY, WORKBOOK, build_fixtures
from server.provisioning.errors import DemoServersMissing

__all__ = ["build_files"]

_BRANCH_WORKBOOK = "branch.xlsx"
_EARLIER_RELEASE = "1.1"


def build_files(folder: Path, *, with_git: bool) -> None:
    """Write all files into an existing, empty folder; no repositories where there is no git.

    Raises:
        DemoServersMissing: what writes workbooks is not installed.
    """
    try:
        build_fixtures(folder)
    except DemoServersMissing as error:
        if with_git or error.servers != ("git",):
            raise
    _double_amounts(folder / WORKBOOK, folder / _BRANCH_WORKBOOK)
    if with_git:
        _clone_release(folder / REPOSITORY, _EARLIER_RELEASE)


def _double_amounts(source: Path, target: Path) -> None:
    """Write a workbook that differs from another in every amount."""
    openpyxl: Any = import_module("openpyxl")
    book = openpyxl.load_workbook(source)
    for sheet in (book["Orders"], book["Returns"]):
        for row in range(2, sheet.max_row + 1):
            sheet.cell(row, 2).value *= 2
    book.save(target)


def _clone_release(repository: Path, release: str) -> None:
    """Clone a repository as it was at a release, free of the user's own git configuration."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-c", "advice.detachedHead=false", "clone", "--quiet", "--branch", f"v{release}"]
    target = repository.with_name(f"{repository.name}-{release}")
    subprocess.run([*command, str(repository), str(target)], env=environment, check=True, capture_output=True)

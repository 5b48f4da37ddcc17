"""The files that benchmark tasks and the demo read: a workbook and a repository, the same each time.

`open_fixtures` builds them in a folder; tasks name that folder as `${FIXTURES}`. Which servers read
them is `server.bench.servers`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from server.bench.errors import DemoServersMissing

__all__ = ["FIXTURES", "REPOSITORY", "WORKBOOK", "build_fixtures"]

FIXTURES = "${FIXTURES}"
"""Stands for the fixture folder in tasks."""
WORKBOOK = "shop.xlsx"
REPOSITORY = "notes"

_Cell = str | float | int

_SHEETS: dict[str, list[list[_Cell]]] = {
    "Orders": [
        ["region", "amount", "units"],
        ["North", 120.5, 3],
        ["South", 80, 2],
        ["North", 30, 1],
        ["West", 200, 5],
        ["East", 45.5, 4],
        ["South", 64, 8],
    ],
    "Returns": [
        ["region", "amount", "units"],
        ["West", 50, 1],
        ["South", 16, 2],
        ["West", 25, 1],
    ],
    "Routes": [
        ["route", "miles"],
        ["harbour", 12.4],
        ["airport", 31],
        ["market", 6.2],
    ],
    "Team": [
        ["name", "zone"],
        ["Ada", "Asia/Tokyo"],
        ["Grace", "Asia/Kolkata"],
        ["Alan", "Africa/Lagos"],
    ],
}

_COMMITS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("Ada", "2026-01-05T09:15:00+00:00", "Start notes", {"notes.md": "# Notes\n\nFirst entry.\n"}),
    (
        "Grace",
        "2026-02-10T14:30:00+00:00",
        "Add second note",
        {"notes.md": "# Notes\n\nFirst entry.\nSecond entry.\n"},
    ),
    (
        "Ada",
        "2026-03-03T18:45:00+00:00",
        "Record the unit price",
        {"price.txt": "unit_price=12.75\nquantity=16\n"},
    ),
    (
        "Alan",
        "2026-04-07T06:20:00+00:00",
        "Raise the unit price",
        {"price.txt": "unit_price=15.5\nquantity=12\n"},
    ),
)
_TAGS = ("v1.0", "v1.1", "v1.2", "v1.3")


def build_fixtures(folder: Path) -> None:
    """Write the workbook and the repository into an existing, empty folder.

    Raises:
        DemoServersMissing: what writes workbooks is not installed, or there is no `git`.
    """
    _build_workbook(folder / WORKBOOK)
    _build_repository(folder / REPOSITORY)


def _build_workbook(path: Path) -> None:
    try:
        openpyxl: Any = import_module("openpyxl")
    except ImportError as error:
        raise DemoServersMissing(["excel"]) from error
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in _SHEETS.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)


def _build_repository(path: Path) -> None:
    path.mkdir()
    _git(path, ["init", "--quiet", "--initial-branch=main"])
    for (author, date, message, files), tag in zip(_COMMITS, _TAGS, strict=True):
        for name, text in files.items():
            (path / name).write_text(text, encoding="utf-8", newline="\n")
        _git(path, ["add", *sorted(files)])
        _git(path, ["commit", "--quiet", "--message", message], author=author, date=date)
        _git(path, ["tag", tag])


def _git(folder: Path, arguments: Sequence[str], *, author: str = "Ada", date: str = "") -> None:
    """Run git free of the user's own configuration, so that every commit has the same id everywhere."""
    email = f"{author.lower()}@example.org"
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_NAME": author,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_NAME": author,
        "GIT_COMMITTER_EMAIL": email,
        "GIT_COMMITTER_DATE": date,
    }
    command = ["git", "-c", "core.autocrlf=false", "-c", "commit.gpgsign=false", *arguments]
    try:
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    except FileNotFoundError as error:
        raise DemoServersMissing(["git"]) from error

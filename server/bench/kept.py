"""Finished pieces of a long benchmark in a file of JSON lines, so that a broken-off run goes on.

A line is `{"part", "key", "report"}`. What a report is, its part knows.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

__all__ = ["Kept"]

_Report = TypeVar("_Report", bound=BaseModel)


class Kept:
    """What earlier runs finished, and where this one adds to it.

    Args:
        path: the file; None: nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._found: dict[tuple[str, str], str] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self._found[entry["part"], entry["key"]] = json.dumps(entry["report"])

    async def or_made(
        self, part: str, key: str, model: type[_Report], make: Callable[[], Awaitable[_Report]]
    ) -> _Report:
        """Return the kept report of a piece, or make it and keep it."""
        if (part, key) in self._found:
            return model.model_validate_json(self._found[part, key])
        report = await make()
        if self._path is not None:
            entry = {"part": part, "key": key, "report": report.model_dump(mode="json")}
            with self._path.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(entry) + "\n")
        return report

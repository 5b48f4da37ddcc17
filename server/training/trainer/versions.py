"""Which releases the trainer was tried with: its hooks into TRL are private, so others are refused."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable

__all__ = ["NEEDED", "problem_of"]

NEEDED = {
    "torch": ("2.13", "2.15"),
    "trl": ("1.16", "1.17"),
    "transformers": ("5.24", "5.25"),
    "datasets": ("5.2", "5.3"),
}
"""From the first to below the second, by package.

Tried: torch 2.13.0, trl 1.16.0, transformers 5.24.0, datasets 5.2.0.
"""

_REMEDY = "pip install 'skillbank[train]' in a Python of its own, and give it by --python"


def problem_of(version: Callable[[str], str] = importlib.metadata.version) -> str | None:
    """Return in words why training cannot be done with the packages here, None where it can."""
    for package, (least, below) in NEEDED.items():
        try:
            found = version(package)
        except importlib.metadata.PackageNotFoundError:
            return f"{package} is not installed: {_REMEDY}"
        if not _numbers(least) <= _numbers(found) < _numbers(below):
            return f"{package} {found} is not one this was tried with ({least} to below {below}): {_REMEDY}"
    return None


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split("+")[0].split(".")
    return tuple(int(part) for part in parts[:2] if part.isdigit())

"""Which runs belong together: groups of one task, families of one kind, and the split by family."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import JsonValue

from catalog.canonical import digest

__all__ = ["family_of", "group_of", "split_of"]

_LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|[\w./:@-]*\d[\w./:@-]*")
_DIGITS = 16


def group_of(task: str, inputs: Mapping[str, JsonValue]) -> str:
    """Return what names a task with these inputs."""
    return _short([task, dict(inputs)])


def family_of(task: str) -> str:
    """Return what names tasks that differ only in quoted text and in words with digits."""
    return _short(" ".join(_LITERAL.sub("_", task).lower().split()))


def split_of(family: str, test_share: float) -> Literal["train", "test"]:
    """Return the split of a family: by its digest, so that it stays there as the bank grows."""
    place = int(digest(["split", family]).removeprefix("sha256:")[:8], 16) / 0x1_0000_0000
    return "test" if place < test_share else "train"


def _short(value: JsonValue) -> str:
    return digest(value).removeprefix("sha256:")[:_DIGITS]

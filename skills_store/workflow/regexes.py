"""Regular expressions that cannot hang: a typed door to the linear engine."""

# re2 has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol, cast

import re2

from skills_store.workflow.bounds import SelectorError

__all__ = ["find_all", "find_first"]

_PATTERN_LENGTH = 1_000


class _Match(Protocol):
    def group(self, group: int = 0) -> str | None: ...


class _Pattern(Protocol):
    @property
    def groups(self) -> int: ...
    def search(self, text: str) -> _Match | None: ...
    def finditer(self, text: str) -> Iterator[_Match]: ...


def find_first(pattern: str, text: str) -> str | None:
    """Return the first group of the first match, the whole match where there are no groups.

    A match whose first group took no part is an empty text; None means no match.

    Raises:
        SelectorError: the pattern is malformed or too long.
    """
    compiled = _compiled(pattern)
    match = compiled.search(text)
    return None if match is None else _shown(compiled, match)


def find_all(pattern: str, text: str) -> Iterator[str]:
    """Yield the first group, or the whole, of every match.

    Raises:
        SelectorError: the pattern is malformed or too long.
    """
    compiled = _compiled(pattern)
    return (_shown(compiled, match) for match in compiled.finditer(text))


def _shown(compiled: _Pattern, match: _Match) -> str:
    return match.group(1 if compiled.groups else 0) or ""


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> _Pattern:
    if len(pattern) > _PATTERN_LENGTH:
        raise SelectorError(f"a pattern of {len(pattern)} characters; at most {_PATTERN_LENGTH}")
    options = re2.Options()
    options.log_errors = False
    try:
        return cast("_Pattern", re2.compile(pattern, options))
    except re2.error as error:
        raise SelectorError(f"{pattern!r} is no pattern of the linear engine: {_words(error)}") from error


def _words(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)

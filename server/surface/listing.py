"""The tool list: always-there tools first, then the published skills by name, a page at a time.

It depends on the bank alone, never on who asks: the protocol forbids lists that vary by connection.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

import mcp.types as types
from mcp import MCPError

from catalog.canonical import digest
from catalog.tools import JsonSchema
from server.surface.builtin_tools import BUILTIN_TOOLS
from server.surface.names import listed_names
from server.surface.port import BankPort
from server.surface.skill_tools import skill_tool
from skills_store.skill import Skill

__all__ = ["PAGE_SIZE", "Listing", "ListingSource"]

PAGE_SIZE = 100


@dataclass(frozen=True)
class Listing:
    """All listed tools at one revision of the bank."""

    tools: Mapping[str, types.Tool]
    """By name, in the order in which they are listed."""
    skills: Mapping[str, Skill]
    """The skill behind each listed name; always-there tools are not in it."""

    def input_schema(self, name: str) -> JsonSchema | None:
        """Return the input schema of a listed tool, None when it is not listed."""
        tool = self.tools.get(name)
        return None if tool is None else tool.input_schema

    def page(self, cursor: str | None) -> types.ListToolsResult:
        """Return the page after a cursor, the first one for None.

        Raises:
            MCPError: the cursor is not one of ours.
        """
        names = list(self.tools)
        start = 0 if cursor is None else self._position(names, _parse_cursor(cursor))
        shown = names[start : start + PAGE_SIZE]
        more = start + PAGE_SIZE < len(names)
        return types.ListToolsResult(
            tools=[self.tools[name] for name in shown], next_cursor=_cursor(shown[-1]) if more else None
        )

    def fingerprint(self) -> str:
        """`sha256:…` over everything a client sees of the published skills."""
        return digest([self.tools[name].model_dump(mode="json", by_alias=True) for name in self.skills])

    def _position(self, names: list[str], after: str) -> int:
        # The tool behind the cursor may be gone by now; skills come in order of name, so its place is known.
        if after in self.tools:
            return names.index(after) + 1
        return sum(1 for name in names if name in BUILTIN_TOOLS or name <= after)


class ListingSource:
    """Builds the listing, anew only when the bank has changed."""

    def __init__(self, bank: BankPort) -> None:
        self._bank = bank
        self._revision: int | None = None
        self._listing = Listing(BUILTIN_TOOLS, {})

    def current(self) -> Listing:
        """Return the listing of the bank as it is now."""
        revision = self._bank.revision()
        if revision != self._revision:
            self._listing = _listing(self._bank)
            self._revision = revision
        return self._listing


def _listing(bank: BankPort) -> Listing:
    published = {entry.tool_name: entry.skill for entry in bank.published()}
    listed = listed_names(published)
    skills = {listed[name]: skill for name, skill in published.items()}
    ordered = {name: skills[name] for name in sorted(skills)}
    tools = {name: skill_tool(name, skill) for name, skill in ordered.items()}
    return Listing({**BUILTIN_TOOLS, **tools}, ordered)


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _parse_cursor(cursor: str) -> str:
    try:
        return base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise MCPError(types.INVALID_PARAMS, "Invalid cursor: list from the start again") from error

"""The tool list: always-there tools, then the published skills by name, then upstream tools, in pages.

It depends on the bank and on the operator's options, never on who asks: the protocol forbids lists
that vary by connection.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import is_

import mcp.types as types
from mcp import MCPError

from catalog.canonical import digest
from catalog.tools import JsonSchema, Tool, ToolId
from server.surface.admin_tools import ADMIN_TOOLS
from server.surface.builtin_tools import BUILTIN_TOOLS
from server.surface.names import listed_names, listed_tool_names
from server.surface.port import BankPort
from server.surface.skill_tools import skill_tool
from server.surface.upstream_tools import for_era, upstream_tool
from server.surface_options import SurfaceOptions
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
    upstream: Mapping[str, ToolId] = field(default_factory=dict[str, ToolId])
    """The upstream tool behind each listed name."""

    def input_schema(self, name: str) -> JsonSchema | None:
        """Return the input schema of a listed tool, None when it is not listed."""
        tool = self.tools.get(name)
        return None if tool is None else tool.input_schema

    def page(self, cursor: str | None, *, modern: bool = True) -> types.ListToolsResult:
        """Return the page after a cursor, the first one for None.

        Args:
            cursor: as the page before gave it.
            modern: whether the client speaks 2026-07-28.

        Raises:
            MCPError: the cursor is not one of ours.
        """
        names = list(self.tools)
        start = 0 if cursor is None else self._position(names, *_parse_cursor(cursor))
        shown = names[start : start + PAGE_SIZE]
        more = start + PAGE_SIZE < len(names)
        return types.ListToolsResult(
            tools=[for_era(self.tools[name], modern=modern) for name in shown],
            next_cursor=_cursor(self._group(shown[-1]), shown[-1]) if more else None,
        )

    def fingerprint(self) -> str:
        """`sha256:…` over everything a client sees of skills and upstream tools."""
        named = (*self.skills, *self.upstream)
        return digest([self.tools[name].model_dump(mode="json", by_alias=True) for name in named])

    def _group(self, name: str) -> int:
        return 0 if name in BUILTIN_TOOLS else 1 if name in self.skills else 2

    def _position(self, names: list[str], group: int, after: str) -> int:
        # The tool behind the cursor may be gone by now; each group comes in order of name, so its place
        # is known.
        if after in self.tools:
            return names.index(after) + 1
        return sum(
            1
            for name in names
            if (self._group(name), name) <= (group, after)
            or (name not in self.skills and name not in self.upstream)
        )


class ListingSource:
    """Builds the listing, anew only when the bank has changed."""

    def __init__(self, bank: BankPort, options: SurfaceOptions | None = None) -> None:
        self._bank = bank
        self._options = options or SurfaceOptions()
        self._fixed = {**BUILTIN_TOOLS, **(ADMIN_TOOLS if self._options.admin else {})}
        self._revision: int | None = None
        self._tools: tuple[Tool, ...] = ()
        self._listing = Listing(self._fixed, {})

    @property
    def latest(self) -> Listing:
        """The listing as last built: enough for the tools that are always there."""
        return self._listing

    def current(self) -> Listing:
        """Return the listing of the bank as it is now."""
        revision = self._bank.revision()
        tools = tuple(self._bank.upstream_tools()) if self._options.publish_tools is not None else ()
        if revision != self._revision or not _are_the_same(tools, self._tools):
            self._listing = _listing(self._bank, tools, self._options, self._fixed)
            self._revision, self._tools = revision, tools
        return self._listing


def _are_the_same(tools: tuple[Tool, ...], before: tuple[Tool, ...]) -> bool:
    return len(tools) == len(before) and all(map(is_, tools, before))


def _listing(
    bank: BankPort, upstream: tuple[Tool, ...], options: SurfaceOptions, fixed: Mapping[str, types.Tool]
) -> Listing:
    published = {entry.tool_name: entry.skill for entry in bank.published()}
    listed = listed_names(published)
    skills = {listed[name]: skill for name, skill in published.items()}
    ordered = {name: skills[name] for name in sorted(skills)}
    tools = {name: skill_tool(name, skill) for name, skill in ordered.items()}
    definitions = {tool.id: tool for tool in upstream}
    named = listed_tool_names(definitions, ordered, options.bare)
    behind = {name: tool for tool, name in sorted(named.items(), key=lambda item: item[1])}
    schemas = options.publish_tools or "portable"
    relayed = {name: upstream_tool(name, definitions[tool], schemas) for name, tool in behind.items()}
    return Listing({**fixed, **tools, **relayed}, ordered, behind)


def _cursor(group: int, name: str) -> str:
    return base64.urlsafe_b64encode(f"{group}{name}".encode()).decode()


def _parse_cursor(cursor: str) -> tuple[int, str]:
    try:
        text = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
        return int(text[:1]), text[1:]
    except (binascii.Error, ValueError) as error:
        raise MCPError(types.INVALID_PARAMS, "Invalid cursor: list from the start again") from error

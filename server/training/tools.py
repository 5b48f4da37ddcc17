"""Tool definitions as chat templates read them, and the names under which a model calls tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.names import portable_name
from catalog.tools import Snapshot, ToolId

__all__ = ["Toolbox", "function_of", "toolbox"]

_MOST_OTHERS = 16
"""Tools that were not called and are shown beside, so that choosing is learned too."""


@dataclass(frozen=True)
class Toolbox:
    """The tools of one group of runs."""

    names: Mapping[ToolId, str]
    schemas: tuple[dict[str, JsonValue], ...]

    @property
    def servers(self) -> tuple[str, ...]:
        """Names of the servers they are of."""
        return tuple(sorted({tool.server for tool in self.names}))


def toolbox(called: Iterable[ToolId], snapshot: Snapshot) -> Toolbox:
    """Return the called tools and others of the same servers, ordered by name.

    A tool that the snapshot no longer has is told with a schema that takes anything.
    """
    wanted = set(called)
    others = [tool.id for name in sorted({one.server for one in wanted}) for tool in snapshot.of_server(name)]
    beside = [tool for tool in others if tool not in wanted][:_MOST_OTHERS]
    names: dict[ToolId, str] = {}
    taken: dict[str, tuple[str, str]] = {}
    for tool in sorted(wanted | set(beside)):
        name = portable_name(tool.server, tool.tool, taken)
        taken[name] = (tool.server, tool.tool)
        names[tool] = name
    return Toolbox(names, tuple(_schema(tool, name, snapshot) for tool, name in names.items()))


def function_of(name: str, description: str, parameters: JsonValue) -> dict[str, JsonValue]:
    """Return a tool definition as chat templates read it."""
    function: JsonValue = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def _schema(tool: ToolId, name: str, snapshot: Snapshot) -> dict[str, JsonValue]:
    known = snapshot.get(tool)
    parameters: JsonValue = known.input_schema if known is not None else {"type": "object"}
    description = known.description if known is not None else ""
    return function_of(name, description, parameters)

"""An upstream's tool list, read tolerantly: repaired or quarantined tool by tool, never as a whole.

`repair_page` works on the wire, before the client library validates (and would reject the page,
and every later call of its tools); `list_tools` pages through a connected client. A tool whose
schema is hostile or impossible is left out with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

import mcp_types as types
from mcp import Client

from catalog.canonical import JsonValue
from catalog.errors import SchemaRejected
from catalog.plain_text import plain_text
from catalog.schema import check_schema
from catalog.tools import Annotations, JsonSchema, Tool, ToolId

__all__ = ["MAX_PAGES", "MAX_TOOLS", "Listing", "list_tools", "repair_page"]

MAX_PAGES: Final = 200
MAX_TOOLS: Final = 20_000
_MAX_NAME: Final = 256


@dataclass(frozen=True, slots=True)
class Listing:
    """The usable tools of one upstream in the order it lists them, and what was wrong with others."""

    tools: tuple[Tool, ...]
    problems: tuple[str, ...]
    quarantined: Mapping[str, str]
    """Tools that are listed but must not be called, with the reason."""


def repair_page(page: dict[str, JsonValue], *, legacy: bool) -> tuple[dict[str, JsonValue], list[str]]:
    """Return one `tools/list` result that the protocol's types accept, and what had to be changed.

    Args:
        page: the result as received.
        legacy: whether the handshake era is spoken, in which outputs are objects.
    """
    problems: list[str] = []
    listed = page.get("tools")
    if not isinstance(listed, list):
        problems.append("the tool list is no list")
        listed = []
    repaired = [tool for raw in listed if (tool := _repair_tool(raw, problems, legacy)) is not None]
    changed: dict[str, JsonValue] = {**page, "tools": cast("JsonValue", repaired)}
    if not isinstance(changed.get("nextCursor"), str):
        changed.pop("nextCursor", None)
    return changed, problems


def _repair_tool(raw: JsonValue, problems: list[str], legacy: bool) -> dict[str, JsonValue] | None:
    if not isinstance(raw, dict) or not isinstance(name := raw.get("name"), str) or not name:
        problems.append("a tool without a name was left out")
        return None
    if len(name) > _MAX_NAME:
        problems.append(f"tool {name[:40]!r}… was left out: its name has {len(name)} characters")
        return None
    if (schema := _repair_input(name, raw.get("inputSchema"), problems)) is None:
        return None
    tool: dict[str, JsonValue] = {"name": name, "inputSchema": schema}
    if (output := raw.get("outputSchema")) is not None:
        if isinstance(output, dict) and (not legacy or output.get("type") == "object"):
            tool["outputSchema"] = output
        else:
            problems.append(f"tool {name!r}: its output schema describes no object and was dropped")
    for key in ("title", "description"):
        if isinstance(text := raw.get(key), str):
            tool[key] = text
    if isinstance(annotations := raw.get("annotations"), dict):
        tool["annotations"] = {
            key: value
            for key, value in annotations.items()
            if isinstance(value, str if key == "title" else bool)
        }
    if isinstance(meta := raw.get("_meta"), dict):
        tool["_meta"] = meta
    return tool


def _repair_input(name: str, schema: JsonValue, problems: list[str]) -> JsonSchema | None:
    if not isinstance(schema, dict):
        problems.append(f"tool {name!r}: its input schema is missing or no object; any object is accepted")
        return {"type": "object"}
    kind = schema.get("type", "")
    if kind == "object":
        return schema
    if kind == "" or (isinstance(kind, list) and "object" in kind):
        problems.append(f"tool {name!r}: its input schema names no type; `object` was assumed")
        return {**schema, "type": "object"}
    problems.append(f"tool {name!r} was left out: its input schema describes no object")
    return None


async def list_tools(client: Client, server: str, wire_problems: list[str]) -> Listing:
    """Return every tool of a connected upstream, page by page and within bounds.

    Args:
        client: a connected client whose transport repairs pages.
        server: configured name of the upstream.
        wire_problems: what the transport had to repair; taken up into the listing's problems.

    Raises:
        MCPError: the upstream refuses to list its tools.
    """
    collected = _Collected(server)
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        for tool in page.tools:
            collected.add(tool)
        cursor = page.next_cursor
        if cursor is None or cursor in seen or collected.full:
            break
        seen.add(cursor)
    if cursor is not None:
        collected.problems.append(f"its tool list does not end: cut after {len(collected.tools)} tools")
    return collected.listing(wire_problems)


class _Collected:
    """Tools so far, the first of two with one name winning."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.tools: dict[str, Tool] = {}
        self.quarantined: dict[str, str] = {}
        self.problems: list[str] = []

    @property
    def full(self) -> bool:
        return len(self.tools) >= MAX_TOOLS

    def add(self, listed: types.Tool) -> None:
        name = listed.name
        if name in self.tools or name in self.quarantined:
            self.problems.append(f"tool {name!r} is listed twice; the first definition counts")
            return
        if self.full:
            return
        tool = _to_tool(self.server, listed)
        if (reason := _objection(tool)) is None:
            self.tools[name] = tool
        else:
            self.quarantined[name] = reason
            self.problems.append(f"tool {name!r} is quarantined: {reason}")

    def listing(self, wire_problems: list[str]) -> Listing:
        return Listing(tuple(self.tools.values()), (*wire_problems, *self.problems), dict(self.quarantined))


def _objection(tool: Tool) -> str | None:
    """Return why a tool must not be used, or None."""
    for what, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        try:
            check_schema(schema or {})
        except SchemaRejected as rejected:
            return f"{what} schema: {rejected}"
    return None


def _to_tool(server: str, listed: types.Tool) -> Tool:
    hints = listed.annotations
    return Tool(
        id=ToolId(server, listed.name),
        input_schema=_without_infinities(cast("JsonSchema", listed.input_schema)),
        output_schema=None
        if listed.output_schema is None
        else _without_infinities(cast("JsonSchema", listed.output_schema)),
        title=plain_text(title) if (title := listed.title or (hints.title if hints else None)) else None,
        description=plain_text(listed.description or ""),
        annotations=Annotations()
        if hints is None
        else Annotations(
            read_only=hints.read_only_hint,
            destructive=hints.destructive_hint,
            idempotent=hints.idempotent_hint,
            open_world=hints.open_world_hint,
        ),
    )


def _without_infinities(schema: JsonSchema) -> JsonSchema:
    """Return the schema without bounds that JSON cannot hold: `"maximum": Infinity` says nothing."""
    return {
        key: _without_infinities(value) if isinstance(value, dict) else value
        for key, value in schema.items()
        if not (isinstance(value, float) and not math.isfinite(value))
    }

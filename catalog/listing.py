"""An upstream's tool list, read tolerantly: repaired or quarantined tool by tool, never as a whole.

`repair_page` works on the wire, before the client library validates (and would reject the page,
and every later call of its tools); `list_tools` pages through a connected client. A tool whose
schema is hostile or impossible is left out with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

import anyio.lowlevel
import mcp_types as types
from mcp import Client

from catalog.canonical import JsonValue
from catalog.errors import SchemaRejected
from catalog.messages import MENDED_KEY
from catalog.plain_text import plain_text
from catalog.schema import check_schema, without_unusable_patterns
from catalog.tools import Annotations, JsonSchema, Tool, ToolId

__all__ = ["MAX_DESCRIPTION", "MAX_PAGES", "MAX_TOOLS", "Listing", "Repairs", "list_tools", "repair_page"]

MAX_PAGES: Final = 200
MAX_TOOLS: Final = 20_000
_MAX_BYTES: Final = 64 * 1024 * 1024
"""Size of all definitions of one upstream."""
_MAX_NAME: Final = 256
MAX_DESCRIPTION: Final = 20_000
_CHECKED_AT_ONCE: Final = 20
"""Schemas that are checked before others get their turn."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The usable tools of one upstream in the order it lists them, and what was wrong with others."""

    tools: tuple[Tool, ...]
    problems: tuple[str, ...]
    quarantined: Mapping[str, str]
    """Tools that are listed but must not be called, with the reason."""
    lasts_seconds: float | None = None
    """How long the upstream says that its list holds; None: it does not say."""


@dataclass
class Repairs:
    """What had to be done to one tool list on its way, each thing once."""

    problems: list[str] = field(default_factory=list[str])
    quarantined: dict[str, str] = field(default_factory=dict[str, str])
    """Tools that could not be repaired, by name, with the reason."""

    def note(self, problem: str) -> None:
        """Record a problem unless it is known."""
        if problem not in self.problems:
            self.problems.append(problem)

    def of_tool(self, name: str, problem: str) -> None:
        """Record what had to be changed about one tool."""
        self.note(f"tool {name!r}: {problem}")

    def clear(self) -> None:
        """Forget everything: another list begins."""
        self.problems.clear()
        self.quarantined.clear()


def repair_page(page: dict[str, JsonValue], repairs: Repairs, *, legacy: bool) -> dict[str, JsonValue]:
    """Return one `tools/list` result that the protocol's types accept.

    Args:
        page: the result as received.
        repairs: takes up what had to be changed.
        legacy: whether the handshake era is spoken, in which outputs are objects.
    """
    listed = page.get("tools")
    if not isinstance(listed, list):
        repairs.note("the tool list is no list")
        listed = []
    repaired = [tool for raw in listed if (tool := _repair_tool(raw, repairs, legacy)) is not None]
    changed: dict[str, JsonValue] = {**page, "tools": cast("JsonValue", repaired)}
    if not isinstance(changed.get("nextCursor"), str):
        changed.pop("nextCursor", None)
    _repair_frame(changed, legacy=legacy)
    meta = changed.get("_meta")
    if isinstance(meta, dict) and isinstance(mended := meta.get(MENDED_KEY), list):
        for reason in mended:
            repairs.note(f"the text of its tool list was mended: {reason}")
    return changed


def _repair_frame(page: dict[str, JsonValue], *, legacy: bool) -> None:
    """Give a page of the newer era what its results must carry; without it the page would be refused."""
    if not _is_count(page.get("ttlMs")):
        page.pop("ttlMs", None)
    if not legacy:
        page.setdefault("ttlMs", 0)
        page.setdefault("resultType", "complete")
        if page.get("cacheScope") not in ("private", "public"):
            page["cacheScope"] = "private"


def _is_count(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _repair_tool(raw: JsonValue, repairs: Repairs, legacy: bool) -> dict[str, JsonValue] | None:
    if not isinstance(raw, dict) or not isinstance(name := raw.get("name"), str) or not name:
        repairs.note("a tool without a name was left out")
        return None
    if len(name) > _MAX_NAME:
        repairs.quarantined.setdefault(f"{name[:40]}…", f"its name has {len(name)} characters")
        return None
    if (schema := _repair_input(name, raw.get("inputSchema"), repairs)) is None:
        return None
    tool: dict[str, JsonValue] = {"name": name, "inputSchema": schema}
    if (output := raw.get("outputSchema")) is not None:
        if isinstance(output, dict) and (not legacy or output.get("type") == "object"):
            tool["outputSchema"] = output
        else:
            repairs.of_tool(name, "its output schema describes no object and was dropped")
    for key in ("title", "description"):
        if isinstance(text := raw.get(key), str):
            tool[key] = text
        elif text is not None:
            repairs.of_tool(name, f"its {key} is no text and was dropped")
    if (annotations := raw.get("annotations")) is not None:
        tool["annotations"] = _repair_annotations(name, annotations, repairs)
    if isinstance(meta := raw.get("_meta"), dict):
        tool["_meta"] = meta
    return tool


def _repair_annotations(name: str, annotations: JsonValue, repairs: Repairs) -> dict[str, JsonValue]:
    if not isinstance(annotations, dict):
        repairs.of_tool(name, "its annotations are no object and were dropped")
        return {}
    kept: dict[str, JsonValue] = {
        k: v for k, v in annotations.items() if isinstance(v, str if k == "title" else bool)
    }
    if dropped := [k for k, v in annotations.items() if k not in kept and v is not None]:
        repairs.of_tool(name, f"annotations of the wrong type were dropped: {', '.join(dropped)}")
    return kept


def _repair_input(name: str, schema: JsonValue, repairs: Repairs) -> JsonSchema | None:
    if not isinstance(schema, dict):
        repairs.of_tool(name, "its input schema is missing or no object; any object is accepted")
        return {"type": "object"}
    kind = schema.get("type", "")
    if kind == "object":
        return schema
    if kind == "" or (isinstance(kind, list) and "object" in kind):
        repairs.of_tool(name, "its input schema names no type; `object` was assumed")
        return {**schema, "type": "object"}
    repairs.quarantined.setdefault(name, "its input schema describes no object")
    return None


async def list_tools(client: Client, server: str, repairs: Repairs) -> Listing:
    """Return every tool of a connected upstream, page by page and within bounds.

    Args:
        client: a connected client whose transport repairs pages.
        server: configured name of the upstream.
        repairs: where the transport notes what it repairs; begun anew.

    Raises:
        MCPError: the upstream refuses to list its tools.
    """
    repairs.clear()
    collected = _Collected(server)
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        await collected.add_page(page)
        cursor = page.next_cursor
        if cursor is None or cursor in seen or collected.full:
            break
        seen.add(cursor)
    if cursor is not None:
        collected.problems.append(f"its tool list does not end: cut after {len(collected.tools)} tools")
    return collected.listing(repairs)


class _Collected:
    """Tools so far, the first of two with one name winning."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.tools: dict[str, Tool] = {}
        self.quarantined: dict[str, str] = {}
        self.problems: list[str] = []
        self.bytes = 0
        self.lasts_seconds: float | None = None

    @property
    def full(self) -> bool:
        return len(self.tools) >= MAX_TOOLS or self.bytes >= _MAX_BYTES

    async def add_page(self, page: types.ListToolsResult) -> None:
        """Take up one page, giving others a turn between its tools."""
        self.bytes += len(page.model_dump_json())
        if page.ttl_ms > 0:
            said = page.ttl_ms / 1_000
            self.lasts_seconds = said if self.lasts_seconds is None else min(said, self.lasts_seconds)
        for index, tool in enumerate(page.tools):
            if index % _CHECKED_AT_ONCE == _CHECKED_AT_ONCE - 1:
                await anyio.lowlevel.checkpoint()
            self.add(tool)

    def add(self, listed: types.Tool) -> None:
        name = listed.name
        if name in self.tools or name in self.quarantined:
            self.problems.append(f"tool {name!r} is listed twice; the first definition counts")
            return
        if self.full:
            return
        tool = _to_tool(self.server, listed)
        reason = _objection(tool)
        if reason is not None:
            tool, dropped = _with_usable_patterns(tool)
            reason = _objection(tool) if dropped else reason
            if reason is None:
                said = ", ".join(repr(pattern[:60]) for pattern in dropped[:3])
                self.problems.append(f"tool {name!r}: not checked, for no engine bounds its cost: {said}")
        if reason is None:
            self.tools[name] = tool
        else:
            self.quarantined[name] = reason

    def listing(self, repairs: Repairs) -> Listing:
        out = {**repairs.quarantined, **self.quarantined}
        return Listing(
            tools=tuple(self.tools.values()),
            problems=(*repairs.problems, *self.problems),
            quarantined={name: reason for name, reason in out.items() if name not in self.tools},
            lasts_seconds=self.lasts_seconds,
        )


def _objection(tool: Tool) -> str | None:
    """Return why a tool must not be used, or None."""
    for what, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        try:
            check_schema(schema or {})
        except SchemaRejected as rejected:
            return plain_text(f"{what} schema: {rejected}", 300)
    return None


def _with_usable_patterns(tool: Tool) -> tuple[Tool, list[str]]:
    given, dropped = without_unusable_patterns(tool.input_schema)
    if tool.output_schema is None:
        return replace(tool, input_schema=given), dropped
    answered, more = without_unusable_patterns(tool.output_schema)
    return replace(tool, input_schema=given, output_schema=answered), dropped + more


def _to_tool(server: str, listed: types.Tool) -> Tool:
    hints = listed.annotations
    return Tool(
        id=ToolId(server, listed.name),
        input_schema=_without_infinities(cast("JsonSchema", listed.input_schema)),
        output_schema=None
        if listed.output_schema is None
        else _without_infinities(cast("JsonSchema", listed.output_schema)),
        title=plain_text(title) if (title := listed.title or (hints.title if hints else None)) else None,
        description=plain_text(listed.description or "", MAX_DESCRIPTION),
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

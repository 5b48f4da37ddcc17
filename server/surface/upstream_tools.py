"""An upstream tool as this server lists it, where it stands in for a gateway."""

from __future__ import annotations

import mcp.types as types

from catalog.errors import SchemaRejected
from catalog.schema import portable_schema
from catalog.tools import JsonSchema, Tool
from server.surface_options import ToolSchemas

__all__ = ["for_era", "upstream_tool"]

_ORIGIN_META_KEY = "io.skillbank/origin"
"""Key in the `_meta` of a listed upstream tool: the server and the name that it has there."""


def upstream_tool(name: str, tool: Tool, schemas: ToolSchemas) -> types.Tool:
    """Return an upstream tool as it is listed under a name.

    Args:
        name: portable, and unique in the listing.
        tool: as its server lists it.
        schemas: whether its input schema is turned into what every host takes.
    """
    hints = tool.annotations.to_json()
    return types.Tool(
        name=name,
        title=tool.title,
        description=tool.description,
        input_schema=_portable(tool.input_schema) if schemas == "portable" else tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations.model_validate(hints) if hints else None,
        _meta={_ORIGIN_META_KEY: {"server": tool.id.server, "tool": tool.id.tool}},
    )


def for_era(tool: types.Tool, *, modern: bool) -> types.Tool:
    """Return a tool as a protocol era can carry it: before 2026-07-28 outputs were objects."""
    output = tool.output_schema
    if modern or output is None or output.get("type") == "object":
        return tool
    return tool.model_copy(update={"output_schema": None})


def _portable(schema: JsonSchema) -> JsonSchema:
    try:
        return portable_schema(schema)
    except SchemaRejected:  # its own server still checks what it is given
        return {"type": "object"}

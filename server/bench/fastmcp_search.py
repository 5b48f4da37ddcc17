"""FastMCP's BM25 tool search over the same tools, asked as its clients ask it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib import metadata
from typing import Any

from catalog.tools import Tool, ToolId
from server.bench.recall import Search

__all__ = ["fastmcp_search"]

_Offered = tuple[Search | None, str | None]


@asynccontextmanager
async def fastmcp_search(tools: Sequence[Tool], most: int) -> AsyncGenerator[_Offered]:
    """Yield a search through FastMCP's `search_tools` and its version; None where it is not installed.

    Tools are named `server_tool`, as FastMCP names those of mounted servers.

    Args:
        tools: what is searched.
        most: hits it may return.
    """
    try:
        version = metadata.version("fastmcp")
    except metadata.PackageNotFoundError:
        yield None, None
        return
    names = {f"{tool.id.server}_{tool.id.tool}": tool.id for tool in tools}
    async with _client(tools, most) as client:

        async def search(text: str, limit: int) -> list[ToolId]:
            answer = await client.call_tool("search_tools", {"query": text})
            found: list[dict[str, Any]] = json.loads(answer.content[0].text) if answer.content else []
            return [names[told["name"]] for told in found][:limit]

        yield search, version


def _client(tools: Sequence[Tool], most: int) -> Any:  # noqa: ANN401  (an optional library)
    from fastmcp import Client, FastMCP
    from fastmcp.server.transforms.search.bm25 import BM25SearchTransform
    from fastmcp.tools import FunctionTool

    server: Any = FastMCP("search")
    for tool in tools:
        name = f"{tool.id.server}_{tool.id.tool}"
        described = tool.description
        server.add_tool(
            FunctionTool(name=name, description=described, parameters=tool.input_schema, fn=lambda: None)
        )
    server.add_transform(BM25SearchTransform(max_results=most))
    return Client(server)

"""A tool server after an update: everything of the server behind it, one argument of one tool renamed.

`python -m server.bench.renamed_relay TOOL OLD NEW COMMAND [ARGUMENT …]` relays to the server that the
command starts.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, Tool

__all__ = ["renamed_command"]


def renamed_command(tool: str, old: str, new: str, command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command of a server in which one argument has another name."""
    return (sys.executable, "-m", "server.bench.renamed_relay", tool, old, new, *command)


def _renamed(schema: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    properties = {(new if name == old else name): part for name, part in schema["properties"].items()}
    required = [new if name == old else name for name in schema.get("required", [])]
    return {**schema, "properties": properties, "required": required}


async def _serve(arguments: tuple[str, ...]) -> None:
    tool, old, new, *command = arguments

    @asynccontextmanager
    async def upstream(server: Server[Client]) -> AsyncGenerator[Client]:
        del server
        program, *rest = command
        async with Client(StdioServerParameters(command=program, args=rest), mode="auto") as client:
            yield client

    async def list_tools(
        ctx: ServerRequestContext[Client], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        found = await ctx.lifespan_context.session.list_tools(params=params)
        return found.model_copy(update={"tools": [changed(one) for one in found.tools]})

    def changed(one: Tool) -> Tool:
        if one.name != tool:
            return one
        return one.model_copy(update={"input_schema": _renamed(one.input_schema, old, new)})

    async def call(ctx: ServerRequestContext[Client], params: CallToolRequestParams) -> CallToolResult:
        given = dict(params.arguments or {})
        if params.name == tool and new in given:
            given[old] = given.pop(new)
        return await ctx.lifespan_context.session.call_tool(params.name, given)

    server = Server("renamed", version="2", lifespan=upstream, on_list_tools=list_tools, on_call_tool=call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_serve, tuple(sys.argv[1:]))

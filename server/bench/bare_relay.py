"""The least that a relay can be: the SDK's low-level server in front, its client behind.

`python -m server.bench.bare_relay relay` is what `server.bench.relay_bench` compares skillbank
with; `… echo` is the upstream that both relay to.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from mcp import Client, StdioServerParameters
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

__all__ = ["ECHO_COMMAND", "RELAY_COMMAND"]

ECHO_COMMAND: tuple[str, ...] = (sys.executable, "-m", "server.bench.bare_relay", "echo")
RELAY_COMMAND: tuple[str, ...] = (sys.executable, "-m", "server.bench.bare_relay", "relay")

_ECHO = Tool(
    name="echo",
    description="Returns the text it is given.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


async def _list_own(ctx: ServerRequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
    del ctx, params
    return ListToolsResult(tools=[_ECHO])


async def _echo(ctx: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
    del ctx
    text = str((params.arguments or {})["text"])
    return CallToolResult(content=[TextContent(type="text", text=text)])


@asynccontextmanager
async def _upstream(server: Server[Client]) -> AsyncGenerator[Client]:
    del server
    command, *arguments = ECHO_COMMAND
    async with Client(StdioServerParameters(command=command, args=arguments), mode="auto") as client:
        yield client


async def _list_upstream(
    ctx: ServerRequestContext[Client], params: PaginatedRequestParams | None
) -> ListToolsResult:
    return await ctx.lifespan_context.session.list_tools(params=params)


async def _relay(ctx: ServerRequestContext[Client], params: CallToolRequestParams) -> CallToolResult:
    return await ctx.lifespan_context.session.call_tool(params.name, params.arguments)


async def _serve(role: str) -> None:
    echo = Server("echo", version="1", on_list_tools=_list_own, on_call_tool=_echo)
    relay = Server(
        "relay", version="1", lifespan=_upstream, on_list_tools=_list_upstream, on_call_tool=_relay
    )
    server = relay if role == "relay" else echo
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_serve, sys.argv[1])

"""What skillbank's relay is compared with, and the upstreams behind all of them.

`python -m server.bench.bare_relay relay` is the least that a relay can be: the SDK's low-level
server in front, its client behind. `… echo` is the upstream that every relay leads to; `… stuck`
never answers a call. FastMCP is no dependency, so its proxy is a program in text.
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

__all__ = ["ECHO_COMMAND", "FASTMCP_COMMAND", "RELAY_COMMAND", "STUCK_COMMAND"]

Command = tuple[str, ...]

ECHO_COMMAND: Command = (sys.executable, "-m", "server.bench.bare_relay", "echo")
STUCK_COMMAND: Command = (sys.executable, "-m", "server.bench.bare_relay", "stuck")
RELAY_COMMAND: Command = (sys.executable, "-m", "server.bench.bare_relay", "relay")

_FASTMCP_PROGRAM = """\
import sys
from fastmcp.server import create_proxy
command, *arguments = sys.argv[1:]
upstream = {"mcpServers": {"echo": {"command": command, "args": arguments}}}
create_proxy(upstream, name="proxy").run(show_banner=False, log_level="ERROR")
"""
FASTMCP_COMMAND: Command = (sys.executable, "-c", _FASTMCP_PROGRAM, *ECHO_COMMAND)

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


async def _never(ctx: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
    del ctx, params
    await anyio.sleep_forever()
    raise AssertionError("it slept for ever")


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
    servers = {
        "echo": Server("echo", version="1", on_list_tools=_list_own, on_call_tool=_echo),
        "stuck": Server("stuck", version="1", on_list_tools=_list_own, on_call_tool=_never),
        "relay": Server(
            "relay", version="1", lifespan=_upstream, on_list_tools=_list_upstream, on_call_tool=_relay
        ),
    }
    server = servers[role]
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_serve, sys.argv[1])

"""A client of the SDK's first generation: `python old_client.py stdio|http|sse TARGET…`."""

# Callbacks have the shapes that the SDK calls.
# ruff: noqa: ARG001

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack

import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError


def opened(way: str, target: list[str]):
    match way:
        case "stdio":
            return stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
        case "http":
            return streamablehttp_client(target[0])
        case _:
            return sse_client(target[0])


async def main(way: str, target: list[str]) -> dict:
    asked: list[str] = []
    progress: list[list[float | None]] = []
    changed = asyncio.Event()

    async def person(context, params) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Oslo"})

    async def noted(done: float, total: float | None, message: str | None) -> None:
        progress.append([done, total])

    async def heard(message) -> None:
        if isinstance(message, types.ServerNotification) and isinstance(
            message.root, types.ToolListChangedNotification
        ):
            changed.set()

    async with AsyncExitStack() as stack:
        streams = await stack.enter_async_context(opened(way, target))
        session = await stack.enter_async_context(
            ClientSession(streams[0], streams[1], elicitation_callback=person, message_handler=heard)
        )
        await session.initialize()
        tools = await session.list_tools()
        assert "double" in [tool.name for tool in tools.tools]
        double = await session.call_tool("double", {"value": 21}, progress_callback=noted)
        await session.call_tool("call_tool", {"server": "weather", "tool": "ask"})
        try:
            unknown = (await session.call_tool("nothing", {})).content[0].text
        except McpError as error:
            unknown = error.error.message
        prompts = [prompt.name for prompt in (await session.list_prompts()).prompts]
        reference = types.PromptReference(type="ref/prompt", name="plan_with_skill")
        completed = await session.complete(reference, {"name": "skill", "value": "dou"})
        skill = await session.read_resource("skill://double/SKILL.md")
        await session.call_tool("solve", {"task": "x", "save_as": "appeared"})
        await asyncio.wait_for(changed.wait(), 30)
        return {
            "version": "1",
            "double": double.structuredContent,
            "asked": asked,
            "progress": progress,
            "unknown": unknown[: len("Unknown tool")],
            "prompts": prompts,
            "completed": completed.completion.values,
            "skill": skill.contents[0].mimeType,
            "changed": changed.is_set(),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2:]))))

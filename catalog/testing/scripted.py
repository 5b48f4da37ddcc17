"""A tool server whose tools answer as scripted, on the SDK's low-level server.

Each connection gets a low-level server of its own (`ScriptedServer.open`), and each fresh process
a set of tools of its own where they are given as a factory; the call log is one for all.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, cast

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue, TypeAdapter

from catalog.schema import problems
from catalog.testing.script import Answer, CallLog, Refuse, Reply, ScriptedTool, Vanish

__all__ = ["OpenServer", "ScriptedServer"]

_Context = ServerRequestContext[Any, Any]
_BLOCKS: TypeAdapter[list[types.ContentBlock]] = TypeAdapter(list[types.ContentBlock])


Tools = Sequence[ScriptedTool]


@dataclass(eq=False)
class ScriptedServer:
    """A tool server.

    Attributes:
        tools: the tools, or a factory that gives each fresh process its own.
        log: what ran.
        starts: how many processes or connections were opened.
    """

    tools: Tools | Callable[[], Tools]
    page_size: int | None = None
    """Tools per page of the list; None for one page."""
    ttl_ms: int = 0
    """How long its list is said to last, in the newer era; 0: it says nothing."""
    announces: bool = True
    """Whether clients are told of changed tools."""
    log: CallLog = field(default_factory=CallLog)
    starts: int = 0
    _open: list[OpenServer] = field(default_factory=list["OpenServer"])
    _turns: Counter[str] = field(default_factory=Counter[str])

    def open(self) -> OpenServer:
        """Return a fresh running instance, to be served on one connection or process."""
        self.starts += 1
        tools = self.tools() if callable(self.tools) else self.tools
        instance = OpenServer(tools, self)
        self._open.append(instance)
        return instance

    def turn(self, tool: str) -> int:
        """Return how many scripted answers of a tool were given before this one."""
        self._turns[tool] += 1
        return self._turns[tool] - 1

    async def listened(self) -> None:
        """Wait until a client of every open connection would hear of changed tools."""
        for instance in self._open:
            await instance.listened.wait()

    async def change_tools(self, tools: Tools) -> None:
        """Replace the tools of this server and tell every connection."""
        self.tools = tools
        for instance in self._open:
            await instance.change_tools(tools)


class OpenServer:
    """One running instance of a scripted server.

    Attributes:
        server: the SDK's server, for any transport.
        vanished: set when a tool's script says that the server ends.
        listened: set once the client hears of changed tools.
    """

    def __init__(self, tools: Tools, script: ScriptedServer) -> None:
        self.vanished = anyio.Event()
        self.listened = anyio.Event()
        self._tools = {tool.name: tool for tool in tools}
        self._script = script
        self._bus = InMemorySubscriptionBus()
        self._subscriptions = ListenHandler(self._bus)
        self._legacy_session: Any = None
        self.server: Server[Any] = _AnnouncingServer(
            "scripted",
            version="1",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=self._listen,
        )

    async def change_tools(self, tools: Tools) -> None:
        """Replace the tools and announce it in the era that is spoken."""
        self._tools = {tool.name: tool for tool in tools}
        if not self._script.announces:
            return
        await self._bus.publish(ToolsListChanged())
        if self._legacy_session is not None:
            await self._legacy_session.send_tool_list_changed()

    async def _list(
        self, ctx: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._legacy_session = ctx.session
            self.listened.set()
        listed = [_listed(tool) for tool in self._tools.values()]
        size = self._script.page_size
        if size is None:
            return types.ListToolsResult(tools=listed, ttl_ms=self._script.ttl_ms)
        first = int(params.cursor) if params is not None and params.cursor else 0
        following = str(first + size) if first + size < len(listed) else None
        page = listed[first : first + size]
        return types.ListToolsResult(tools=page, next_cursor=following, ttl_ms=self._script.ttl_ms)

    async def _listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        self.listened.set()  # the subscription is in place before the handler first yields
        return await self._subscriptions(ctx, params)

    async def _call(self, ctx: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = cast("dict[str, JsonValue]", params.arguments or {})
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        if tool.validates and (wrong := problems(tool.input_schema, arguments)):
            return _result(Reply.text(f"Input validation error: {wrong[0].message}", is_error=True))
        call = self._script.log.arrive(params.name, arguments)
        try:
            for report in tool.progress:
                await ctx.session.report_progress(*report)
            await anyio.sleep(tool.latency_seconds)
            answer = self._answer(tool, arguments)
            if isawaitable(answer):
                answer = await answer
        except anyio.get_cancelled_exc_class():
            self._script.log.cancel(call)
            raise
        return await self._deliver(answer)

    def _answer(self, tool: ScriptedTool, arguments: dict[str, JsonValue]) -> Answer | Awaitable[Answer]:
        if callable(tool.respond):
            return tool.respond(arguments)
        return tool.respond[min(self._script.turn(tool.name), len(tool.respond) - 1)]

    async def _deliver(self, answer: Answer) -> types.CallToolResult:
        match answer:
            case Vanish():
                self.vanished.set()
                await anyio.sleep_forever()
                raise AssertionError("a vanished server goes on")
            case Refuse(code=code, message=message):
                raise MCPError(code, message)
            case Reply():
                return _result(answer)
            case str():
                return _result(Reply.text(answer))
            case dict():
                return _result(Reply(answer))
            case _:
                return _result(Reply({"result": answer}))


class _AnnouncingServer(Server[Any]):
    """The SDK's server, which otherwise tells handshake-era clients that its list never changes."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions=extensions,
        )


def _listed(tool: ScriptedTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations.model_validate(dict(tool.annotations))
        if tool.annotations
        else None,
    )


def _result(reply: Reply) -> types.CallToolResult:
    content = reply.content
    if content is None:
        content = [{"type": "text", "text": json.dumps(reply.structured, ensure_ascii=False)}]
    result = types.CallToolResult(
        content=_BLOCKS.validate_python(content, by_alias=True, by_name=False),
        is_error=reply.is_error,
        _meta=dict(reply.meta) or None,
    )
    if reply.has_structured:
        result.structured_content = reply.structured
    return result

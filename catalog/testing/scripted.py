"""A tool server whose tools answer as scripted, on the SDK's low-level server.

Each connection gets a low-level server of its own (`ScriptedServer.open`), and each fresh process
a set of tools of its own where they are given as a factory; the call log is one for all.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from catalog.tools import JsonSchema

__all__ = [
    "CallLog",
    "LoggedCall",
    "OpenServer",
    "Refuse",
    "Reply",
    "ScriptedServer",
    "ScriptedTool",
    "Vanish",
]

_Context = ServerRequestContext[Any, Any]
_BLOCKS: TypeAdapter[list[types.ContentBlock]] = TypeAdapter(list[types.ContentBlock])


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole result, where a plain value does not say enough.

    `content` None mirrors the structured value as text; `has_structured` False leaves it out.
    """

    structured: JsonValue = None
    content: list[JsonValue] | None = None
    is_error: bool = False
    has_structured: bool = True
    meta: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    @classmethod
    def text(cls, text: str, *, is_error: bool = False) -> Reply:
        """Return a result of one text block and nothing structured."""
        return cls(content=[{"type": "text", "text": text}], is_error=is_error, has_structured=False)


@dataclass(frozen=True, slots=True)
class Refuse:
    """A JSON-RPC error in place of a result."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class Vanish:
    """No answer: the server ends during the call."""


Answer = JsonValue | Reply | Refuse | Vanish
Respond = Callable[[dict[str, JsonValue]], Answer | Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class ScriptedTool:
    """One tool.

    A dict is answered as structured content mirrored in text, a string as one text block, any
    other value as `{"result": value}`.
    """

    name: str
    respond: Respond | Sequence[Answer]
    """A function of the arguments, or answers in the order of calls to the script, the last one repeated."""
    input_schema: JsonSchema = field(default_factory=lambda: cast("JsonSchema", {"type": "object"}))
    output_schema: JsonSchema | None = None
    description: str = ""
    title: str | None = None
    annotations: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Hints by their protocol names, such as `readOnlyHint`."""
    latency_seconds: float = 0.0
    """How long an answer takes; cancellation cuts it short."""
    progress: Sequence[tuple[float, float | None, str | None]] = ()
    """Reports sent before the answer."""
    validates: bool = True
    """Whether arguments are checked against the input schema first."""


@dataclass(slots=True)
class LoggedCall:
    """One call that reached a tool."""

    tool: str
    arguments: dict[str, JsonValue]
    cancelled: bool = False
    """Whether the client gave it up before the answer."""


class CallLog:
    """What really ran, over all connections of one scripted server.

    Attributes:
        calls: in order of arrival; refused arguments and unknown tools do not arrive.
    """

    def __init__(self) -> None:
        self.calls: list[LoggedCall] = []
        self._changed = anyio.Event()

    def count(self, tool: str | None = None) -> int:
        """Return how many calls arrived, of one tool or of all."""
        return sum(tool is None or call.tool == tool for call in self.calls)

    def arrive(self, tool: str, arguments: dict[str, JsonValue]) -> LoggedCall:
        """Record a call."""
        call = LoggedCall(tool, arguments)
        self.calls.append(call)
        self._announce()
        return call

    def cancel(self, call: LoggedCall) -> None:
        """Record that a call was given up."""
        call.cancelled = True
        self._announce()

    async def wait_for(self, tool: str, count: int = 1) -> None:
        """Wait until so many calls of a tool have arrived."""
        while self.count(tool) < count:
            await self._changed.wait()

    async def wait_for_cancelled(self, tool: str, count: int = 1) -> None:
        """Wait until so many calls of a tool have been given up."""
        while sum(call.tool == tool and call.cancelled for call in self.calls) < count:
            await self._changed.wait()

    def _announce(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


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
    """

    def __init__(self, tools: Tools, script: ScriptedServer) -> None:
        self.vanished = anyio.Event()
        self._tools = {tool.name: tool for tool in tools}
        self._script = script
        self._bus = InMemorySubscriptionBus()
        self._legacy_session: Any = None
        self.server: Server[Any] = _AnnouncingServer(
            "scripted",
            version="1",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )

    async def change_tools(self, tools: Tools) -> None:
        """Replace the tools and announce it in the era that is spoken."""
        self._tools = {tool.name: tool for tool in tools}
        await self._bus.publish(ToolsListChanged())
        if self._legacy_session is not None:
            await self._legacy_session.send_tool_list_changed()

    async def _list(
        self, ctx: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._legacy_session = ctx.session
        listed = [_listed(tool) for tool in self._tools.values()]
        size = self._script.page_size
        if size is None:
            return types.ListToolsResult(tools=listed)
        first = int(params.cursor) if params is not None and params.cursor else 0
        following = str(first + size) if first + size < len(listed) else None
        return types.ListToolsResult(tools=listed[first : first + size], next_cursor=following)

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
        *,
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

"""The MCP server over a bank: one object that serves both protocol eras on every transport."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

import anyio
import mcp.types as types
from mcp import MCPError
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from server.surface.calls import Attendance, ToolCall, answer_call, foreseen_total
from server.surface.changes import ListChanges
from server.surface.consent import McpConsent, ask_nobody, asking, can_ask, elicit
from server.surface.failures import error_result, unknown_tool
from server.surface.lending import can_lend, lending, pushed
from server.surface.listing import ListingSource
from server.surface.port import BankPort
from server.surface.progress import ProgressFeed
from server.surface.resources import list_resources, list_templates, read_resource
from server.surface.results import for_era
from server.surface.suspension import WAIT_SECONDS, Ask, SuspendedCalls
from server.surface.validation import check_arguments, render_problems

__all__ = ["BankServer"]

_LOG = logging.getLogger(__name__)

_INSTRUCTIONS = """\
skillbank runs tools of other servers as tested skills. A listed skill that fits the task is the
surest way: call it. Else search with find_skills and use call_skill. Else give the task to solve,
with assertions that say what a right answer is. To work by hand: find_tools, then call_tool or
run_workflow; repair_workflow mends a workflow that fails.
"""

RECORDING_META_KEY = "io.skillbank/recording"
"""Key under which a request's `_meta` may name the conversation it belongs to."""
_LONGEST_NAME = 100

Context = ServerRequestContext[SuspendedCalls, Any]


class BankServer(Server[SuspendedCalls]):
    """Serves the skills and use cases of a bank; holds nothing that is worth keeping."""

    def __init__(self, bank: BankPort) -> None:
        self._bank = bank
        self._source = ListingSource(bank)
        bus = InMemorySubscriptionBus()
        self._changes = ListChanges(self._source, bus)
        self._own_conversation = secrets.token_hex(4)
        super().__init__(
            "skillbank",
            version=version("skillbank"),
            title="skillbank",
            instructions=_INSTRUCTIONS,
            lifespan=_lifespan,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=ListenHandler(bus),
            get_tool_input_schema=lambda name: self._source.current().input_schema(name),
        )
        self.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._changes.add_session
        )
        security = RequestStateSecurity.ephemeral(ttl=WAIT_SECONDS)
        self.middleware += [_sanitize, RequestStateBoundary(security, default_audience=self.name)]

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the handshake's answer; it promises list changes on HTTP too, which the library does not."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    @property
    def changes(self) -> ListChanges:
        """What announces changes of the tool list."""
        return self._changes

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del ctx
        return self._source.current().page(params.cursor if params is not None else None)

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        del ctx, params
        return list_resources(self._bank)

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        del ctx, params
        return list_templates()

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        del ctx
        return await read_resource(self._bank, params.uri)

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        listing = self._source.current()
        schema = listing.input_schema(params.name)
        if schema is None:
            raise unknown_tool(params.name)
        arguments, found = check_arguments(schema, params.arguments or {})
        if found:
            return error_result(render_problems(params.name, found, schema))
        call = ToolCall(
            params.name, arguments, listing.skills.get(params.name), self._conversation(ctx, params)
        )
        result = await self._attend(ctx, params, call)
        self._changes.nudge()
        if isinstance(result, types.InputRequiredResult):
            return result
        return for_era(result, ctx.protocol_version)

    def _conversation(self, ctx: Context, params: types.CallToolRequestParams) -> str | None:
        """Return what a call belongs to: as the client says, else its connection where it has one.

        Over stdio there is one client; over HTTP the handshake era has sessions, and the newer one
        has nothing that calls share.
        """
        said = dict(params.meta or {}).get(RECORDING_META_KEY)
        if isinstance(said, str) and said:
            return said[:_LONGEST_NAME]
        if ctx.request is None:
            return self._own_conversation
        session: str | None = ctx.request.headers.get("mcp-session-id")
        return session[:_LONGEST_NAME] if session else None

    async def _attend(
        self, ctx: Context, params: types.CallToolRequestParams, call: ToolCall
    ) -> types.CallToolResult | types.InputRequiredResult:
        report = ctx.session.report_progress
        if params.request_state is not None:
            return await ctx.lifespan_context.resume(params, report)
        feed = ProgressFeed(foreseen_total(call))
        capabilities = ctx.session.client_capabilities
        asks, lends = can_ask(capabilities), can_lend(capabilities)
        if (asks or lends) and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:

            async def work(ask: Ask) -> types.CallToolResult:
                attended = Attendance(
                    McpConsent(asking(ask) if asks else ask_nobody),
                    feed,
                    lending(ask) if lends else None,
                    report,
                )
                return await answer_call(self._bank, call, attended)

            return await ctx.lifespan_context.begin(work, feed, report)
        person = partial(elicit, ctx.session, ctx.request_id) if asks else ask_nobody
        sampler = pushed(ctx.session, ctx.request_id) if lends else None
        async with feed.attached(report):
            return await answer_call(self._bank, call, Attendance(McpConsent(person), feed, sampler, report))


@asynccontextmanager
async def _lifespan(server: Server[SuspendedCalls]) -> AsyncGenerator[SuspendedCalls]:
    if not isinstance(server, BankServer):
        raise TypeError("this lifespan is of BankServer alone")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.changes.watch)
        yield SuspendedCalls(tasks)
        tasks.cancel_scope.cancel()


async def _sanitize(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Let no text of an unforeseen exception reach a client: the handshake era would send it."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        _LOG.exception("%s failed", ctx.method)
        raise MCPError(types.INTERNAL_ERROR, "Internal error") from error

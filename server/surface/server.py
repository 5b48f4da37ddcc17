"""The MCP server over a bank: one object that serves both protocol eras on every transport."""

from __future__ import annotations

import logging
import secrets
import warnings
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any, cast

import anyio
import mcp.types as types
from mcp import MCPDeprecationWarning, MCPError
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue, ValidationError
from starlette.applications import Starlette

from catalog.errors import CatalogError
from server.progress import ignore_progress
from server.surface.admin_tools import ADMIN_TOOLS, answer_admin
from server.surface.arguments import grouped
from server.surface.audience import Audience
from server.surface.builtin_tools import BUILTIN_TOOLS
from server.surface.calls import Attendance, ToolCall, answer_call, foreseen_total
from server.surface.changes import ListChanges
from server.surface.consent import (
    AskPerson,
    McpConsent,
    SessionApprovals,
    ask_nobody,
    asking,
    can_ask,
    elicit,
)
from server.surface.failures import Refusal, error_result, unknown_tool
from server.surface.forwarding import ClientBehind, asking_session, no_answers
from server.surface.icons import SERVER_ICONS
from server.surface.job_arguments import JOB_NAME
from server.surface.job_tools import answer_job
from server.surface.jobs import Jobs
from server.surface.lending import can_lend, lending, pushed
from server.surface.listing import ListingSource
from server.surface.old_sse import THIS_MACHINE, guard_of, sse_routes
from server.surface.port import BankPort, UpstreamProgress
from server.surface.progress import ProgressFeed
from server.surface.prompts import BankPrompts
from server.surface.resources import CatalogResources
from server.surface.results import for_era
from server.surface.skill_packages import SkillPackages
from server.surface.skills_extension import offer_skills
from server.surface.sources import Library, PromptSource, ResourceSource
from server.surface.suspension import WAIT_SECONDS, Ask, SuspendedCalls
from server.surface.tasks import Tasks
from server.surface.trace_resources import TraceResources
from server.surface.validation import check_arguments, render_problems
from server.surface.workflow_resources import WorkflowResources
from server.surface_options import SurfaceOptions

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

_LISTS_LAST_MS = 2_000
_CACHE_HINTS: dict[CacheableMethod, CacheHint] = {
    "tools/list": CacheHint(_LISTS_LAST_MS, "private"),
    "prompts/list": CacheHint(_LISTS_LAST_MS, "private"),
    "resources/list": CacheHint(_LISTS_LAST_MS, "private"),
    "resources/templates/list": CacheHint(_LISTS_LAST_MS, "private"),
    "resources/read": CacheHint(0, "private"),
}
"""How long answers hold that say nothing of it; they may differ by who is asking."""

_LEAVE_LISTS = frozenset({"call_tool", "describe_skill", "find_skills", "find_tools"})
"""Tools that change no list; what an upstream changes meanwhile is looked for anyway."""

Context = ServerRequestContext[SuspendedCalls, Any]


class BankServer(Server[SuspendedCalls]):
    """Serves the skills and use cases of a bank; holds nothing that is worth keeping."""

    def __init__(
        self,
        bank: BankPort,
        options: SurfaceOptions | None = None,
        *,
        shelves: Sequence[ResourceSource] = (),
        prompters: Sequence[PromptSource] = (),
    ) -> None:
        """Serve a bank.

        Args:
            bank: the use cases.
            options: what is listed beside the skills.
            shelves: resources beside those of the bank.
            prompters: prompts beside ours.
        """
        self._bank = bank
        self._options = options or SurfaceOptions()
        self._source = ListingSource(bank, self._options)
        packages = SkillPackages(bank)
        own = (packages, WorkflowResources(bank), TraceResources(bank), CatalogResources(bank))
        self._library = Library((*own, *shelves), (BankPrompts(bank, packages), *prompters))
        self._audience = Audience()
        bus = InMemorySubscriptionBus()
        self._listen_handler = ListenHandler(bus)
        self._changes = ListChanges(self._source, self._library, self._audience, bus)
        self._own_conversation = secrets.token_hex(4)
        self._approved = SessionApprovals()
        self._jobs = Jobs(bank, self._source)
        self._tasks = Tasks(self._jobs)
        super().__init__(
            "skillbank",
            version=version("skillbank"),
            title="skillbank",
            instructions=_INSTRUCTIONS,
            icons=SERVER_ICONS,
            lifespan=_lifespan,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._audience.subscribe,
            on_unsubscribe_resource=self._audience.unsubscribe,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
            on_subscriptions_listen=self._listen,
            cache_hints=_CACHE_HINTS,
            get_tool_input_schema=lambda name: self._source.current().input_schema(name),
        )
        self.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._audience.add
        )
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._audience.set_level)
        offer_skills(self, packages)
        self._tasks.install(self)
        security = RequestStateSecurity.ephemeral(ttl=WAIT_SECONDS)
        self.middleware += [_sanitize, RequestStateBoundary(security, default_audience=self.name)]

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the handshake's answer; it promises list changes on HTTP too, which the library does not."""
        options = notification_options or NotificationOptions(
            tools_changed=True, resources_changed=True, prompts_changed=True
        )
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    def streamable_http_app(self, **options: Any) -> Starlette:  # noqa: ANN401  (the library's own options)
        """Return the HTTP application, with the older transport for clients that know no other."""
        app = super().streamable_http_app(**options)
        guard = guard_of(options.get("auth"), options.get("token_verifier"))
        security = options.get("transport_security") or THIS_MACHINE
        app.router.routes += sse_routes(self, security, guard)
        return app

    @property
    def jobs(self) -> Jobs:
        """The long calls."""
        return self._jobs

    @property
    def changes(self) -> ListChanges:
        """What announces changes of the tool list."""
        return self._changes

    @property
    def lists_upstream_tools(self) -> bool:
        """Whether the tools of the servers behind are listed too."""
        return self._options.publish_tools is not None

    async def look_at_servers(self) -> None:
        """Connect to the servers whose tools are listed, so that the list becomes whole."""
        try:
            await self._bank.look_at_servers()
        except CatalogError:
            _LOG.exception("the tools of the servers behind could not all be listed")
        self._changes.nudge()

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return self._source.current().page(_cursor(params), modern=modern)

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        del ctx
        return self._library.list_resources(_cursor(params))

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        del ctx
        return self._library.list_templates(_cursor(params))

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        del ctx
        return await self._library.read(params.uri)

    async def _list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        del ctx
        return self._library.list_prompts(_cursor(params))

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        del ctx
        return await self._library.prompt(params)

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        del ctx
        return self._library.complete(params)

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        with self._audience.listening(params.notifications.resource_subscriptions or ()):
            return await self._listen_handler(ctx, params)

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        call = self._checked(params.name, params.arguments or {}, self._conversation(ctx, params))
        if isinstance(call, types.CallToolResult):
            return call
        if (task := self._tasks.begin(ctx, call)) is not None:
            return cast("types.CallToolResult", task)  # the library has no type for the extension's answer
        result = await self._attend(ctx, params, call)
        if call.name not in _LEAVE_LISTS:
            self._changes.nudge()
        if isinstance(result, Refusal):
            raise result.error
        if isinstance(result, types.InputRequiredResult):
            return result
        return for_era(result, ctx.protocol_version)

    async def relay(
        self, arguments: Mapping[str, JsonValue], report: UpstreamProgress
    ) -> types.CallToolResult:
        """Return the result of a `call_tool` over stdio by a client of 2026-07-28 that cannot be asked.

        Raises:
            MCPError: it is refused.
        """
        call = self._checked("call_tool", arguments, self._own_conversation)
        if isinstance(call, types.CallToolResult):
            return call
        behind = ClientBehind(None, no_answers, None, _no_log)
        consent = self._consent(ask_nobody, call)
        result = await answer_call(
            self._bank, call, Attendance(consent, ignore_progress, None, report, behind)
        )
        if isinstance(result, Refusal):
            raise result.error
        return result

    def _checked(
        self, name: str, arguments: Mapping[str, JsonValue], conversation: str | None
    ) -> ToolCall | types.CallToolResult:
        """Return a call whose arguments fit, or what is wrong with them.

        Raises:
            MCPError: no such tool is listed.
        """
        listing = self._source.latest if name in BUILTIN_TOOLS else self._source.current()
        schema = listing.input_schema(name)
        if schema is None:
            raise unknown_tool(name, listing.tools)
        upstream = listing.upstream.get(name)
        if upstream is None:  # an upstream checks what it is given itself
            arguments, found = check_arguments(schema, grouped(name, arguments))
            if found:
                return error_result(render_problems(name, found, schema), "invalid_arguments")
        return ToolCall(name, arguments, listing.skills.get(name), upstream, conversation)

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
        if _can_be_asked(capabilities) and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:

            async def work(ask: Ask) -> types.CallToolResult:
                consent = self._consent(asking(ask) if asks else ask_nobody, call)
                lent = lending(ask) if lends else None
                attended = Attendance(consent, feed, lent, report, self._behind(ctx, ask), asks)
                return await self._answer(call, attended)

            return await ctx.lifespan_context.begin(work, feed, report)
        person = partial(elicit, ctx.session, ctx.request_id) if asks else ask_nobody
        sampler = pushed(ctx.session, ctx.request_id) if lends else None
        is_session = ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS
        behind = self._behind(ctx, asking_session(ctx.session, ctx.request_id) if is_session else no_answers)
        async with feed.attached(report):
            attended = Attendance(self._consent(person, call), feed, sampler, report, behind, asks)
            return await self._answer(call, attended)

    def _consent(self, person: AskPerson, call: ToolCall) -> McpConsent:
        session = self._approved.of(call.conversation)
        return McpConsent(person, session, self._bank.remember_approval)

    async def _answer(self, call: ToolCall, attended: Attendance) -> types.CallToolResult:
        if call.name == JOB_NAME:
            return await answer_job(self._jobs, call, self._source.current(), attended)
        if call.name in ADMIN_TOOLS:
            return await answer_admin(self._bank, call, attended)
        return await answer_call(self._bank, call, attended)

    def _behind(self, ctx: Context, ask: Ask) -> ClientBehind:
        async def send_log(said: types.LoggingMessageNotificationParams) -> None:
            with warnings.catch_warnings():
                # Deprecated, and the only way that a log message can take.
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                await ctx.session.send_log_message(  # pyright: ignore[reportDeprecated]
                    said.level, said.data, said.logger, related_request_id=ctx.request_id
                )

        return ClientBehind(ctx.session.client_capabilities, ask, self._audience.log_level(ctx), send_log)


async def _no_log(said: types.LoggingMessageNotificationParams) -> None:
    """Leave it unsaid: nobody asked for log messages."""


def _can_be_asked(capabilities: types.ClientCapabilities | None) -> bool:
    return capabilities is not None and (
        capabilities.elicitation is not None
        or capabilities.sampling is not None
        or capabilities.roots is not None
    )


def _cursor(params: types.PaginatedRequestParams | None) -> str | None:
    return params.cursor if params is not None else None


@asynccontextmanager
async def _lifespan(server: Server[SuspendedCalls]) -> AsyncGenerator[SuspendedCalls]:
    if not isinstance(server, BankServer):
        raise TypeError("this lifespan is of BankServer alone")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.changes.watch)
        if server.lists_upstream_tools:
            tasks.start_soon(server.look_at_servers)
        tasks.start_soon(server.jobs.attend)
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

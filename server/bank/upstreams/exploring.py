"""Exploring a server nobody has tasks for: what may be called, the exploration, and skills from its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches

import anyio

from catalog.connection_report import ConnectionReport
from catalog.errors import ServerUnavailable
from catalog.tools import Tool
from server.backends.errors import BackendError
from server.bank.context import Context
from server.bank.upstreams.exploration import Exploration
from server.bank.upstreams.observing import keep_observed
from server.bank.upstreams.teaching import learn_lessons, learn_skill_of, scoped_replayer, teach_task
from server.curation.replaying import Replayer
from server.exploration.coverage import NOTHING_COVERED, measure_coverage
from server.exploration.errors import NothingToExplore, ProfileRejected, UnknownServer
from server.exploration.explore import Explored, Explorer
from server.exploration.health.findings import HealthReport, by_severity, finding_of, not_called
from server.exploration.health.listing import listing_findings
from server.exploration.profile import Profile, TaskPreference, profile_of
from server.exploration.report import ExplorationPlan, ExplorationReport, ExploredSkill, PlannedTool, Taught
from server.exploration.scope import ExplorationScope, exploration_scope
from server.exploration.session import ExplorationSession, open_session
from server.exploration.tasks import ExploredTask
from server.planning.conversation import MeteredBackend
from server.progress import Progress

__all__ = ["explore_server", "plan_exploration", "profile_server", "teach_explored"]


async def plan_exploration(exploration: Exploration, context: Context) -> ExplorationPlan:
    """Connect to a server and return what exploring it would do; nothing is called.

    Raises:
        NothingToExplore: no such server is configured, or nothing of it may be called.
        ServerUnavailable: it cannot be reached.
    """
    scope = await _scope(exploration, context)
    spec = context.config.servers[exploration.server]
    effects = context.effects
    tools = [
        PlannedTool(
            name=tool.id.tool,
            effect=effects.effect(tool.id).value,
            reason="may repeat" if effects.effect(tool.id).is_free else "in a process of its own",
        )
        for tool in scope.allowed
    ]
    planner = context.models.spec("explorer")
    return ExplorationPlan(
        server=exploration.server,
        command=spec.launch,
        budget_calls=exploration.options.budget_calls,
        calls_per_second=exploration.options.calls_per_second,
        reset=scope.reset.value,
        tools=tuple(tools),
        withheld=dict(scope.withheld),
        model=None if planner.kind == "none" else str(planner),
        style=exploration.options.style,
        learns=exploration.learn,
    )


async def profile_server(exploration: Exploration, context: Context) -> Profile:
    """Return the environment profile of a server, derived from what it lists."""
    scope = await _scope(exploration, context)
    preference = TaskPreference(difficulty=exploration.options.difficulty, style=exploration.options.style)
    return profile_of(exploration.server, scope.allowed, preference)


async def _scope(exploration: Exploration, context: Context) -> ExplorationScope:
    """Return the scope of an exploration that has something to call."""
    scope = await _listed_scope(exploration, context)
    if not scope.allowed:
        raise NothingToExplore(_remedy(scope))
    return scope


def _remedy(scope: ExplorationScope) -> str:
    """Return why nothing of a scope may be called, with what would change that."""
    server = scope.server
    if not scope.withheld:
        return f"{server!r} lists no tool that can be called: `skillbank doctor` says what it lists"
    return (
        f"none of the {len(scope.withheld)} tools of {server!r} may be explored: say which only read"
        f" (`skillbank effects set {server}/TOOL read`), or that a fresh process restores the server"
        f" (`skillbank effects set {server} --reset process`)"
    )


async def _listed_scope(exploration: Exploration, context: Context) -> ExplorationScope:
    server = exploration.server
    if server not in context.config.servers:
        known = ", ".join(sorted(context.config.servers)) or "none is"
        raise UnknownServer(f"no server {server!r} is configured; configured: {known}")
    snapshot = await context.snapshot([server])
    listed = snapshot.of_server(server)
    if not context.is_ready(server):
        report = next(r for r in context.connections.reports() if r.name == server)
        why = "; ".join(report.problems) or f"it is {report.status}"
        raise ServerUnavailable(server, why)
    tools = [tool for tool in listed if exploration.only is None or tool.id.tool in exploration.only]
    unlisted = sorted((exploration.only or frozenset()) - {tool.id.tool for tool in listed})
    if unlisted or (listed and not tools):
        raise ProfileRejected(_unlisted(server, unlisted, [tool.id.tool for tool in listed]))
    return exploration_scope(server, tools, context.effects)


def _unlisted(server: str, names: list[str], listed: list[str]) -> str:
    """Return what to say of tools that a profile names and a server does not list."""
    if not names:
        return f"the profile leaves no tool of {server!r}"
    near = {name: get_close_matches(name, listed, 1) for name in names}
    told = ", ".join(f"{name} ({found[0]}?)" if found else name for name, found in near.items())
    return f"{server!r} does not list tools that the profile names: {told}"


async def explore_server(exploration: Exploration, context: Context) -> ExplorationReport:
    """Explore a server within a budget; make tasks, check them, and learn skills from them.

    Off unless it is asked for. Only what the effect policy lets repeat is called, in fresh processes.

    A server that cannot be reached is reported as that; one of which no tool may be called is
    judged by its listing alone.

    Raises:
        NothingToExplore: no such server is configured, or it lists no tool that the profile names.
    """
    started = anyio.current_time()
    try:
        scope = await _listed_scope(exploration, context)
    except ServerUnavailable as error:
        return _shown(_unreachable(exploration, str(error), anyio.current_time() - started), context)
    connection = next(r for r in context.connections.reports() if r.name == exploration.server)
    if not scope.allowed:
        snapshot = await context.snapshot([exploration.server])
        listed = snapshot.of_server(exploration.server)
        seconds = anyio.current_time() - started
        return _shown(_listing_only(exploration, scope, listed, connection, seconds), context)
    options = exploration.options
    model, problem = await _explorer_model(context)
    if model is None and problem is None and (options.style or options.background):
        problem = "style and background are for a model (`models.explorer`), and none is configured"
    async with open_session(context.connections, scope, options) as session:
        explorer = Explorer(
            session=session,
            replayer=_replayer(scope, context, session),
            options=options,
            problems=connection.problems,
            quarantined=connection.quarantined,
            model=model,
            say=lambda message, calls: context.progress(Progress("explore", message, calls=calls)),
            entities=exploration.entities,
            made=exploration.made,
        )
        explored = await explorer.explore()
    solved = explored.solved if exploration.learn else []
    skills = [
        skill
        for one in solved
        if (skill := await learn_skill_of(one, context, exploration.reserved)) is not None
    ]
    lessons = [unit for one in solved for unit in await learn_lessons(one, context, exploration.reserved)]
    if exploration.learn:
        lessons += await keep_observed(session.observations, [one.task for one in solved], context)
    report = _report(exploration, explored, skills, problem, anyio.current_time() - started)
    report = _shown(report, context)
    return report.model_copy(update={"lessons": len({unit.id for unit in lessons})})


def _shown(report: ExplorationReport, context: Context) -> ExplorationReport:
    """Return a report as anybody may be shown it: without the secrets of the configuration."""
    return ExplorationReport.model_validate(context.redact(report.model_dump(mode="json")))


def _replayer(scope: ExplorationScope, context: Context, session: ExplorationSession) -> Replayer:
    """Return what checks tasks, at the rate of the session and with its patience."""
    replayer = scoped_replayer(scope, context)
    timed = replace(replayer.options, timeout_seconds=session.options.call_timeout_seconds)
    return replace(replayer, pace=session.pace.wait, options=timed)


async def teach_explored(task: ExploredTask, context: Context, reserved: int) -> Taught:
    """Learn a task that an exploration made and that was not learned then, within its server's scope.

    Raises:
        NothingToExplore: its server is no longer configured, or nothing of it may be called.
        ServerUnavailable: it cannot be reached.
    """
    scope = await _scope(Exploration(task.servers[0]), context)
    return await teach_task(task, scope, context, reserved)


async def _explorer_model(context: Context) -> tuple[MeteredBackend | None, str | None]:
    try:
        backend = await context.models.backend("explorer")
    except BackendError as error:
        return None, str(error)
    return (None, None) if backend is None else (MeteredBackend(backend), None)


def _unreachable(exploration: Exploration, why: str, seconds: float) -> ExplorationReport:
    finding = finding_of("unavailable", None, why)
    return ExplorationReport(
        server=exploration.server,
        coverage=NOTHING_COVERED,
        health=HealthReport(server=exploration.server, findings=(finding,)),
        budget_calls=exploration.options.budget_calls,
        seconds=seconds,
        unreachable=why,
    )


def _listing_only(
    exploration: Exploration,
    scope: ExplorationScope,
    listed: Sequence[Tool],
    connection: ConnectionReport,
    seconds: float,
) -> ExplorationReport:
    """Return what the listing alone says of a server of which nothing may be called."""
    found = listing_findings(listed, connection.problems, connection.quarantined)
    names = [*(tool.id.tool for tool in listed), *connection.quarantined]
    health = HealthReport(
        server=scope.server,
        findings=by_severity(found),
        tools=len(listed),
        listed=tuple(dict.fromkeys(names)),
        skipped=not_called(names, (), {**scope.withheld, **connection.quarantined}),
    )
    return ExplorationReport(
        server=scope.server,
        coverage=measure_coverage(scope, [], set()),
        health=health,
        budget_calls=exploration.options.budget_calls,
        seconds=seconds,
        withheld=_remedy(scope),
    )


def _report(
    exploration: Exploration,
    explored: Explored,
    skills: Iterable[ExploredSkill],
    problem: str | None,
    seconds: float,
) -> ExplorationReport:
    last = {skill.task: skill for skill in skills}
    return ExplorationReport(
        server=exploration.server,
        coverage=explored.coverage,
        health=explored.health,
        tasks=tuple(solved.task for solved in explored.solved),
        drafts=explored.drafts,
        dropped=dict(explored.dropped),
        skills=tuple(skill for skill in last.values() if skill.state != "shadow"),
        refused=tuple(skill for skill in last.values() if skill.state == "shadow"),
        calls=explored.calls,
        budget_calls=exploration.options.budget_calls,
        seconds=seconds,
        stopped=explored.stopped,
        model=explored.model,
        model_problem=problem or explored.model_problem,
    )

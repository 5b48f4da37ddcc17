"""Solving a task in words: plans made by a model or without one, run and repaired until one is verified.

All plans share one episode, so that what costs happens at most once for the whole task, whichever
plan calls it, a skill that was tried first included. How a model's plans are escalated is
`server.bank.episode.escalating`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio

from server.backends.backend import Backend
from server.backends.errors import BackendError
from server.bank.context import Context, allowing
from server.bank.curation.observing import throw
from server.bank.episode.escalating import Climb, report_of
from server.bank.episode.insights import family_insights
from server.bank.episode.lessons import Learner, good_tools, hints_of, open_lessons
from server.bank.episode.plan_search import first_right
from server.bank.episode.repairing import Repaired, checked_only, spent_at_once
from server.bank.episode.routing import NotRun, count_use, no_route
from server.bank.episode.seeding import Before, Seeds
from server.bank.patience import for_search
from server.bank.running import static_faults
from server.evolution.evaluate import Evaluator
from server.navigating.recalling import preferring
from server.planning.catalog_view import tool_labels
from server.planning.conversation import MeteredBackend
from server.planning.deterministic import plan_deterministically
from server.planning.model_planner import ModelPlanner
from server.planning.prompt import Advice
from server.planning.seeding import BoundPlan, bound_plan, seed_views
from server.planning.view import World
from server.planning.wanted import wanted_outputs
from server.reports import RepairReport, Route
from server.requests import SolveRequest
from server.telemetry import span
from skills_store.skill import Skill
from skills_store.workflow.faults import Malformed
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow

__all__ = ["solve_task"]

_PLANS = 8
_MORE_PLANS = 32
"""Plans among which experience chooses."""


@dataclass(frozen=True, slots=True)
class _Planner:
    """The model that plans; `backend` is None where there is none, or it cannot be used."""

    name: str | None = None
    backend: Backend | None = None
    problem: str | None = None


async def solve_task(
    task: str, request: SolveRequest, context: Context, before: Before | None = None
) -> Repaired:
    """Plan a task, run the plans and repair them, until one is verified.

    Args:
        task: in a person's words.
        request: inputs, checks and budget.
        context: the bank.
        before: what is known for the task, a skill that was run first and failed included; None: nothing.
    """
    before = before or Before(NotRun())
    tried, spent = before.tried, spent_at_once(request.budget)
    planner = _Planner() if spent or request.budget.tokens == 0 else await _planner(context)
    seeds = before.seeds(request, context, has_model=planner.backend is not None)
    if request.route == "seeded" and not seeds.seeds:
        reasons = seeds.reasons or ("no active skill is near the task",)
        return Repaired(_told(no_route(task, request, NotRun(reasons)), planner))
    started = anyio.current_time()
    if spent:
        snapshot = context.known()
    else:
        snapshot = await context.snapshot(patience=for_search(request.budget.seconds))
    effects = allowing(context.effects, request.allow)
    world = World(
        task, request.inputs, snapshot, effects, context.tool_index(), context.config.labels, planned=True
    )
    wanted = wanted_outputs(request.checks)
    with span("plan deterministic", "plan") as current:
        lessons = await open_lessons(task, context, recalls=request.route != "dynamic")
        plans = _plans(world, wanted, lessons)
        current.set_attribute("skillbank.plans", len(plans))
    seed = None if planner.backend is not None else _seed_plan(seeds, world, wanted)
    drawn = before.left_out
    if drawn is None and not spent and seeds.seeds and (planner.backend is not None or seed is not None):
        drawn = throw(seeds.seeds[0].skill, task, request, context, "seeded")
        if drawn.is_withheld:
            seeds, seed = Seeds(seeds.seeds[1:], (drawn.reason,)), None
            before = replace(before, hits=[h for h in before.hits or () if h.skill.name != drawn.skill.name])
    if not len(snapshot) or (not plans and planner.backend is None and seed is None):
        reasons = _reasons(request, before, seeds, None, planner)
        nothing = _no_plan(task, context).model_copy(update={"route_reasons": reasons})
        return Repaired(_told(nothing, planner), drawn=drawn)
    way = _Way(_route(seeds, planner, seed), _reasons(request, before, seeds, seed, planner))
    if spent:
        first = seed.workflow if seed is not None else plans[0]
        checked = checked_only(first, static_faults(first, snapshot, context), spent)
        return Repaired(checked.model_copy(update={"route": way.route}))
    episode = context.episode(snapshot, effects) if tried is None else tried.episode
    options = context.options(task, way.route, way.reasons)
    evaluator = Evaluator(world, request.checks, episode, options, hints=hints_of(lessons))
    request = replace(request, budget=request.budget.after(anyio.current_time() - started))
    if planner.backend is not None:
        views = seed_views(seeds.seeds, tool_labels(snapshot), planner.backend.context_tokens)
        is_from_scratch = request.route == "dynamic"
        insights = () if is_from_scratch else family_insights(task, before.nearest, context)
        advice = _advice(request, seeds, views, insights)
        advice = replace(advice, lessons=lessons.guide.followed)
        climb = _climb(
            planner.backend, request, evaluator, context, plans, advice, is_planned=tried is not None
        )
        await climb.climb()
        best = report_of(climb) or Repaired(_no_plan(task, context, climb.unread_message))
        best = replace(best, report=_told(best.report, replace(planner, problem=climb.problem)))
    else:
        if tried is None:
            episode.set_plan(seed.workflow if seed is not None else plans[0], context.skill_workflow)
        seeded = None if seed is None else (seed.workflow, replace(evaluator, world=seed.world))
        found, calls, candidates = await first_right(plans, evaluator, request.budget, context, first=seeded)
        counted = {"calls": calls, "candidates": candidates}
        best = replace(found, report=_told(found.report.model_copy(update=counted), planner))
    report = best.report.model_copy(
        update={
            "calls": best.report.calls + before.calls,
            "slot_calls": before.slot_calls,
            "seconds": anyio.current_time() - started,
            "route": way.route,
            "route_reasons": way.reasons,
        }
    )
    if way.route == "seeded":
        _count_seeds(seeds, seed, report, context)
    best = replace(best, report=report, drawn=drawn)
    await lessons.take(report, plans[0] if plans else None)
    return best


def _plans(world: World, wanted: Sequence[str], lessons: Learner) -> list[Workflow]:
    """Return the plans made without a model, those first that experience speaks for."""
    followed = lessons.guide.followed
    if not followed:
        return plan_deterministically(world, wanted)
    return preferring(plan_deterministically(world, wanted, limit=_MORE_PLANS), followed)[:_PLANS]


@dataclass(frozen=True, slots=True)
class _Way:
    """Which way a task is planned, and why."""

    route: Route
    reasons: tuple[str, ...]


def _seed_plan(seeds: Seeds, world: World, wanted: Sequence[str]) -> BoundPlan | None:
    """Return the plan that the first seed is, None where there is none or its inputs leave too much open."""
    return bound_plan(seeds.seeds[0].skill, world, wanted) if seeds.seeds else None


def _route(seeds: Seeds, planner: _Planner, seed: BoundPlan | None) -> Route:
    return "seeded" if seed is not None or (seeds.seeds and planner.backend is not None) else "dynamic"


def _advice(request: SolveRequest, seeds: Seeds, views: Sequence[str], insights: Sequence[str]) -> Advice:
    """Return what a model is told: what the caller gave, near skills, and the family of the task."""
    tools = [node.tool for seed in seeds.seeds for node in seed.skill.workflow.nodes if node.tool is not None]
    return Advice((*request.experiences, *insights), (*request.skills, *views), tools)


def _count_seeds(seeds: Seeds, seed: BoundPlan | None, report: RepairReport, context: Context) -> None:
    """Count the use of the skill a plan started from; without a model only its own plan is its success.

    Paper: AgentEvolver (credit of steps as the utility of what was used at them; facts §4.4). Differs: a
    model is shown a skill and may leave it; where the task came right by no good step of the skill's tools
    the skill has neither helped nor failed, and nothing is counted.
    """
    skill = seeds.seeds[0].skill
    if seed is None:
        if report.status not in ("verified", "succeeded") or _has_helped(skill, report, context):
            count_use(skill, "seeded", report, context)
        return
    won = bool(report.lineage) and report.lineage[0].id == content_hash(seed.workflow)
    count_use(skill, "seeded", report if won else report.model_copy(update={"status": "failed"}), context)


def _has_helped(skill: Skill, report: RepairReport, context: Context) -> bool:
    """Return whether the attribution calls a step good that a tool of the skill made."""
    trace = context.store.trace(report.trace_id) if report.trace_id is not None else None
    tools = {pin.tool for pin in skill.pins}
    return trace is not None and not tools.isdisjoint(good_tools(report, trace))


async def _planner(context: Context) -> _Planner:
    """Return the model that plans, ready to be asked, or what keeps it from that."""
    spec = context.models.spec("planner")
    if spec.kind == "none":
        return _Planner()
    try:
        backend = await context.models.backend("planner")
        return _Planner(backend.name if backend else None, backend)
    except BackendError as error:
        return _Planner(str(spec), problem=str(error))


def _climb(
    backend: Backend,
    request: SolveRequest,
    evaluator: Evaluator,
    context: Context,
    plans: list[Workflow],
    advice: Advice,
    *,
    is_planned: bool,
) -> Climb:
    model = MeteredBackend(backend, request.budget.tokens)
    planner = ModelPlanner(
        model,
        evaluator.world,
        wanted_outputs(request.checks),
        advice,
        context.redact,
    )
    return Climb(planner, model, evaluator, request.budget, context, plans, is_planned=is_planned)


def _told(report: RepairReport, planner: _Planner) -> RepairReport:
    """Return the report with who was to plan, and what stood in the way."""
    return report.model_copy(update={"model": planner.name, "model_problem": planner.problem})


def _reasons(
    request: SolveRequest, before: Before, seeds: Seeds, seed: BoundPlan | None, planner: _Planner
) -> tuple[str, ...]:
    if request.route == "dynamic":
        return ("asked for",)
    asked = ("asked for",) if request.route == "seeded" else before.reasons
    open_ends: tuple[str, ...] = ()
    if seed is not None and seed.unbound:
        open_ends = (f"the task does not say its {', '.join(seed.unbound)}",)
    elif seeds.seeds and seed is None and planner.backend is None:
        open_ends = ("too many of its inputs are open for a plan",)
    return (*asked, *seeds.reasons, *open_ends)


def _no_plan(task: str, context: Context, why: str = "") -> RepairReport:
    there = "`skillbank doctor` lists the servers" if context.config.servers else "no server is configured"
    message = why or f"no known tool fits the task {task!r}: {there}"
    return RepairReport(
        status="failed", outputs=None, workflow={}, faults=(Malformed(message=message),), route="dynamic"
    )

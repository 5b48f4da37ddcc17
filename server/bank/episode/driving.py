"""Solving a task by driving a model step by step; what it did becomes a workflow, and falls into repair.

All its calls are one candidate of an episode, and the workflow they make is the next: what ran is answered
from the record, so that nothing that changes the world happens twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import anyio

from catalog.effects import Activity
from catalog.tools import Snapshot
from server.backends.backend import Backend
from server.backends.errors import BackendError
from server.bank.context import Context, allowing
from server.bank.episode.lessons import Learner, hints_of, open_lessons
from server.bank.episode.repairing import Repaired, checked_only, search_from, spent_at_once
from server.bank.patience import for_search
from server.bank.recalling import recall
from server.context.snapshots import Snapshot as ContextSnapshot
from server.driving.driver import Drive, DriveTask, Taken, drive
from server.driving.offered import Offered, offer
from server.driving.options import DriveOptions
from server.evolution.evaluate import Evaluator
from server.execution.calls import Caller
from server.execution.episode import Episode
from server.execution.run import execute_workflow
from server.planning.catalog_view import view_catalog
from server.planning.conversation import MeteredBackend
from server.planning.deterministic import inputs_schema, likely_output
from server.planning.prompt import describe_faults
from server.planning.view import View, World
from server.planning.wanted import wanted_outputs
from server.progress import Progress
from server.reports import DriveReport, MessageRecord, RepairReport, SnapshotRecord
from server.requests import SolveRequest
from skills_store.skill import Signature, Skill
from skills_store.workflow.check import check_workflow
from skills_store.workflow.faults import Malformed
from skills_store.workflow.graph import needed
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import escape_literal

__all__ = ["drive_task"]

_SKILLS = 4
"""Skills that are offered: more would crowd out the tools in a small context."""
_VIEW_SHARE = 0.3
"""Part of the prompt that the tools may take."""
_REPAIR_SHARE = 0.3
"""Part of the seconds that is kept for the repair of what was driven."""


async def drive_task(task: str, request: SolveRequest, context: Context) -> Repaired:
    """Drive a model through a task; verify what it did, and repair it where it is not right.

    Args:
        task: in a person's words.
        request: inputs, checks, budget and how to drive.
        context: the bank.
    """
    options = request.drive or DriveOptions()
    backend, problem = await _driver_of(context)
    if backend is None:
        return _nothing(f"the driver needs a model: {problem}")
    if spent := spent_at_once(request.budget):
        return _nothing(f"the budget of {spent} is zero")
    started = anyio.current_time()
    snapshot = await context.snapshot(patience=for_search(request.budget.seconds))
    effects = allowing(context.effects, request.allow)
    world = World(task, request.inputs, snapshot, effects, context.tool_index(), context.config.labels)
    model = MeteredBackend(backend, request.budget.tokens)
    options = replace(options, policy=replace(options.policy, budget_tokens=_prompt_tokens(backend, options)))
    offered = await _offered(world, model, options, context)
    lessons = await open_lessons(task, context, recalls=request.route != "dynamic")
    episode = context.episode(snapshot, effects)
    seconds = (request.budget.seconds - (anyio.current_time() - started)) * (1 - _REPAIR_SHARE)
    async with episode.candidate(Activity.FIRST_RUN) as caller:
        wanted = DriveTask(
            text=str(context.redact(task)),
            inputs=request.inputs,
            wanted=wanted_outputs(request.checks),
            offered=offered,
            call=_Calls(caller, snapshot, offered, context, task).make,
            redact=context.redact,
            experiences=[
                *(("", text) for text in request.experiences),
                *((unit.id, unit.text) for unit in lessons.guide.followed),
            ],
            seconds=max(seconds, 0.0),
        )
        driven = await drive(wanted, model, options, lambda said: context.progress(Progress("drive", said)))
    attempt = _Attempt(world, episode, request, context, lessons, started)
    return await _verified(driven, _Told(model, options, offered), attempt)


@dataclass(frozen=True)
class _Told:
    """Who drove, and how."""

    model: MeteredBackend
    options: DriveOptions
    offered: Offered

    def report(self, driven: Drive) -> DriveReport:
        """Return what is told of a drive."""
        return DriveReport(
            template=self.options.policy.template,
            steps=driven.steps,
            ended=driven.ended,
            model_calls=len(self.model.turns),
            tokens=self.model.usage.total,
            prompt_budget=self.options.policy.budget_tokens,
            fits=driven.fits,
            estimates_tokens=driven.estimates_tokens,
            tools=self.offered.schemas,
            snapshots=tuple(_record(one) for one in driven.recorder.snapshots),
        )


@dataclass(frozen=True)
class _Attempt:
    """The task that was driven, and what is left for it."""

    world: World
    episode: Episode
    request: SolveRequest
    context: Context
    lessons: Learner
    started: float

    @property
    def seconds(self) -> float:
        """Since it began."""
        return anyio.current_time() - self.started


def _record(snapshot: ContextSnapshot) -> SnapshotRecord:
    messages = tuple(MessageRecord(**asdict(one)) for one in snapshot.messages)
    return SnapshotRecord(
        messages=messages, reply=snapshot.reply, step=snapshot.step, trainable=snapshot.is_trainable
    )


async def _driver_of(context: Context) -> tuple[Backend | None, str]:
    try:
        backend = await context.models.backend("planner")
    except BackendError as error:
        return None, str(error)
    return backend, "`models.planner` is not configured, and --model was not given"


def _prompt_tokens(backend: Backend, options: DriveOptions) -> int:
    limit = backend.context_tokens
    if limit is None:
        return options.policy.budget_tokens
    return max(1, min(options.policy.budget_tokens, limit - options.answer_tokens))


async def _offered(world: World, model: MeteredBackend, options: DriveOptions, context: Context) -> Offered:
    budget = int(_VIEW_SHARE * options.policy.budget_tokens)
    view = await view_catalog(world, model.count_tokens, budget, whole_up_to=budget)
    found = await recall(world.task, _SKILLS, context)
    skills = [hit.skill for hit in found.hits if hit.skill.state == "active"]
    return offer(view, skills)


@dataclass(frozen=True)
class _Calls:
    """Makes the calls of a drive, each as a workflow of one node: checked, run and bounded like any."""

    caller: Caller
    snapshot: Snapshot
    offered: Offered
    context: Context
    task: str

    async def make(self, node: Node) -> Taken:
        """Return what came of a call with literal arguments."""
        arguments = {key: escape_literal(value) for key, value in node.arguments.items()}
        single = node.model_copy(update={"arguments": arguments})
        workflow = Workflow(
            name="step",
            inputs={"type": "object"},
            nodes=(single,),
            outputs={"value": f"$nodes.{node.id}.output"},
        )
        faults = check_workflow(workflow, self.snapshot, skills=_signatures(self.offered.skills))
        if faults:
            return Taken(problem=describe_faults(faults))
        run = await execute_workflow(
            workflow, {}, self.caller, snapshot=self.snapshot, options=self.context.options(self.task)
        )
        if run.result is None:
            return Taken(problem=describe_faults(run.faults) or "the call gave nothing")
        return Taken(run.outputs[node.id])


def _signatures(skills: Mapping[str, Skill]) -> dict[str, Signature]:
    return {f"{skill.name}@{skill.version}": skill.signature for skill in skills.values()}


async def _verified(driven: Drive, told: _Told, attempt: _Attempt) -> Repaired:
    """Return the drive as a workflow that was verified, or repaired from there."""
    report, world, context = told.report(driven), attempt.world, attempt.context
    checks = attempt.request.checks
    workflow = _workflow(driven, world, wanted_outputs(checks))
    if workflow is None:
        why = driven.problem or f"the model made no call that succeeded; it ended by: {driven.ended}"
        return _nothing(why, report, told.model.name)
    skills = {node.skill.name: node.skill.version for node in workflow.nodes if node.skill}
    known = [context.store.version(name, version) for name, version in skills.items()]
    signatures = _signatures({skill.name: skill for skill in known if skill is not None})
    options = context.options(world.task, "dynamic")
    evaluator = Evaluator(
        world, checks, attempt.episode, options, signatures, hints=hints_of(attempt.lessons)
    )
    left = attempt.request.budget.after(attempt.seconds)
    if spent_at_once(left) is not None:
        unchecked = checked_only(workflow, [], "seconds")
        return Repaired(_with(unchecked, report, told))
    repaired = await search_from(workflow, evaluator, left, context, level="drive")
    calls = max(repaired.report.calls, attempt.episode.calls)
    found = repaired.report.model_copy(update={"calls": calls, "seconds": attempt.seconds})
    await attempt.lessons.take(found, workflow)
    return replace(repaired, report=_with(found, report, told))


def _with(report: RepairReport, driven: DriveReport, told: _Told) -> RepairReport:
    more = {"drive": driven, "model": told.model.name, "tokens": report.tokens + driven.tokens}
    return report.model_copy(update={**more, "route": "dynamic", "route_reasons": ("driven step by step",)})


def _workflow(driven: Drive, world: World, wanted: tuple[str, ...]) -> Workflow | None:
    """Return what was driven as a workflow: the calls its outputs need, and those that changed something."""
    if not driven.nodes:
        return None
    whole = Workflow(
        name="driven", inputs=inputs_schema(world), nodes=tuple(driven.nodes), outputs=driven.finish or {}
    )
    if driven.finish is None:
        view = View(world, whole)
        outputs = {name: likely_output(view, name) for name in wanted or ("result",)}
        return whole.model_copy(update={"outputs": outputs})
    wanted_nodes = needed(whole)
    kept = [node for node in whole.nodes if node.id in wanted_nodes or not _is_free(node, world)]
    return whole.model_copy(update={"nodes": tuple(kept)})


def _is_free(node: Node, world: World) -> bool:
    return node.tool is not None and world.effect(node.tool).is_free


def _nothing(why: str, driven: DriveReport | None = None, model: str | None = None) -> Repaired:
    """Return the report of a drive that came to nothing that could be run again."""
    return Repaired(
        RepairReport(
            status="failed",
            outputs=None,
            workflow={},
            faults=(Malformed(message=why),),
            tokens=0 if driven is None else driven.tokens,
            model=model,
            route="dynamic",
            route_reasons=("driven step by step",),
            drive=driven,
        )
    )

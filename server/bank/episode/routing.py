"""The direct route of a task: the skill that is this task's, run without a plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from catalog.schema import is_valid
from server.bank.context import Context, allowing
from server.bank.curation.observing import outcome_of, throw
from server.bank.drift import mark_stale_if_changed, missing_servers
from server.bank.episode.looking import open_inputs
from server.bank.episode.repairing import Repaired
from server.bank.recalling import is_given_new_words, trust_in, was_right_with
from server.bank.running import Planned, execute, servers_of
from server.curation.withholding import Draw
from server.execution.episode import Episode
from server.planning.router import Direct, choose_route
from server.planning.view import World
from server.progress import Progress
from server.reports import RepairReport
from server.requests import SolveRequest
from skills_store.skill import Skill
from skills_store.utility import Route, Use
from skills_store.workflow.faults import Denied, Malformed

__all__ = ["DirectRun", "NotRun", "after_all", "count_use", "no_route", "run_directly"]


@dataclass(frozen=True)
class DirectRun:
    """A skill that was run for a task. `episode` holds what it did, for whatever is tried next."""

    report: RepairReport
    episode: Episode
    drawn: Draw | None = None
    """Whether it was a trial, None where nobody may compare."""

    @property
    def is_final(self) -> bool:
        """Whether nothing is gained by a plan: it came out right, or is a person's to decide."""
        is_denied = any(isinstance(fault, Denied) for fault in self.report.faults)
        return is_denied or self.report.status in ("verified", "succeeded")


@dataclass(frozen=True, slots=True)
class NotRun:
    """Why no skill was run for a task, and the calls that looking for its inputs took."""

    reasons: tuple[str, ...] = ()
    slot_calls: int = 0
    left_out: Draw | None = None
    """The skill that would have been run and was left out to compare, None when there was none."""


async def run_directly(
    task: str, request: SolveRequest, context: Context, *, compare: bool = True
) -> DirectRun | NotRun:
    """Run the skill that is this task's, or return why none was run.

    Inputs that the task leaves open are looked for with free tools first.

    Args:
        task: in a person's words.
        request: how it is to be solved.
        context: the bank.
        compare: whether the skill may be left out to compare it with its absence.
    """
    is_asked_for = request.route == "direct"
    choice = choose_route(
        task,
        request.inputs,
        context.task_patterns().candidates(task),
        lambda skill: trust_in(skill, context),
        lambda found: was_right_with(found, context),
        is_asked_for=is_asked_for,
    )
    direct = choice.direct
    if direct is None:
        return NotRun(choice.reasons)
    named = f"{direct.skill.name}@{direct.skill.version}"
    if missing := missing_servers(direct.skill, context):
        return NotRun((f"{named} needs {', '.join(missing)}, which is not configured",))
    effects = allowing(context.effects, request.allow)
    search = open_inputs(
        direct, World(task, request.inputs, context.known(), effects, context.tool_index()), context
    )
    context.progress(Progress("run", f"running skill {direct.skill.name}"))
    snapshot = await context.snapshot(servers_of(direct.skill.workflow, context) | search.servers)
    if (changed := mark_stale_if_changed(direct.skill, snapshot, context)) is not None:
        return NotRun((f"{named} is stale: {changed}",))
    episode = context.episode(snapshot, effects)
    episode.set_plan(direct.skill.workflow, context.skill_workflow)
    found = await search.run(task, episode, snapshot, request.budget.calls)
    told = found.reasons(list(direct.missing))
    inputs = {**direct.inputs, **found.values}
    if direct.missing.keys() - found.values or not is_valid(direct.skill.signature.input_schema, inputs):
        return NotRun((*choice.reasons, *told), found.calls)
    bound = replace(direct, inputs=inputs, reasons=(*choice.reasons, *told))
    way = "looked for" if direct.missing else "bound"
    drawn = throw(direct.skill, task, request, context, f"direct {way}") if compare else None
    if drawn is not None and drawn.is_withheld:
        return NotRun((drawn.reason,), found.calls, drawn)
    is_new = is_given_new_words(bound, context)
    report = await _run(bound, task, request, episode, context)
    if drawn is not None and is_new and _is_refused(report):
        drawn = Draw(direct.skill)  # a neighbour's task, as its tool says: no trial of the skill's own family
    return DirectRun(report.model_copy(update={"slot_calls": found.calls}), episode, drawn)


async def after_all(task: str, request: SolveRequest, solved: Repaired, context: Context) -> Repaired:
    """Return what came of a task, by the skill that was left out where doing without it came to nothing.

    Only skills whose tools all are free are left out, so nothing is done twice.
    """
    drawn = solved.drawn
    if drawn is None or not drawn.stratum.startswith("direct") or outcome_of(solved.report) != "wrong":
        return solved
    if not drawn.is_withheld:
        return solved
    direct = await run_directly(task, request, context, compare=False)
    if not isinstance(direct, DirectRun) or not direct.is_final:
        return solved
    told = (*direct.report.route_reasons, drawn.reason, "doing without it came to nothing")
    report = direct.report.model_copy(
        update={
            "route_reasons": told,
            "calls": solved.report.calls + direct.report.calls,
            "tokens": solved.report.tokens,
            "seconds": solved.report.seconds + direct.report.seconds,
        }
    )
    return Repaired(report, drawn=drawn)


def _is_refused(report: RepairReport) -> bool:
    """Return whether a tool refused what it was given, rather than a check what it gave."""
    own = [fault.kind for fault in report.faults if fault.evidence == "workflow"]
    return bool(own) and all(kind in ("tool_error", "disguised_error") for kind in own)


async def _run(
    direct: Direct, task: str, request: SolveRequest, episode: Episode, context: Context
) -> RepairReport:
    planned = Planned(
        direct.skill.workflow,
        direct.inputs,
        request.checks,
        task=task,
        route="direct",
        route_reasons=direct.reasons,
    )
    executed = await execute(planned, episode, episode.snapshot, context)
    trace = executed.trace
    report = RepairReport(
        status=trace.status,
        outputs=executed.outputs,
        workflow=direct.skill.workflow.to_json(),
        faults=trace.faults,
        calls=episode.calls,
        seconds=trace.seconds,
        skill=direct.skill.name,
        skill_state=direct.skill.state,
        skill_reason=direct.skill.reason,
        route="direct",
        route_reasons=direct.reasons,
        trace=trace.steps,
        trace_id=trace.id,
        not_repeated=tuple(episode.not_repeated),
        verifications=trace.verifications,
    )
    count_use(direct.skill, "call" if request.route == "direct" else "direct", report, context)
    return report


def count_use(skill: Skill, route: Route, report: RepairReport, context: Context) -> None:
    """Count one use of a skill by what came of it; what the world or a person stopped is no failure."""
    right = report.status in ("verified", "succeeded")
    world = not right and all(fault.evidence != "workflow" for fault in report.faults)
    use = Use(
        skill.name,
        skill.version,
        route,
        succeeded=right,
        world_fault=world,
        at=context.clock(),
        trace=report.trace_id,
    )
    context.store.record_use(use)


def no_route(task: str, request: SolveRequest, why: NotRun) -> RepairReport:
    """Return the report of a task that was to go a way that is not open, with why it is not."""
    told = "; ".join(why.reasons) or "the budget allows no run"
    message = (
        f"the {request.route} route is not open for the task {task!r}: {told}."
        " `skillbank skills list` shows the skills; without --route the bank chooses"
    )
    return RepairReport(
        status="failed",
        outputs=None,
        workflow={},
        faults=(Malformed(message=message),),
        route=request.route,
        route_reasons=why.reasons,
        calls=why.slot_calls,
        slot_calls=why.slot_calls,
    )

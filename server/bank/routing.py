"""The direct route of a task: the skill that is this task's, run without a plan."""

from __future__ import annotations

from dataclasses import dataclass

from server.bank.context import Context, allowing
from server.bank.drift import mark_stale_if_changed, missing_servers
from server.bank.running import Planned, execute, servers_of
from server.execution.episode import Episode
from server.planning.router import Direct, choose_route
from server.progress import Progress
from server.reports import RepairReport
from server.requests import SolveRequest
from skills_store.utility import Use
from skills_store.workflow.faults import Denied, Malformed

__all__ = ["DirectRun", "no_direct_skill", "run_directly"]


@dataclass(frozen=True)
class DirectRun:
    """A skill that was run for a task. `episode` holds what it did, for whatever is tried next."""

    report: RepairReport
    episode: Episode

    @property
    def is_final(self) -> bool:
        """Whether nothing is gained by a plan: it came out right, or is a person's to decide."""
        is_denied = any(isinstance(fault, Denied) for fault in self.report.faults)
        return is_denied or self.report.status in ("verified", "succeeded")


async def run_directly(task: str, request: SolveRequest, context: Context) -> DirectRun | None:
    """Run the skill that is this task's, or return None: no active skill fits, or its tools changed."""
    direct = choose_route(task, request.inputs, context.store.heads())
    if direct is None or missing_servers(direct.skill, context):
        return None
    context.progress(Progress("run", f"running skill {direct.skill.name}"))
    snapshot = await context.snapshot(servers_of(direct.skill.workflow, context))
    if mark_stale_if_changed(direct.skill, snapshot, context) is not None:
        return None
    episode = context.episode(snapshot, allowing(context.effects, request.allow))
    episode.set_plan(direct.skill.workflow, context.skill_workflow)
    planned = Planned(direct.skill.workflow, direct.inputs, request.checks, task=task)
    executed = await execute(planned, episode, snapshot, context)
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
    _count(direct, report, context)
    return DirectRun(report, episode)


def _count(direct: Direct, report: RepairReport, context: Context) -> None:
    right = report.status in ("verified", "succeeded")
    world = not right and all(fault.evidence != "workflow" for fault in report.faults)
    use = Use(
        direct.skill.name,
        direct.skill.version,
        "direct",
        succeeded=right,
        world_fault=world,
        at=context.clock(),
        trace=report.trace_id,
    )
    context.store.record_use(use)


def no_direct_skill(task: str) -> RepairReport:
    """Return the report of a task that was to be solved by a skill and is none's."""
    message = (
        f"no active skill is the one for the task {task!r}: `skillbank skills list` shows the skills;"
        " without the direct route the task is planned"
    )
    return RepairReport(
        status="failed", outputs=None, workflow={}, faults=(Malformed(message=message),), route="direct"
    )

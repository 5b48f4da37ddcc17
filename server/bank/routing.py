"""The direct route of a task: the skill that is this task's, run without a plan."""

from __future__ import annotations

from server.bank import using
from server.bank.context import Context
from server.bank.running import execute_checked, servers_of
from server.planning.router import Direct, choose_route
from server.progress import Progress
from server.reports import RepairReport
from server.requests import SolveRequest
from skills_store.utility import Use

__all__ = ["run_directly"]


async def run_directly(task: str, request: SolveRequest, context: Context) -> RepairReport | None:
    """Return the report of a direct run, or None to plan: no skill fits, or its answer fails the checks.

    Raises:
        SkillNotCallable: never for a changed tool: that skill is marked stale and planning goes on.
    """
    direct = choose_route(task, request.inputs, context.store.heads())
    if direct is None:
        return None
    context.progress(Progress("run", f"running skill {direct.skill.name}"))
    snapshot = await context.snapshot(servers_of(direct.skill.workflow, context))
    if using.mark_stale_if_changed(direct.skill, snapshot, context) is not None:
        return None
    return await _checked(task, direct, request, context)


async def _checked(task: str, direct: Direct, request: SolveRequest, context: Context) -> RepairReport | None:
    snapshot = context.known()
    skill = direct.skill
    episode = context.episode(snapshot)
    episode.set_plan(skill.workflow, context.skill_workflow)
    run, verdict = await execute_checked(
        skill.workflow, direct.inputs, request.checks, context, episode, snapshot, task=task
    )
    fine = verdict.status in ("verified", "succeeded")
    world = not fine and bool(verdict.faults) and all(f.evidence != "workflow" for f in verdict.faults)
    at = context.clock()
    context.store.record_use(Use(skill.name, skill.version, "direct", fine, world, at, run.trace.id))
    if not fine:
        return None
    return RepairReport(
        status=verdict.status,
        outputs=run.trace.outputs,
        workflow=skill.workflow.to_json(),
        calls=episode.calls,
        seconds=run.trace.seconds,
        skill=skill.name,
        skill_state=skill.state,
        skill_reason=skill.reason,
        route="direct",
        route_reasons=direct.reasons,
        trace=run.trace.steps,
        trace_id=run.trace.id,
        verifications=tuple(verdict.verifications),
    )

"""Judging runs of explored tasks that no check can tell, by the reference: the fallback reward."""

from __future__ import annotations

from server.backends.errors import BackendError
from server.bank.context import Context
from server.bank.episode.candidate_judge import judged_run
from server.exploration.tasks import ExploredTask
from server.planning.conversation import MeteredBackend
from server.reports import RepairReport
from server.verification.reference_judge import Reference, ReferenceVerdict, judge_by_reference

__all__ = ["can_judge", "judge_explored"]


async def can_judge(context: Context) -> bool:
    """Return whether a model is configured that judges."""
    try:
        return await context.models.backend("judge") is not None
    except BackendError:
        return False  # what is wrong with it is told where somebody asks it


async def judge_explored(task: ExploredTask, report: RepairReport, context: Context) -> ReferenceVerdict:
    """Return a model's word on whether a run did what the reference of its task did."""
    try:
        backend = await context.models.backend("judge")
    except BackendError as error:
        return ReferenceVerdict(None, str(error))
    if backend is None:
        return ReferenceVerdict(None, "there is no model to judge (`models.judge` in the configuration)")
    if not report.trace:
        return ReferenceVerdict(0.0, "nothing was done")
    shown = judged_run(task.task, report.trace, report.outputs or {}, context)
    calls = [(str(node.tool or ""), dict(node.arguments)) for node in task.reference.nodes]
    reference = Reference([*calls, ("inputs", dict(task.inputs))], task.answer)
    return await judge_by_reference(shown, reference, MeteredBackend(backend))

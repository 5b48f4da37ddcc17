"""Better labels for the steps of kept runs than execution gives: by ablation out of memory, or by a judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from server.attribution.judging import judge_steps
from server.attribution.labels import StepLabel
from server.attribution.remembered import ablate_trace
from server.backends.backend import Backend
from server.bank.context import Context
from server.planning.conversation import MeteredBackend, converse
from server.progress import Progress
from server.training.errors import TrainerUnusable
from server.training.from_traces import Seen
from server.training.telling import is_tellable
from skills_store.errors import MalformedWorkflow
from skills_store.trace import Trace
from skills_store.workflow.model import parse_workflow

__all__ = ["Attribution", "attributed"]

Attribution = Literal["execution", "ablation", "judge"]
"""Whose labels: the run's, those of leaving steps out, or a model's; where these say nothing the run's."""


async def attributed(seen: Sequence[Seen], by: Attribution, context: Context) -> list[Seen]:
    """Return runs with the labels of a better source where it has some. No tool is called.

    Raises:
        TrainerUnusable: a judge is wanted and none is configured.
        BackendError: the judge cannot be asked.
    """
    if by == "execution":
        return list(seen)
    judge = await _judge(context) if by == "judge" else None
    found: list[Seen] = []
    for number, one in enumerate(seen, 1):
        if not is_tellable(one.trace):
            continue
        context.progress(Progress("export", f"labelling run {number} of {len(seen)}"))
        labels = await _ablated(one.trace, context) if judge is None else await _judged(one.trace, judge)
        found.append(replace(one, labels=labels))
    return found


async def _judge(context: Context) -> Backend:
    backend = await context.models.backend("judge")
    if backend is None:
        raise TrainerUnusable("no model judges: configure models.judge, or leave out --attribution judge")
    return backend


async def _ablated(trace: Trace, context: Context) -> tuple[StepLabel, ...]:
    try:
        workflow = parse_workflow(trace.workflow)
    except MalformedWorkflow:  # secrets were taken out of a place where a document needs a value
        return ()
    return await ablate_trace(trace, workflow, context.known(), context.effects)


async def _judged(trace: Trace, judge: Backend) -> tuple[StepLabel, ...]:
    passed = trace.status in ("verified", "succeeded")
    return await converse(MeteredBackend(judge), judge_steps(trace, passed))

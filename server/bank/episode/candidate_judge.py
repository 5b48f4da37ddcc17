"""A model's opinion of runs: what a judge is shown of one, and its scores of a search's candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from server.backends.errors import BackendError
from server.bank.context import Context
from server.evolution.evaluate import Evaluation
from server.planning.conversation import MeteredBackend
from server.progress import Progress
from server.verification.judge import JudgedRun, JudgedStep, judge_run
from skills_store.trace import Step
from skills_store.workflow.model import Workflow

__all__ = ["LONGEST_SECONDS", "SEED", "CandidateJudge", "candidate_judge", "judged_run"]

SEED = 20261130
"""Draws the orders of a judge's readings."""
LONGEST_SECONDS = 60.0
"""Of one reading."""


def judged_run(
    task: str,
    steps: Sequence[Step],
    outputs: Mapping[str, JsonValue],
    context: Context,
    words: str = "",
) -> JudgedRun:
    """Return what a judge is shown of a run.

    Args:
        task: in a person's words.
        steps: as they are kept.
        outputs: the run's.
        context: redacts the task, and knows the tools.
        words: the answer that a model made of the outputs; empty: none.
    """
    tools = {tool.id: tool for tool in context.known()}
    shown = [
        JudgedStep(
            node=step.node,
            tool=str(step.tool or step.skill or ""),
            purpose=tools[step.tool].description if step.tool in tools else "",
            arguments=dict(step.arguments),
            outcome=step.outcome.replace("_", " "),
            answer=step.fault.message if step.fault else step.output,
            wave=step.wave,
        )
        for step in steps
    ]
    return JudgedRun(str(context.redact(task)), shown, dict(outputs), words)


@dataclass
class CandidateJudge:
    """Scores the candidates of one search, within a budget of tokens.

    Paper: EvoFlux (fitness, facts §1.4). Differs: it orders only candidates that no check tells apart.
    """

    model: MeteredBackend
    context: Context
    task: str

    async def score(self, workflow: Workflow, evaluation: Evaluation) -> float | None:
        """Return the mean of six sub-scores in [0, 1]; None when none could be had."""
        if evaluation.trace is None:
            return None
        outputs = self.context.redact(dict(evaluation.result or {}))
        shown = judged_run(
            self.task or workflow.name,
            evaluation.trace.steps,
            outputs if isinstance(outputs, dict) else {},
            self.context,
        )
        found = await judge_run(shown, self.model, seed=SEED, deadline_seconds=LONGEST_SECONDS)
        for problem in found.problems[:1]:
            self.context.progress(Progress("repair", f"no score of a judge: {problem}"))
        return found.score


async def candidate_judge(task: str, tokens: int, context: Context) -> CandidateJudge | None:
    """Return the judge of a search; None, with the reason told, where no model can be one."""
    try:
        backend = await context.models.backend("judge")
    except BackendError as error:
        context.progress(Progress("repair", f"no judge: {error}"))
        return None
    if backend is None:
        context.progress(
            Progress("repair", "no judge: `models.judge` is not configured, nor is --model given")
        )
        return None
    return CandidateJudge(MeteredBackend(backend, tokens), context, task)

"""What is said of a run that succeeded: its outputs in words, and a judge's opinion. Both on request."""

from __future__ import annotations

from dataclasses import replace

from server.backends.errors import BackendError
from server.bank.context import Context
from server.bank.episode.candidate_judge import LONGEST_SECONDS, SEED, judged_run
from server.bank.episode.plan_search import is_right
from server.bank.episode.repairing import Repaired
from server.planning.answer import Answered, Question, render_outputs, write_answer
from server.planning.conversation import MeteredBackend, converse
from server.reports import AnswerReport, JudgeReport, RepairReport
from server.requests import SolveRequest
from server.verification.judge import READINGS, judge_run
from skills_store.trace import Verification
from skills_store.workflow.graph import output_nodes
from skills_store.workflow.model import Workflow

__all__ = ["JUDGED_RIGHT", "answered", "judged"]

JUDGED_RIGHT = 0.7
"""Score from which a judge is said to hold a run for right: its bands call that three quarters done."""


async def answered(repaired: Repaired, task: str, request: SolveRequest, context: Context) -> Repaired:
    """Return what came out right with its outputs in words; as a table where no model writes them."""
    report = repaired.report
    if not request.answer or not report.outputs or not is_right(report):
        return repaired
    answer, tokens = await _written(report, task, request, context)
    if answer.by == "table" and report.workflow:
        rests_on = output_nodes(Workflow.model_validate(report.workflow))
        answer = answer.model_copy(update={"nodes": tuple(sorted(rests_on))})
    told = report.model_copy(update={"answer": answer, "tokens": report.tokens + tokens})
    return replace(repaired, report=told)


async def _written(
    report: RepairReport, task: str, request: SolveRequest, context: Context
) -> tuple[AnswerReport, int]:
    outputs = report.outputs or {}
    table = AnswerReport(text=render_outputs(outputs), by="table")
    try:
        backend = await context.models.backend("planner")
        if backend is None:
            return table, 0
        model = MeteredBackend(backend, max(0, request.budget.tokens - report.tokens))
        written = await converse(model, write_answer(_question(report, task, request, context)))
    except BackendError as error:
        return table.model_copy(update={"problems": (f"no model wrote it: {error}",)}), 0
    if written is None:
        problem = "the model's words could not be read: these are the outputs"
        return table.model_copy(update={"problems": (problem,)}), model.usage.total
    answer = AnswerReport(text=written.text, nodes=written.nodes, by="model", problems=written.problems)
    return answer, model.usage.total


def _question(report: RepairReport, task: str, request: SolveRequest, context: Context) -> Question:
    inputs = context.redact(dict(request.inputs))
    steps = [
        Answered(step.node, str(step.tool or step.skill or ""), step.output)
        for step in report.trace
        if step.outcome == "succeeded" and step.item is None
    ]
    return Question(
        task=str(context.redact(task)),
        inputs=inputs if isinstance(inputs, dict) else {},
        outputs=report.outputs or {},
        steps=steps,
    )


async def judged(repaired: Repaired, task: str, request: SolveRequest, context: Context) -> Repaired:
    """Return the result with a judge's opinion; without a judge with the reason why there is none.

    Where no check has spoken, a good opinion counts as the run's only evidence, which admits to
    guidance only; it never changes the status of a run.
    """
    report = repaired.report
    if not request.judge or not report.trace:
        return repaired
    opinion = await _opinion(report, task, context)
    report = report.model_copy(update={"judgement": opinion, "tokens": report.tokens + opinion.tokens})
    run = repaired.run
    if (
        run is not None
        and not run.verifications
        and opinion.score is not None
        and opinion.score >= JUDGED_RIGHT
    ):
        said = Verification(by="judge", passed=True, detail=f"{opinion.model} scores {opinion.score:.2f}")
        run = replace(run, verifications=(said,))
        report = report.model_copy(update={"verifications": (*report.verifications, said)})
    return replace(repaired, report=report, run=run)


async def _opinion(report: RepairReport, task: str, context: Context) -> JudgeReport:
    try:
        backend = await context.models.backend("judge")
    except BackendError as error:
        return JudgeReport(problems=(str(error),))
    if backend is None:
        why = "no score: there is no model to judge (`models.judge` in the configuration, or --model)"
        return JudgeReport(problems=(why,))
    model = MeteredBackend(backend)
    words = report.answer.text if report.answer and report.answer.by == "model" else ""
    shown = judged_run(task, report.trace, report.outputs or {}, context, words)
    found = await judge_run(shown, model, seed=SEED, deadline_seconds=LONGEST_SECONDS)
    return JudgeReport(
        scores=dict(found.scores),
        axes=dict(found.axes),
        score=found.score,
        disagreement=dict(found.disagreement),
        readings=found.readings,
        asked=READINGS,
        model=model.name,
        reasons=found.reasons,
        problems=found.problems,
        tokens=model.usage.total,
    )

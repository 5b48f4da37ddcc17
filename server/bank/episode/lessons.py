"""Experience in the course of an episode: recalled before it, counted and learned from after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.tools import ToolId
from server.attribution.labels import label_steps
from server.bank.context import Context
from server.bank.curation.observing import outcome_of
from server.bank.keeping import keep_lesson
from server.navigating.guidelines import Guideline, guideline_of
from server.navigating.hinting import ExperienceHints
from server.navigating.recalling import Guide, guide_for
from server.navigating.writing import Lesson, situation_of
from server.reports import RepairReport
from skills_store.errors import MalformedWorkflow
from skills_store.experience.merging import ALIKE
from skills_store.experience.unit import ExperienceUnit
from skills_store.trace import Trace
from skills_store.workflow.model import Workflow, parse_workflow

__all__ = ["Learner", "good_tools", "hints_of", "open_lessons"]

_TRACES_LOOKED_AT = 200


@dataclass(frozen=True)
class Learner:
    """What experience says of one task, and what the task's outcome says of experience."""

    task: str
    guide: Guide
    context: Context
    recalls: bool = True
    """Whether experience may be used at all; what comes of it is learned either way."""

    async def take(self, report: RepairReport, before: Workflow | None) -> None:
        """Count the attempt and learn from it; what the world stopped teaches nothing.

        Args:
            report: what the attempt came to.
            before: the plan as it was first, None where there was none.
        """
        trace = self.context.store.trace(report.trace_id) if report.trace_id is not None else None
        if outcome_of(report) == "world" or trace is None:
            return
        self._count(report, trace)
        await keep_lesson(_lesson(self.task, report, trace, before), self.context)

    def _count(self, report: RepairReport, trace: Trace) -> None:
        shelf = self.context.store.experiences(self.context.principal)
        right, good = outcome_of(report) == "right", good_tools(report, trace)
        for unit in self.guide.units:
            helped = right and self.guide.guided and _followed(unit, good)
            kept = shelf.count(unit.id, guided=self.guide.guided, right=right, helped=helped)
            if kept is not None and not kept.is_alive(self.context.clock()):
                shelf.drop(unit.id)


def _followed(unit: ExperienceUnit, good: frozenset[ToolId]) -> bool:
    """Return whether what a unit says was done: its tools made good steps, or the one it warns of did not."""
    return unit.tools[0] not in good if unit.kind == "failure" else not good.isdisjoint(unit.tools)


def good_tools(report: RepairReport, trace: Trace) -> frozenset[ToolId]:
    """Return the tools whose steps the attribution calls good."""
    workflow = _parsed(report)
    if workflow is None:
        return frozenset()
    good = {label.node for label in label_steps(workflow, trace) if label.label == "good"}
    return frozenset(node.tool for node in workflow.nodes if node.id in good and node.tool is not None)


def _parsed(report: RepairReport) -> Workflow | None:
    try:
        return parse_workflow(report.workflow)
    except MalformedWorkflow:
        return None


def _lesson(task: str, report: RepairReport, trace: Trace, before: Workflow | None) -> Lesson:
    faults = report.initial_faults or report.faults
    return Lesson(task, trace, before, _parsed(report), faults)


async def open_lessons(task: str, context: Context, *, recalls: bool = True) -> Learner:
    """Return what experience says of a task; where a plan from scratch is asked for, nothing is recalled."""
    if not recalls:
        return Learner(task, Guide(), context, recalls=False)
    units = context.store.experiences(context.principal).units()
    known = frozenset(tool.id for tool in context.known())
    near = await context.finder.compare(situation_of(task), [unit.when_to_use for unit in units]) or {}
    nearness = {unit.id: said for unit in units if (said := near.get(unit.when_to_use, 0.0)) >= ALIKE}
    return Learner(task, guide_for(task, units, known, context.clock(), nearness), context)


def hints_of(learner: Learner) -> ExperienceHints | None:
    """Return what experience says to a repair; None for an attempt that goes without."""
    if not learner.recalls or (learner.guide.units and not learner.guide.guided):
        return None
    traces = learner.context.store.traces(_TRACES_LOOKED_AT)
    tools = {step.tool for trace in traces for step in trace.steps if step.tool is not None}
    return ExperienceHints(learner.guide.followed, _guidelines(tools, traces))


def _guidelines(tools: Iterable[ToolId], traces: list[Trace]) -> dict[ToolId, Guideline]:
    found = {tool: guideline_of(tool, traces) for tool in sorted(tools)}
    return {tool: guideline for tool, guideline in found.items() if guideline is not None}

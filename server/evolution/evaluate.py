"""Evaluating one candidate: check, run what is sound, verify, measure.

Paper: EvoFlux (BuildCandidate; facts §1.3). Differs: a candidate with static faults still runs its
sound, free nodes, since their outputs are the evidence that mends the rest; what costs is held back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import JsonValue

from catalog.effects import Activity, Effect, EffectTable, Reset
from catalog.result import CallFailure, FailureKind, RanUpstream
from catalog.tools import ToolId
from server.evolution.candidate import Candidate, Evaluation, Fitness
from server.evolution.measuring import fitness_of, rule_score, unmet_of
from server.evolution.proposal import Proposal
from server.execution.calls import Answer, Caller, CallRequest
from server.execution.episode import Episode
from server.execution.run import Run, RunOptions, execute_workflow
from server.planning.view import View, World, answers_of
from server.verification import Checks, Verdict, verify
from skills_store.skill import Signature
from skills_store.trace import Step
from skills_store.workflow.check import check_workflow
from skills_store.workflow.faults import Cycle, Denied, Fault, OverLimit
from skills_store.workflow.flows import FlowRule, check_flows
from skills_store.workflow.graph import needed, reaching_inputs
from skills_store.workflow.model import Workflow

__all__ = ["Evaluator", "Judge"]

_SOMETHING = ("`true`",)
"""Stands for an expectation whose literals a proposer must not see."""


@dataclass
class _HeldBack:
    """A caller that lets only calls through that may repeat on a shared connection."""

    inner: Caller
    effects: EffectTable

    async def call(self, request: CallRequest) -> Answer:
        """Return the inner answer, or a denial for what costs."""
        effect = self.effects.effect(request.tool)
        is_shared = self.effects.reset_mode(request.tool.server) is Reset.NONE
        if effect is Effect.PURE or (effect.is_free and is_shared):
            return await self.inner.call(request)
        message = "held back until the static faults are mended"
        return Answer(CallFailure(FailureKind.DENIED, message, 0.0, RanUpstream.NO), effect, calls=0)


@dataclass
class _Metered:
    """A caller that lets no call through that could pass the budget of calls."""

    inner: Caller
    evaluator: Evaluator

    async def call(self, request: CallRequest) -> Answer:
        """Return the inner answer, or that the budget is spent."""
        evaluator = self.evaluator
        if evaluator.episode.calls + evaluator.in_flight >= evaluator.call_limit:
            message = "the budget of calls is spent"
            failure = CallFailure(FailureKind.OVER_LIMIT, message, 0.0, RanUpstream.NO)
            return Answer(failure, evaluator.world.effect(request.tool), calls=0)
        evaluator.in_flight += 1
        try:
            return await self.inner.call(request)
        finally:
            evaluator.in_flight -= 1


class Hints(Protocol):
    """What experience says of a workflow in trouble; filled by the experience store."""

    def edits(self, view: View) -> Sequence[Proposal]:
        """Return edits that helped where things were like this, the most trusted first; often none."""
        ...

    def texts(self, view: View) -> Sequence[tuple[str, str]]:
        """Return what a model that edits is told of it, a line each; often nothing."""
        ...


class Judge(Protocol):
    """Scores a candidate that ran to its outputs. Advice: it orders what no check tells apart."""

    async def score(self, workflow: Workflow, evaluation: Evaluation) -> float | None:
        """Return a score in [0, 1], None when the judge could not answer."""
        ...


@dataclass
class Evaluator:
    """Evaluates the candidates of one search and remembers what tools were seen to answer."""

    world: World
    checks: Checks
    episode: Episode
    options: RunOptions
    signatures: Mapping[str, Signature] = field(default_factory=dict[str, Signature])
    """Of the skills that nodes call, by `name@version`."""
    seen_tools: dict[ToolId, JsonValue] = field(default_factory=dict[ToolId, JsonValue])
    base_inputs: frozenset[str] | None = None
    """Inputs that reach an output of the base, None until it was evaluated."""
    base_needed: int = 0
    """Nodes that the outputs of the base stand on."""
    base_flows: frozenset[tuple[FlowRule, ToolId, ToolId]] = frozenset()
    """Flows that a rule forbids and that the base has itself."""
    call_limit: float = math.inf
    """Calls of the episode past which none is made."""
    in_flight: int = 0
    """Calls on their way, which may come to count."""
    ran_once: set[tuple[str, ToolId]] = field(default_factory=set[tuple[str, ToolId]])
    """Nodes whose call happened and can neither be repeated nor undone."""
    recorded: Mapping[str, Evaluation] = field(default_factory=dict[str, Evaluation])
    """What an earlier search found of candidates, by id: they are not evaluated again."""
    judge: Judge | None = None
    """Scores what ran to its outputs; None: nobody does."""
    hints: Hints | None = None
    """What experience says of this task's workflows in trouble; None: nothing, or it is left out."""

    async def evaluate(self, candidate: Candidate) -> Evaluation:
        """Return what became of a candidate. The first one of a search is the base, run in full.

        A candidate in which an edit lets data go where it should not is not run (DESIGN §8).
        """
        if (known := self.recorded.get(candidate.id)) is not None:
            return self._taken_over(candidate, known)
        static = check_workflow(candidate.workflow, self.world.snapshot, skills=self.signatures)
        is_base = candidate.parent is None
        if any(isinstance(fault, Cycle | OverLimit) for fault in static):
            return self._without_run(candidate.workflow, static)
        if leaks := self._new_flows(candidate.workflow, is_base=is_base):
            return self._without_run(candidate.workflow, [*static, *leaks])
        activity = Activity.FIRST_RUN if is_base else Activity.RERUN
        async with self.episode.candidate(activity) as unmetered:
            caller = _Metered(unmetered, self)
            guarded = _HeldBack(caller, self._held(is_base)) if static else caller
            run = await execute_workflow(
                candidate.workflow,
                dict(self.world.inputs),
                guarded,
                snapshot=self.world.snapshot,
                options=self.options,
            )
        self._note_what_ran_once(run.trace.steps)
        evaluation = self._judged(candidate.workflow, static, run)
        return await self._scored(candidate, evaluation)

    def _taken_over(self, candidate: Candidate, known: Evaluation) -> Evaluation:
        """Return what an earlier search found, with everything noted that evaluating it would have."""
        self._new_flows(candidate.workflow, is_base=candidate.parent is None)
        self._note_base(candidate.workflow)
        self._note_what_ran_once(known.trace.steps if known.trace else ())
        return known

    async def _scored(self, candidate: Candidate, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation with a judge's score, where there is one and the run got to its outputs."""
        if self.judge is None or not evaluation.executed_ok:
            return evaluation
        score = await self.judge.score(candidate.workflow, evaluation)
        if score is None:
            return evaluation
        return replace(evaluation, judge=score, fitness=replace(evaluation.fitness, judged=score))

    def may_repeat(self, workflow: Workflow) -> bool:
        """Return whether every call of a workflow may be made any number of times."""
        return all(node.tool is None or self.world.may_repeat(node.tool) for node in workflow.nodes)

    def _new_flows(self, workflow: Workflow, *, is_base: bool) -> list[Fault]:
        """Return a fault for each forbidden flow that an edit brought; those of the base are its owner's."""
        flows = check_flows(workflow, self.world.labels, self.world.labelled)
        if is_base:
            self.base_flows = frozenset((flow.rule, flow.source, flow.sink) for flow in flows)
            return []
        return [
            Denied(message=flow.message, node=flow.node, tool=flow.sink)
            for flow in flows
            if (flow.rule, flow.source, flow.sink) not in self.base_flows
        ]

    def _note_base(self, workflow: Workflow) -> frozenset[str]:
        """Return the inputs that reach an output; what the outputs of the first workflow stand on is kept."""
        reaching = reaching_inputs(workflow)
        if self.base_inputs is None:
            self.base_inputs, self.base_needed = reaching, len(needed(workflow))
        return reaching

    def _keeps_inputs(self, workflow: Workflow) -> bool:
        """Return whether what reached an output of the base still does; the first workflow is the base."""
        reaching = self._note_base(workflow)
        return (self.base_inputs or frozenset()) <= reaching

    def _note_what_ran_once(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            if step.tool and step.outcome == "succeeded" and not self.world.may_repeat(step.tool):
                self.ran_once.add((step.node, step.tool))

    def _dropped(self, workflow: Workflow) -> list[Fault]:
        """Return a fault for each call that happened for good and that a candidate leaves out.

        Its effect would still be there to make the candidate look right.
        """
        kept = {(node.id, node.tool) for node in workflow.nodes}
        return [
            Denied(
                message=f"{tool} ran for {node!r} and cannot be undone: a plan without it cannot be verified",
                tool=tool,
            )
            for node, tool in sorted(self.ran_once)
            if (node, tool) not in kept
        ]

    def _held(self, is_base: bool) -> EffectTable:
        """Return the effects by which calls are held back; the base may use its own processes."""
        if not is_base:
            return self.world.effects
        return EffectTable(effects=self.world.effects.effects)

    def view(self, candidate: Candidate, evaluation: Evaluation, *, evidence: bool = True) -> View:
        """Return what proposers may see of an evaluated candidate.

        Args:
            candidate: as it is.
            evaluation: what became of it.
            evidence: whether its faults and what tools answered may be seen; off only to measure that.
        """
        return View(
            world=self.world,
            workflow=_without_literals_of_checks(candidate.workflow),
            outputs=evaluation.outputs if evidence else {},
            seen_tools=dict(self.seen_tools) if evidence else {},
            faults=evaluation.faults if evidence else (),
        )

    def remember(self, candidate: Candidate, evaluation: Evaluation) -> None:
        """Keep what tools were seen to answer. Told in the order of the search, whoever ended first."""
        for node in candidate.workflow.nodes:
            if node.tool and node.id in evaluation.outputs:
                for answer in answers_of(node, evaluation.outputs[node.id]):
                    self.seen_tools[node.tool] = answer

    def _without_run(self, workflow: Workflow, static: list[Fault]) -> Evaluation:
        unmet = len(workflow.nodes) + len(workflow.outputs) + 1 + 0.5 * len(static)
        kept = self._keeps_inputs(workflow)
        fitness = Fitness(
            keeps_inputs=kept,
            rule_score=rule_score(workflow, static, ()),
            fewer_nodes=-len(workflow.nodes),
        )
        return Evaluation("static_faults", tuple(static), fitness, None, None, {}, 0, unmet)

    def _judged(self, workflow: Workflow, static: list[Fault], run: Run) -> Evaluation:
        verdict = verify(run, workflow, dict(self.world.inputs), self.checks)
        faults = (*_merged(static, verdict), *self._dropped(workflow))
        fine = verdict.status in ("verified", "succeeded") and not faults
        kept = self._keeps_inputs(workflow)
        measured = fitness_of(workflow, faults, run, verdict, least_needed=self.base_needed)
        fitness = replace(measured, verified=fine, keeps_inputs=kept)
        ran = not static and run.trace.outputs is not None and not run.faults
        status = "verified" if fine else "static_faults" if static else "executed" if ran else "failed"
        unmet = 0.0 if fine else unmet_of(workflow, faults, run)
        return Evaluation(
            status=status,
            faults=faults,
            fitness=fitness,
            verdict=verdict,
            trace=run.trace,
            outputs=dict(run.outputs),
            calls=run.trace.calls,
            unmet=unmet,
            result=run.result,
        )


def _without_literals_of_checks(workflow: Workflow) -> Workflow:
    """Return the workflow as proposers see it: that something is expected stays, what it is does not."""
    nodes = tuple(
        node.model_copy(update={"expect": _SOMETHING}) if node.expect else node for node in workflow.nodes
    )
    expect = _SOMETHING if workflow.expect else ()
    return workflow.model_copy(update={"nodes": nodes, "expect": expect})


def _merged(static: list[Fault], verdict: Verdict) -> tuple[Fault, ...]:
    """Return static faults, and from the run those that say something new about other nodes."""
    if not static:
        return tuple(verdict.faults)
    marked = {fault.node for fault in static}
    new = [
        f for f in verdict.faults if f.node is not None and f.node not in marked and not isinstance(f, Denied)
    ]
    return (*static, *new)

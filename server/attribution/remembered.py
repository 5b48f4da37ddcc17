"""Ablation of a run that is over: its calls are answered from its own trace, and nothing is called.

Paper: AgentEvolver (facts §4.4). Differs: as `ablation`; a workflow that would make a call which the trace
does not have says nothing of the step that was dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog.canonical import digest
from catalog.effects import EffectTable
from catalog.result import CallFailure, CallSuccess, FailureKind, RanUpstream
from catalog.tools import Snapshot
from server.attribution.ablation import ablate
from server.attribution.labels import StepLabel
from server.execution.calls import Answer, CallRequest
from server.execution.options import RunOptions
from server.execution.run import execute_workflow
from server.verification import Checks, verify
from skills_store.trace import Step, Trace
from skills_store.workflow.assertions import assertion_problem
from skills_store.workflow.model import Node, Workflow

__all__ = ["ablate_trace"]

_HOLDS = ": holds"
"""What a verification says after the assertion that held."""


@dataclass
class _Remembered:
    """A caller that knows the calls of one trace; `missed` once it was asked for another."""

    trace: Trace
    effects: EffectTable
    missed: bool = False
    _answers: dict[str, Step] = field(init=False)

    def __post_init__(self) -> None:
        self._answers = {_key(step): step for step in self.trace.steps if step.tool is not None}

    async def call(self, request: CallRequest) -> Answer:
        """Return the answer that the trace has, else a denial."""
        step = self._answers.get(f"{request.tool} {digest(request.arguments)}")
        effect = self.effects.effect(request.tool)
        if step is None or step.outcome != "succeeded" or _is_cut(step):
            self.missed = True
            why = "the trace has no answer to this call"
            return Answer(CallFailure(FailureKind.DENIED, why, 0.0, RanUpstream.NO), effect, calls=0)
        outcome = CallSuccess(structured=step.output, content=[], seconds=0.0)
        return Answer(outcome, effect, from_memory=True, calls=0)


def _key(step: Step) -> str:
    return f"{step.tool} {digest(step.arguments)}"


def _is_cut(step: Step) -> bool:
    """Return whether only the digest and a preview of an output were kept."""
    return isinstance(step.output, dict) and step.output.keys() == {"$digest", "size", "preview"}


def _assertions(trace: Trace) -> tuple[str, ...]:
    """Return the assertions that held of a run, as its verifications tell them."""
    said = [v.detail.removesuffix(_HOLDS) for v in trace.verifications if v.by == "assertion" and v.passed]
    return tuple(text for text in said if text and not assertion_problem(text))


async def ablate_trace(
    trace: Trace, workflow: Workflow, snapshot: Snapshot, effects: EffectTable
) -> tuple[StepLabel, ...]:
    """Return the labels of the steps of which the trace tells whether they were needed; often not all.

    None of a run that nothing checked: without an assertion there is nothing that could still hold.

    Args:
        trace: of a run.
        workflow: that ran.
        snapshot: the tools.
        effects: what may be ablated: tools that are pure or read.
    """
    checks = Checks(assertions=_assertions(trace))
    if trace.status != "verified" or not checks.assertions:
        return ()

    async def still_passes(candidate: Workflow) -> bool | None:
        caller = _Remembered(trace, effects)
        run = await execute_workflow(
            candidate, dict(trace.inputs), caller, snapshot=snapshot, options=RunOptions()
        )
        return None if caller.missed else verify(run, candidate, trace.inputs, checks).is_verified

    def is_free(node: Node) -> bool:
        return node.tool is not None and effects.effect(node.tool).is_free

    if await still_passes(workflow) is not True:
        return ()
    return await ablate(workflow, is_free, still_passes)
